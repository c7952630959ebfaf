"""Where a text occurs in a thread."""

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import SearchPage


def search(
    context: SaverContext, thread: Config | str, text: str, ns: str | None, limit: int, cursor: str | None
) -> Operation[SearchPage]:
    """Return where a text occurs in a thread's values, pending writes and metadata."""
    raise NotImplementedError
