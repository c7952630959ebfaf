"""A store around another store that records each change of a thread in the outbox, and remembers what was called."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Program, Transaction
from threadmark.replica_store import ReplicaStore
from threadmark.store import ANYONE, Added, Change, Store, was_added

T = TypeVar("T")

_OTHERS = ("rewrite", "remove", "drop", "set_thread")
"""What changes a thread without a `Change`. The thread is, or is named by, the first argument."""


class Call(NamedTuple):
    """A call that changed something, or tried to."""

    method: str
    args: tuple[Any, ...]
    answer: Any
    """What the store answered."""
    body: bytes
    """Of its entry."""

    @property
    def position(self) -> int:
        """That of its entry, 0 if it has none."""
        return self.answer.position if isinstance(self.answer, Added) else 0

    @property
    def is_made_change(self) -> bool:
        """Whether it is a `Change` that was made."""
        return isinstance(self.answer, Added) and was_added(self.args[0], self.answer)


class Recording:
    """What is done through its `store`, under a term."""

    def __init__(self, term: int | None = None) -> None:
        self.term = term
        self.calls: list[Call] = []

    @property
    def changes(self) -> list[Call]:
        """The calls of `add` and `replace` whose change was made."""
        return [call for call in self.calls if call.is_made_change]

    def done_in_memory(self, program: Callable[[MemoryStore], Program[T]]) -> T:
        """Run a program on a new database in memory that was given the same changes. Returns its result."""
        store = MemoryStore()

        def changed() -> Program[T]:
            for call in self.calls:
                if call.is_made_change:
                    yield from getattr(store, call.method)(_anyway(call.args[0]))
                elif call.method in _OTHERS:
                    yield from getattr(store, call.method)(*call.args)
            return (yield from program(store))

        return MemoryDriver().run(Transaction(changed, writes=True))

    def store(self, store: Store) -> Store:
        """Return a store that answers like another one, and gives each change an entry."""
        return cast("Store", _RecordingStore(store, self))  # it has whatever the other one has


def _anyway(change: Change) -> Change:
    """A change that was made, without what it could be refused for."""
    return change._replace(epoch=None, token=ANYONE, expects=None, sorts_last=False, term=None, entry=None)


class _RecordingStore:
    def __init__(self, store: Store, recording: Recording) -> None:
        self._store = cast("ReplicaStore", store)
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Program[Any]] = getattr(self._store, name)
        if name in ("add", "replace"):
            return lambda change: self._change(name, method, change)
        if name in _OTHERS:
            return lambda *args: self._other(name, method, args)
        return method

    def _change(self, name: str, method: Callable[..., Program[Added]], change: Change) -> Program[Added]:
        recording, body = self._recording, self._body(name)
        change = change._replace(term=recording.term, entry=body)
        added = yield from method(change)
        recording.calls.append(Call(name, (change,), added, body))
        return added

    def _other(self, name: str, method: Callable[..., Program[Any]], args: tuple[Any, ...]) -> Program[Any]:
        recording, body = self._recording, self._body(name)
        answer = yield from method(*args)
        thread_id = args[0] if isinstance(args[0], str) else args[0].thread_id
        yield from self._store.record(thread_id, body, recording.term or 0)
        recording.calls.append(Call(name, args, answer, body))
        return answer

    def _body(self, name: str) -> bytes:
        return f"{len(self._recording.calls)}: {name}".encode()
