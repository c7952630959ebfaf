"""The shapes in which the tables of LangGraph's savers are read, the same for SQLite and Postgres."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Namespace(NamedTuple):
    """The checkpoints of one namespace of a thread, counted."""

    thread_id: str
    ns: str
    checkpoints: int
    oldest: str
    newest: str
    bytes: int


class Beside(NamedTuple):
    """The facts about a thread that are not in its checkpoints' rows."""

    writes: int = 0
    bytes: int = 0


class Ref(NamedTuple):
    """The place of a checkpoint."""

    ns: str
    id: str
    parent: str | None
    stamp: Any
    """Tells the row from one that replaces it."""


class WriteRef(NamedTuple):
    """The place of a pending write."""

    ns: str
    checkpoint_id: str
    task_id: str
    idx: int
    stamp: Any


class Write(NamedTuple):
    """A pending write with its value."""

    task_id: str
    task_path: str
    idx: int
    channel: str
    value: Any


class Stored(NamedTuple):
    """A checkpoint: its stored parts, and the channels whose values came with it."""

    checkpoint: Any
    metadata: Any
    new_versions: Mapping[str, Any] | None
    """The channels that may have other values than in the parent; None for all."""


class Reader(Protocol):
    """The questions to a database, all of one transaction."""

    def namespaces(self, thread_id: str | None) -> Sequence[Namespace]:
        """The namespaces of one thread, or of all."""

    def beside(self, thread_id: str | None) -> Mapping[str, Beside]:
        """The facts about threads that are not in their checkpoints' rows, by id."""

    def heads(self, thread_id: str | None) -> Sequence[tuple[str, str]]:
        """Return the threads whose newest checkpoint has an error or an interrupt, with that channel."""

    def refs(self, thread_id: str) -> Sequence[Ref]:
        """The checkpoints of a thread, in any order."""

    def write_refs(self, thread_id: str) -> Sequence[WriteRef]:
        """The pending writes of a thread, in any order."""

    def checkpoint(self, thread_id: str, ref: Ref, parent_versions: Mapping[str, Any]) -> Stored | None:
        """A checkpoint with the values that its parent, of these versions, may not have."""

    def writes(self, thread_id: str, ns: str, checkpoint_id: str) -> Sequence[Write]:
        """The pending writes of a checkpoint, by task and in order."""


class Tables(Protocol):
    """A database with the tables of LangGraph's own saver, which is only read."""

    name: str
    """For messages. It has no password."""

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` in a transaction that reads one moment's rows. It may be called again from the beginning."""
