"""`PartProtocol`: how a saver reads parts of a state, for whatever accepts one."""

from typing import Any, Protocol

from threadmark.model import Config, MessagePage


class PartProtocol(Protocol):
    """The methods of `Saver` that read parts of a state; it documents each."""

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest."""

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""

    def messages(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first."""

    async def amessages(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `messages`, for asyncio."""
