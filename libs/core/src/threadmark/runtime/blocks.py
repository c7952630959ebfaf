"""The transactions in whose blocks the running code is.

In the block of a transaction, a call that does not belong to it would wait for the end of the block, and so for itself.
Tasks and threads that the block starts with a copy of its context count as inside, too.
"""

from contextvars import ContextVar
from typing import Protocol
from weakref import ref

from threadmark.runtime.refusals import InsideError


class Block(Protocol):
    """A transaction over several calls."""

    _driver: object
    """The driver of the saver that it was made of."""
    is_open: bool


INSIDE: ContextVar[tuple["ref[Block]", ...]] = ContextVar("INSIDE", default=())
"""The blocks that the running code was called from, in their order.

They are held weakly: a block that an interrupt kept from ending is rolled back when nothing else refers to it.
"""


def enter(block: Block) -> None:
    """Count the running code as inside of the block from now on."""
    INSIDE.set((*INSIDE.get(), ref(block)))


def leave(block: Block) -> None:
    """Count the running code as outside of the block again."""
    INSIDE.set(tuple(each for each in INSIDE.get() if each() not in (None, block)))


def expect_outside(driver: object) -> None:
    """Raise InsideError if the running code is in the block of a transaction of this driver."""
    blocks = (each() for each in INSIDE.get())
    if any(block and block.is_open and block._driver is driver for block in blocks):  # noqa: SLF001 - users never see it
        raise InsideError(
            "a transaction of this saver is open in this block, and the call would wait for its end: "
            "use the saver of the transaction (`tx.saver`), or call it after the block"
        )
