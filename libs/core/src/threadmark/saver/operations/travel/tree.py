"""How the checkpoints of a thread follow from each other."""

from threadmark.model import Config
from threadmark.program import Operation
from threadmark.saver.context import SaverContext
from threadmark.travel import Tree


def tree(context: SaverContext, thread: Config | str) -> Operation[Tree]:
    """Return all checkpoints of a thread, and the branches that they form."""
    raise NotImplementedError
