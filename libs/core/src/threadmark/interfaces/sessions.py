"""`Sessions`: checkpoints of named steps, by session."""

from threadmark.interfaces.interface import Interface
from threadmark.interfaces.operations import sessions, states
from threadmark.interfaces.operations.states import SESSION
from threadmark.interfaces.shapes import SessionCheckpoint, SessionStats

Checkpoints = list[SessionCheckpoint]
"""The type under another name, because `list` is a method of the class."""


class Sessions(Interface):
    """Checkpoints of named steps, by session, over any saver. A session is a thread.

    Every method has an asyncio twin whose name begins with `a`. Loaded states are copies. You can also read a thread
    that a graph made, by its id; `clear_all` and `stats` leave it out.
    """

    def save(self, checkpoint: SessionCheckpoint, *, lease_token: int | None = None) -> SessionCheckpoint:
        """Store a checkpoint as the newest of its session. Returns it with its id and its time.

        If the session has a checkpoint with this id, it is replaced. Two checkpoints that are saved at once are both
        kept, one after the other. Raises SerializationError, with the place of the part, if the state cannot be stored.

        Args:
            checkpoint: The session's state and the step that made it. A missing `checkpoint_id` or `timestamp` is
                filled in.
            lease_token: The token of your lease of the session, if sessions are leased (docs/how-to/leases.md).
        """
        return self._run(sessions.save(self._context, checkpoint, lease_token))

    def load(self, session_id: str, checkpoint_id: str | None = None) -> SessionCheckpoint | None:
        """Return a checkpoint of a session, by default the newest, or None if there is none."""
        return self._run(sessions.load(self._context, session_id, checkpoint_id))

    def list(self, session_id: str, limit: int = 10) -> Checkpoints:
        """Return the newest checkpoints of a session with their states, newest first."""
        return self._run(sessions.list_checkpoints(self._context, session_id, limit))

    def delete(self, session_id: str, checkpoint_id: str | None = None) -> bool:
        """Remove a whole session, or one checkpoint of it. Returns whether it existed.

        The other checkpoints read as before. A session ends with its last checkpoint.
        """
        return self._run(states.delete(self._context, session_id, checkpoint_id))

    def clear_all(self) -> int:
        """Remove every session that this interface began. Returns their number."""
        return self._run(states.clear(self._context, SESSION))

    def stats(self) -> SessionStats:
        """Return the number of sessions that this interface began, and their size. Reads no state."""
        return self._run(sessions.stats(self._context))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def asave(self, checkpoint: SessionCheckpoint, *, lease_token: int | None = None) -> SessionCheckpoint:
        """Like `save`, for asyncio."""
        return await self._arun(sessions.save(self._context, checkpoint, lease_token))

    async def aload(self, session_id: str, checkpoint_id: str | None = None) -> SessionCheckpoint | None:
        """Like `load`, for asyncio."""
        return await self._arun(sessions.load(self._context, session_id, checkpoint_id))

    async def alist(self, session_id: str, limit: int = 10) -> Checkpoints:
        """Like `list`, for asyncio."""
        return await self._arun(sessions.list_checkpoints(self._context, session_id, limit))

    async def adelete(self, session_id: str, checkpoint_id: str | None = None) -> bool:
        """Like `delete`, for asyncio."""
        return await self._arun(states.delete(self._context, session_id, checkpoint_id))

    async def aclear_all(self) -> int:
        """Like `clear_all`, for asyncio."""
        return await self._arun(states.clear(self._context, SESSION))

    async def astats(self) -> SessionStats:
        """Like `stats`, for asyncio."""
        return await self._arun(sessions.stats(self._context))

    # The end of the part that scripts/write_twins.py wrote.
