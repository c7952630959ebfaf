"""The methods of a saver that read parts of a state, in both APIs. The logic is in the modules of the operations."""

from typing import Any

from threadmark.model import Config, MessagePage
from threadmark.program import Driver, arun, run
from threadmark.saver.context import SaverContext
from threadmark.saver.operations import parts
from threadmark.saver.thread_arguments import given_count


class PartMethods:
    """What a saver reads without reading the whole state."""

    _driver: Driver
    _context: SaverContext

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest.

        A path is the name of a channel and any number of steps: `.name` (a dictionary's key or an object's field),
        `["key"]`, `[3]`, `[-20:]`. Only that channel is fetched, and only the part is decoded; a class is needed for
        what is returned, but not for what contains it. Fields alone are read: no property and no method is run.

        Where there is no thread, no such channel or nothing at the end of the path, `default` is returned. To tell that
        from a None that is stored, give an object of your own; `thread` tells whether there is a thread.

        Raises ConfigError, with the place, for a path that cannot be read, and for a delta channel, whose value only
        the graph can make.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            path: The path. A channel whose name has a dot or a bracket is written `["a.b"]`.
            default: What to return where there is nothing.
        """
        return run(self._driver, parts.extract(self._context, thread, path, default))

    def messages(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first.

        Only that channel is fetched, and only the page is decoded. A thread that is not there, or that has no such
        channel, has no messages.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            limit: The most messages to return.
            before: `MessagePage.before` of the page that was read last, or the id of a message; a ConfigError if there
                is none with it. Default: read from the end.
            channel: The channel that has the list of messages.
        """
        page = parts.messages(self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel)
        return run(self._driver, page)

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""
        return await arun(self._driver, parts.extract(self._context, thread, path, default))

    async def amessages(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `messages`, for asyncio."""
        page = parts.messages(self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel)
        return await arun(self._driver, page)

    # The end of what scripts/write_twins.py wrote.
