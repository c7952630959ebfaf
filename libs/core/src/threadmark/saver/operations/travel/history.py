"""A page of a thread's checkpoints, without their values."""

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import HistoryPage


def history(
    context: SaverContext, thread: Config | str, ns: str | None, limit: int, cursor: str | None
) -> Operation[HistoryPage]:
    """Return a page of a thread's checkpoints, newest first."""
    raise NotImplementedError
