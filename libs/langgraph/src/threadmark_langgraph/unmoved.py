"""A warning, or an error, where a new database lies beside conversations of LangGraph's own saver.

They would begin anew here.
"""

import logging
import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

from threadmark import ConfigError, SaverProtocol, ThreadmarkError
from threadmark.errors import shown
from threadmark_langgraph.log import log


class UnmovedThreadsWarning(UserWarning):
    """The database holds threads of LangGraph's own saver, and none of this one: they were not moved."""


class UnmovedThreadsError(ThreadmarkError):
    """The same, of a saver with on_unmoved="raise". Nothing was stored."""


OnUnmoved = Literal["warn", "raise"]
"""What a saver does about such threads."""


def split_options(options: Mapping[str, Any]) -> tuple[OnUnmoved, dict[str, Any]]:
    """Return what is done about such threads, and the options of the backend."""
    rest = dict(options)
    return rest.pop("on_unmoved", "warn"), rest


class UnmovedThreads:
    """Looks for them once, when a thread is not found. The clones of a checkpointer share one."""

    def __init__(self, on_unmoved: OnUnmoved) -> None:
        if not isinstance(on_unmoved, str) or on_unmoved not in get_args(OnUnmoved):
            raise ConfigError(f"on_unmoved must be 'warn' or 'raise', not {shown(on_unmoved)}")
        self.raises = on_unmoved == "raise"
        self.expected = False
        """Whether the database was looked at, or is just being moved to."""

    def look(self, saver: SaverProtocol) -> None:
        """Warn of threads that were not moved."""
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
            f"{saver} holds threads of LangGraph's own saver, which begin anew here until they are moved: "
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
"""The savers (by what they show) that this process has warned of: some programs make one for each request."""
