"""A warning, or an error, if the database has conversations of LangGraph's own saver that were not moved.

Threads with the same ids would start empty here.
"""

import logging
import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

from threadmark import ConfigError, SaverProtocol, ThreadmarkError
from threadmark.errors import short_repr
from threadmark_langgraph.log import log


class UnmovedThreadsWarning(UserWarning):
    """The database has threads of LangGraph's own saver that were not moved, and none of Threadmark's.

    Those threads start empty here until you move them with `threadmark_langgraph.migrate`.
    """


class UnmovedThreadsError(ThreadmarkError):
    """Raised in place of `UnmovedThreadsWarning` by a saver with on_unmoved="raise". Nothing was stored."""


OnUnmoved = Literal["warn", "raise"]
"""The answer of a saver to threads that were not moved."""


def split_options(options: Mapping[str, Any]) -> tuple[OnUnmoved, dict[str, Any]]:
    """Return the value of `on_unmoved`, and the options of the backend."""
    rest = dict(options)
    return rest.pop("on_unmoved", "warn"), rest


class UnmovedThreads:
    """Checks once for such threads, when a thread is not found. Clones of a checkpointer share one instance."""

    def __init__(self, on_unmoved: OnUnmoved) -> None:
        if not isinstance(on_unmoved, str) or on_unmoved not in get_args(OnUnmoved):
            raise ConfigError(f"on_unmoved must be 'warn' or 'raise', not {short_repr(on_unmoved)}")
        self.raises = on_unmoved == "raise"
        self.expected = False
        """Whether the database was checked, or is the target of a move that is going on."""

    def look(self, saver: SaverProtocol) -> None:
        """Warn, or raise, if there are threads that were not moved."""
        if saver.has_only_langgraph_data():
            self._tell(repr(saver))
        self.expected = True

    async def alook(self, saver: SaverProtocol) -> None:
        """Like `look`, for asyncio."""
        if await saver.ahas_only_langgraph_data():
            self._tell(repr(saver))
        self.expected = True

    def _tell(self, saver: str) -> None:
        message = (
            f"{saver} holds threads of LangGraph's own saver, which start empty here until you move them: "
            "threadmark_langgraph.migrate(database, database), with the path or URL of this database for both"
        )
        if self.raises:
            raise UnmovedThreadsError(message)
        _warn(saver, message)


def _warn(saver: str, message: str) -> None:
    if saver in _warned:
        return
    _warned.add(saver)
    log.write(logging.WARNING, "%s", message)
    warnings.warn(message, UnmovedThreadsWarning, stacklevel=5)


_warned: set[str] = set()
"""The savers, as text, for which this process has warned: some programs make a saver for each request."""
