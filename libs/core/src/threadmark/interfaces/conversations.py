"""`Conversations`: messages, state and threads, as an agent server needs them, over any saver."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from threadmark.interfaces.interface import Interface
from threadmark.interfaces.messages import checked_message_id, checked_messages, checked_page
from threadmark.interfaces.operations import conversations as states
from threadmark.interfaces.operations import conversations as stored_messages
from threadmark.interfaces.shapes import Conversation, ConversationConfig, parse_conversation, user_context
from threadmark.interfaces.state_cache import CacheCall, CachedOperation, Caches, SharedCache, Sharing, StateCache
from threadmark.model import Duration, ThreadInfo, ThreadPage
from threadmark.program import Operation, Transaction, aplay, play
from threadmark.saver import SaverProtocol
from threadmark.saver.kit import checked_count, get_thread, list_threads, thread_query

T = TypeVar("T")

CACHE_BYTES = 16 * 1024 * 1024
CACHE_ENTRIES = 1024


class Conversations(Interface):
    """Messages, state and threads of an agent server.

    Each method takes a `config`: `{"thread_id": ..., "user_id": ..., "run_id": ...}`, or that of a LangGraph run, which
    has these under "configurable". With a `user_id`, a method sees only this user's threads (`Saver.for_owner`);
    without one, all threads of the saver.

    Args:
        saver: The saver that stores everything. Close it, not this object.
        cache: A cache of states that several processes share, such as one on Redis. Its answers are verified; if it
            fails, states are read from the database. If the saver has a keyring, the cache gets sealed bytes.
        cache_bytes: The most bytes of states to remember in this process.
        cache_entries: The most states to remember in this process.
        cache_ttl: How long a state is remembered, here and in the shared cache.
    """

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        cache: SharedCache | None = None,
        cache_bytes: int = CACHE_BYTES,
        cache_entries: int = CACHE_ENTRIES,
        cache_ttl: Duration = timedelta(minutes=10),
    ) -> None:
        super().__init__(saver)
        self._caches = Caches(StateCache(cache_bytes, cache_entries, cache_ttl), Sharing(cache))

    def put_messages(self, config: ConversationConfig, messages: Iterable[Any]) -> list[str]:
        """Append messages to the conversation. Returns their ids, in the order of the messages.

        All are stored, in their order, or none. A message is a dictionary, a dataclass, one of LangChain's, or any
        object with an attribute `id`; a message without an id gets one, in a copy. A message with a known id replaces
        the stored one completely. If several in one call have the same id, the last is stored.

        The first message of a new thread begins it, as a put does, and the thread belongs to the config's `user_id`.
        The `run_id` is stored with each message; `delete_for_runs` leaves messages alone. While the thread is leased,
        this raises ThreadBusyError unless the config has the token of the lease as `lease_token`.
        """
        return self._play(stored_messages.put_messages(self._named(config), checked_messages(messages)))

    def get_messages(
        self,
        config: ConversationConfig,
        search: str | None = None,
        offset: int = 0,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Any]:
        """Return the newest messages, oldest first, or with `before` the messages above that one.

        Only these are read, however long the conversation is. The messages are copies.

        Args:
            config: The conversation.
            search: Only messages with this in their text, ignoring case. Reads back until there are enough.
            offset: The number of newest messages to leave out.
            limit: The most messages to return.
            before: Only messages before the one with this id. Raises ConfigError if there is none: it may have been
                deleted, and an empty page would look like the beginning of the conversation.
        """
        return self._play(
            stored_messages.get_messages(self._named(config), *checked_page(search, offset, limit, before))
        )

    def get_message(self, config: ConversationConfig, message_id: str) -> Any:
        """Return one message, or None if there is none with this id."""
        return self._play(stored_messages.get_message(self._named(config), checked_message_id(message_id)))

    def delete_message(self, config: ConversationConfig, message_id: str) -> bool:
        """Remove a message, so that no stored row has any part of it. Returns whether it existed.

        The cost does not depend on the length of the conversation. docs/how-to/conversations.md says which copies
        databases keep outside of their rows. States from a graph or `put_state` stay: `clear_state` removes them.
        """
        return self._play(stored_messages.delete_message(self._named(config), checked_message_id(message_id)))

    def put_state(self, config: ConversationConfig, state: Any) -> None:
        """Store a state as the newest of the conversation. Parts that did not change cost nothing.

        The state before it stays in the thread's history until it is pruned or cleared. A graph that runs on the thread
        goes on from this state: a dictionary's keys are its channels.
        """
        self._play(states.put_state(self._named(config), self._caches, state))

    def get_state(self, config: ConversationConfig) -> Any:
        """Return a copy of the newest state, or None if there is none. For a graph, the values of its channels."""
        return self._play(states.get_state(self._named(config), self._caches))

    def clear_state(self, config: ConversationConfig) -> bool:
        """Remove the state of a conversation with its history and all data of subgraphs and tasks.

        Messages stay, and so does the thread. Returns whether there was a state.
        """
        return self._play(states.clear_state(self._named(config), self._caches))

    def put_state_cache(self, config: ConversationConfig, state: Any) -> bool:
        """Remember a state for `get_state_cache` if it equals the newest checkpoint. Returns whether it does.

        `put_state` and `get_state` do this automatically.
        """
        return self._play(states.put_state_cache(self._named(config), self._caches, state))

    def get_state_cache(self, config: ConversationConfig) -> Any:
        """Return the newest state if it is remembered, or None if it is not; then call `get_state`.

        The database is asked which state is the newest, without its values. So you never get a state that another
        process has replaced.
        """
        return self._play(states.get_state_cache(self._named(config), self._caches))

    def get_thread(self, config: ConversationConfig) -> ThreadInfo | None:
        """Return a conversation's thread without reading its contents, or None if there is none."""
        return self._play(self._thread(config))

    def delete_thread(self, config: ConversationConfig) -> bool:
        """Remove a whole conversation: messages, state and history. Returns whether it existed."""
        return self._play(states.delete_conversation(self._named(config), self._caches))

    def get_threads(
        self,
        config: ConversationConfig | None = None,
        search: str | None = None,
        offset: int = 0,
        limit: int = 20,
        cursor: str | None = None,
    ) -> ThreadPage:
        """Return a page of conversations, the one with the latest message or checkpoint first.

        The page has `threads` and the `cursor` of the next page. Every thread of the database is a conversation; with a
        `user_id` in the config, every thread of this user.

        Args:
            config: The user whose conversations to list; it need not name a thread.
            search: Only conversations with this text in their title, ignoring case, or in their id.
            offset: The number to skip. Prefer the cursor: it neither skips nor repeats conversations that change
                between two calls.
            limit: The most conversations to return.
            cursor: The cursor of the page before.
        """
        return self._play(self._threads(config, search, offset, limit, cursor))

    def _named(self, config: ConversationConfig) -> Conversation:
        return parse_conversation(self._saver._context, config)  # noqa: SLF001 - see `Interface`

    def _thread(self, config: ConversationConfig) -> Operation[ThreadInfo | None]:
        conversation = self._named(config)
        return get_thread(conversation.context, conversation.thread_id)

    def _threads(
        self, config: ConversationConfig | None, search: str | None, offset: int, limit: int, cursor: str | None
    ) -> Operation[ThreadPage]:
        context = user_context(self._saver._context, config)  # noqa: SLF001 - see `Interface`
        query = thread_query({"text": search})
        return list_threads(context, query, checked_count(limit, "limit"), cursor, checked_count(offset, "offset"), {})

    def _play(self, operation: CachedOperation[T]) -> T:
        """Drive an operation that may ask the shared cache, on the caller's thread."""
        return play(operation, self._answer)

    async def _aplay(self, operation: CachedOperation[T]) -> T:
        """Like `_play`, for asyncio."""
        return await aplay(operation, self._aanswer)

    def _answer(self, asked: Transaction[Any] | CacheCall) -> Any:
        if isinstance(asked, CacheCall):
            return self._caches.shared.call(asked)
        return self._saver._driver.run(asked)  # noqa: SLF001 - see `Interface`

    async def _aanswer(self, asked: Transaction[Any] | CacheCall) -> Any:
        if isinstance(asked, CacheCall):
            return await self._caches.shared.acall(asked)
        return await self._saver._driver.arun(asked)  # noqa: SLF001 - see `Interface`

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aput_messages(self, config: ConversationConfig, messages: Iterable[Any]) -> list[str]:
        """Like `put_messages`, for asyncio."""
        return await self._aplay(stored_messages.put_messages(self._named(config), checked_messages(messages)))

    async def aget_messages(
        self,
        config: ConversationConfig,
        search: str | None = None,
        offset: int = 0,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Any]:
        """Like `get_messages`, for asyncio."""
        return await self._aplay(
            stored_messages.get_messages(self._named(config), *checked_page(search, offset, limit, before))
        )

    async def aget_message(self, config: ConversationConfig, message_id: str) -> Any:
        """Like `get_message`, for asyncio."""
        return await self._aplay(stored_messages.get_message(self._named(config), checked_message_id(message_id)))

    async def adelete_message(self, config: ConversationConfig, message_id: str) -> bool:
        """Like `delete_message`, for asyncio."""
        return await self._aplay(stored_messages.delete_message(self._named(config), checked_message_id(message_id)))

    async def aput_state(self, config: ConversationConfig, state: Any) -> None:
        """Like `put_state`, for asyncio."""
        await self._aplay(states.put_state(self._named(config), self._caches, state))

    async def aget_state(self, config: ConversationConfig) -> Any:
        """Like `get_state`, for asyncio."""
        return await self._aplay(states.get_state(self._named(config), self._caches))

    async def aclear_state(self, config: ConversationConfig) -> bool:
        """Like `clear_state`, for asyncio."""
        return await self._aplay(states.clear_state(self._named(config), self._caches))

    async def aput_state_cache(self, config: ConversationConfig, state: Any) -> bool:
        """Like `put_state_cache`, for asyncio."""
        return await self._aplay(states.put_state_cache(self._named(config), self._caches, state))

    async def aget_state_cache(self, config: ConversationConfig) -> Any:
        """Like `get_state_cache`, for asyncio."""
        return await self._aplay(states.get_state_cache(self._named(config), self._caches))

    async def aget_thread(self, config: ConversationConfig) -> ThreadInfo | None:
        """Like `get_thread`, for asyncio."""
        return await self._aplay(self._thread(config))

    async def adelete_thread(self, config: ConversationConfig) -> bool:
        """Like `delete_thread`, for asyncio."""
        return await self._aplay(states.delete_conversation(self._named(config), self._caches))

    async def aget_threads(
        self,
        config: ConversationConfig | None = None,
        search: str | None = None,
        offset: int = 0,
        limit: int = 20,
        cursor: str | None = None,
    ) -> ThreadPage:
        """Like `get_threads`, for asyncio."""
        return await self._aplay(self._threads(config, search, offset, limit, cursor))

    # The end of the part that scripts/write_twins.py wrote.
