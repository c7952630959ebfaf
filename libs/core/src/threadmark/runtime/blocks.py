"""The transactions in whose blocks the running code is.

In the block of a transaction, a call that does not belong to it would wait for the end of the block, and so for itself.
Tasks and threads that the block starts with a copy of its context count as inside, too.
"""

from contextvars import ContextVar
from typing import Protocol

from threadmark.errors import ConfigError


class Block(Protocol):
    """A transaction over several calls."""

    _driver: object
    """The driver of the saver that it was made of."""
    is_open: bool


INSIDE: ContextVar[tuple[Block, ...]] = ContextVar("INSIDE", default=())
"""The blocks that the running code was called from, in their order."""


def enter(block: Block) -> None:
    """Count the running code as inside of the block from now on."""
    INSIDE.set((*INSIDE.get(), block))


def leave(block: Block) -> None:
    """Count the running code as outside of the block again."""
    INSIDE.set(tuple(each for each in INSIDE.get() if each is not block))


def expect_outside(driver: object) -> None:
    """Raise ConfigError if the running code is in the block of a transaction of this driver."""
    if any(block.is_open and block._driver is driver for block in INSIDE.get()):  # noqa: SLF001 - users never see it
        raise ConfigError(
            "a transaction of this saver is open in this block, and the call would wait for its end: "
            "use the saver of the transaction (`tx.saver`), or call it after the block"
        )
