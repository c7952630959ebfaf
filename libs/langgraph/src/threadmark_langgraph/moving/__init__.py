"""Moving threads from LangGraph's savers to a Threadmark saver, and back."""

from threadmark_langgraph.moving.databases import contents_of
from threadmark_langgraph.moving.report import Changed, Moved, NotMoved
from threadmark_langgraph.moving.transfer import export, migrate

__all__ = ["Changed", "Moved", "NotMoved", "contents_of", "export", "migrate"]
