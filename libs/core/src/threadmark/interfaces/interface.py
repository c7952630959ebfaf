"""`Interface`: what the interfaces have in common, which is the saver that they are over."""

from typing import TypeVar

from threadmark.errors import ConfigError
from threadmark.program import Operation, arun, run
from threadmark.saver import Saver, SaverProtocol
from threadmark.saver.context import SaverContext

T = TypeVar("T")


class Interface:
    """An interface over a saver. There is nothing to close but the saver, which its user closes.

    What a method does is an operation, which gets the saver's context; `_run` and `_arun` drive it.
    """

    def __init__(self, saver: SaverProtocol) -> None:
        self._saver = given_saver(saver)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._saver!r}>"

    @property
    def _context(self) -> SaverContext:
        """What operations work with."""
        return self._saver._context  # noqa: SLF001 - see below

    def _run(self, operation: Operation[T]) -> T:
        """Drive an operation on the caller's thread."""
        return run(self._saver._driver, operation)  # noqa: SLF001 - it runs operations as the saver itself does

    async def _arun(self, operation: Operation[T]) -> T:
        """Like `_run`, for asyncio."""
        return await arun(self._saver._driver, operation)  # noqa: SLF001 - see above


def given_saver(given: object) -> Saver:
    """Return the saver that an interface was given. Raises ConfigError if it is none."""
    if isinstance(given, Saver):
        return given
    checkpointer = isinstance(getattr(given, "saver", None), Saver)
    hint = "give its `.saver`" if checkpointer else "threadmark.open(url) returns one"
    raise ConfigError(f"expected a threadmark.Saver, got {type(given).__name__}: {hint}")
