"""A store around another store that records each change of a thread in the outbox, and remembers the calls."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Program, Transaction
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Key, Store, was_added
from threadmark.store.forwarding import ForwardingStore
from threadmark.store.threads import ThreadRow

T = TypeVar("T")

_OTHERS = ("rewrite", "remove", "drop", "set_thread")
"""Operations that change a thread without a `Change`. The first argument is the thread or names it."""


class Call(NamedTuple):
    """A call that changed something, or tried to."""

    method: str
    args: tuple[Any, ...]
    answer: Any
    """The store's answer."""
    body: bytes
    """The body of the entry."""

    @property
    def position(self) -> int:
        """The position of its entry, 0 if it has none."""
        return self.answer.position if isinstance(self.answer, Added) else 0

    @property
    def is_made_change(self) -> bool:
        """Whether it is a `Change` that was made."""
        return isinstance(self.answer, Added) and was_added(self.args[0], self.answer)


class Recording:
    """The calls made through its `store`, under a term."""

    def __init__(self, term: int | None = None) -> None:
        self.term = term
        self.calls: list[Call] = []

    @property
    def changes(self) -> list[Call]:
        """The calls of `add` and `replace` whose change was made."""
        return [call for call in self.calls if call.is_made_change]

    def done_in_memory(self, program: Callable[[MemoryStore], Program[T]]) -> T:
        """Run a program on a new database in memory that received the same changes. Returns its result."""
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
        return _RecordingStore(store, self)


def _anyway(change: Change) -> Change:
    """Return a made change without the conditions by which it could be refused."""
    return change._replace(epoch=None, token=ANYONE, expects=None, sorts_last=False, term=None, entry=None)


class _RecordingStore(ForwardingStore):
    def __init__(self, store: Store, recording: Recording) -> None:
        super().__init__(store)
        self._recording = recording

    def add(self, change: Change) -> Program[Added]:
        return self._change("add", self._store.add, change)

    def replace(self, change: Change) -> Program[Added]:
        return self._change("replace", self._store.replace, change)

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        return self._other("rewrite", self._store.rewrite, thread_id, rows)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        return self._other("remove", self._store.remove, thread_id, keys, segments)

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        return self._other("drop", self._store.drop, thread_id, now)

    def set_thread(self, row: ThreadRow) -> Program[None]:
        return self._other("set_thread", self._store.set_thread, row)

    def _change(self, name: str, method: Callable[..., Program[Added]], change: Change) -> Program[Added]:
        recording, body = self._recording, self._body(name)
        change = change._replace(term=recording.term, entry=body)
        added = yield from method(change)
        recording.calls.append(Call(name, (change,), added, body))
        return added

    def _other(self, name: str, method: Callable[..., Program[Any]], *args: Any) -> Program[Any]:
        recording, body = self._recording, self._body(name)
        answer = yield from method(*args)
        thread_id = args[0] if isinstance(args[0], str) else args[0].thread_id
        yield from self._store.record(thread_id, body, recording.term or 0)
        recording.calls.append(Call(name, args, answer, body))
        return answer

    def _body(self, name: str) -> bytes:
        made = sum(call.is_made_change or call.method in _OTHERS for call in self._recording.calls)
        return f"{made}: {name}".encode()
