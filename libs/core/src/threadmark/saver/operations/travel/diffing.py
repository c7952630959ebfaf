"""What differs between two checkpoints."""

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import Diff


def diff(context: SaverContext, a: Config, b: Config, path: str | None, limit: int) -> Operation[Diff]:
    """Return what differs between two checkpoints of a thread."""
    raise NotImplementedError
