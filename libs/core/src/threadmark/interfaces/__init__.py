"""Simple interfaces over any saver, for programs without a graph engine. None has storage of its own.

A session is a thread, a saved state is a checkpoint, and bytes are shared as in any saver. The logic is written once,
as operations; each class has its methods in both APIs.
"""

from threadmark.interfaces.conversations import Conversations
from threadmark.interfaces.interface import Interface
from threadmark.interfaces.sessions import Sessions
from threadmark.interfaces.shapes import SessionCheckpoint, SessionMetadata, SessionStats, StateInfo, StatePage
from threadmark.interfaces.state_cache import SharedCache
from threadmark.interfaces.states import CleanedStates, States

__all__ = [
    "CleanedStates",
    "Conversations",
    "Interface",
    "SessionCheckpoint",
    "SessionMetadata",
    "SessionStats",
    "Sessions",
    "SharedCache",
    "StateInfo",
    "StatePage",
    "States",
]
