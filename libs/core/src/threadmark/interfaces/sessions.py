"""`Sessions`: checkpoints of named steps, by session."""

from threadmark.interfaces.interface import Interface
from threadmark.interfaces.operations import sessions, states
from threadmark.interfaces.operations.states import SESSION
from threadmark.interfaces.shapes import SessionCheckpoint, SessionStats

Checkpoints = list[SessionCheckpoint]
"""In the class, `list` is a method."""


class Sessions(Interface):
    """Checkpoints of sessions over any saver: a session is a thread, and each of its checkpoints is one of the thread.

    Every method has an asyncio version whose name begins with `a`. What is loaded is a copy. A thread that a graph made
    can be read by its id as well; `clear_all` and `stats` leave it out.
    """

    def save(self, checkpoint: SessionCheckpoint, *, lease_token: int | None = None) -> SessionCheckpoint:
        """Store a checkpoint as the newest of its session. Returns it with its id and its time.

        One with an id that the session has takes that one's place. Two that are saved at once are both kept, one after
        the other. Raises SerializationError where the state cannot be stored, with the place of what cannot.

        Args:
            checkpoint: The session's state and the step that made it. Its `checkpoint_id` and `timestamp` are made
                where they are missing.
            lease_token: The token of a lease of the session, where somebody may hold one (docs/how-to/leases.md).
        """
        return self._run(sessions.save(self._context, checkpoint, lease_token))

    def load(self, session_id: str, checkpoint_id: str | None = None) -> SessionCheckpoint | None:
        """Return a checkpoint of a session, by default the newest. Returns None if there is none."""
        return self._run(sessions.load(self._context, session_id, checkpoint_id))

    def list(self, session_id: str, limit: int = 10) -> Checkpoints:
        """Return the newest checkpoints of a session with their states, newest first."""
        return self._run(sessions.list_checkpoints(self._context, session_id, limit))

    def delete(self, session_id: str, checkpoint_id: str | None = None) -> bool:
        """Remove a whole session, or one checkpoint of it. Returns whether it was there.

        The other checkpoints read as before. With its last checkpoint a session is gone.
        """
        return self._run(states.delete(self._context, session_id, checkpoint_id))

    def clear_all(self) -> int:
        """Remove every session that was begun here. Returns how many there were."""
        return self._run(states.clear(self._context, SESSION))

    def stats(self) -> SessionStats:
        """Return how many sessions were begun here, and what they hold. No state is read."""
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

    # The end of what scripts/write_twins.py wrote.
