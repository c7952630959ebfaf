"""The shapes of states in listings."""

from datetime import datetime
from typing import Any, NamedTuple


class StateInfo(NamedTuple):
    """A saved state without its value."""

    id: str
    thread_id: str
    created_at: datetime
    """When its thread began."""
    updated_at: datetime
    """When this state was saved."""
    metadata: dict[str, Any]
    """What was given with it."""
    size: int | None
    """How many bytes it was encoded in, whatever of it was there before. None where a graph made it."""


class StatePage(NamedTuple):
    """Some states, and the cursor with which the next ones are found; None where these are the last."""

    states: list[StateInfo]
    cursor: str | None
