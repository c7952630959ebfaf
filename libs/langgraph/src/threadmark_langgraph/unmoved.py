"""A warning where a new database lies beside conversations of LangGraph's own saver, which would begin anew here."""

import logging
import warnings

from threadmark import SaverProtocol
from threadmark_langgraph.log import log


class UnmovedThreadsWarning(UserWarning):
    """The database holds threads of LangGraph's own saver, and none of this one: they were not moved."""


class UnmovedThreads:
    """Looks for them once, when a thread is not found. The clones of a checkpointer share one."""

    def __init__(self) -> None:
        self.expected = False
        """Whether the database was looked at, or is just being moved to."""

    def look(self, saver: SaverProtocol) -> None:
        """Warn of threads that were not moved."""
        self.expected = True
        if saver.has_only_langgraph_data():
            _warn(repr(saver))

    async def alook(self, saver: SaverProtocol) -> None:
        """Like `look`, for asyncio."""
        self.expected = True
        if await saver.ahas_only_langgraph_data():
            _warn(repr(saver))


def _warn(saver: str) -> None:
    if saver in _warned:
        return
    _warned.add(saver)
    message = (
        f"{saver} holds threads of LangGraph's own saver, which begin anew here until they are moved: "
        "threadmark_langgraph.migrate(database, database), with the path or URL of this database for both"
    )
    log.write(logging.WARNING, "%s", message)
    warnings.warn(message, UnmovedThreadsWarning, stacklevel=4)


_warned: set[str] = set()
"""The savers (by what they show) that this process has warned of: some programs make one for each request."""
