"""Where the present value of a part comes from."""

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import Blame


def blame(context: SaverContext, thread: Config | str, path: str) -> Operation[Blame | None]:
    """Return which checkpoint first held the present value at a path."""
    raise NotImplementedError
