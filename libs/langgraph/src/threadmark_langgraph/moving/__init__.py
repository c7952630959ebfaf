"""Moving threads from LangGraph's savers to a Threadmark saver, and back."""

from threadmark_langgraph.moving.report import Moved, NotMoved
from threadmark_langgraph.moving.transfer import export, migrate

__all__ = ["Moved", "NotMoved", "export", "migrate"]
