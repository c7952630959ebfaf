"""The dictionary backend: everything in this process, gone when the saver is.

It keeps the rows that a database would keep, so that it answers for the same semantics; a transaction undoes what
it did when its program fails.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from threadmark.errors import ClosedError, ConfigError
from threadmark.header import Serializer
from threadmark.program import Call, Program, Step, Transaction, play
from threadmark.saver import CACHE_BYTES, Saver
from threadmark.store import (
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
)

T = TypeVar("T")

WriteKey = tuple[str, str, str, int]
"""(namespace, checkpoint_id, task_id, idx)"""


class Thread:
    """One thread's rows. Dictionaries are changed through `Tables.set` and `Tables.unset` only."""

    def __init__(self, epoch: int, deleted_up_to: str = "") -> None:
        self.state: dict[str, Any] = {"epoch": epoch, "live": not deleted_up_to}
        self.deleted_up_to = deleted_up_to
        self.checkpoints: dict[Key, CheckpointRow] = {}
        self.writes: dict[WriteKey, WriteRow] = {}
        self.segments: dict[bytes, bytes] = {}

    @property
    def epoch(self) -> int:
        """Grows whenever rows are removed."""
        return int(self.state["epoch"])


class Tables:
    """All rows, and a journal of what the running transaction changed."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self._journal: list[Callable[[], None]] = []

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Change or add one row."""
        before = partial(table.__setitem__, key, table[key]) if key in table else partial(table.__delitem__, key)
        self._journal.append(before)
        table[key] = value

    def unset(self, table: dict[Any, Any], key: Any) -> None:
        """Remove one row, if it is there."""
        if key in table:
            self._journal.append(partial(table.__setitem__, key, table.pop(key)))

    def commit(self) -> None:
        """Keep what was changed."""
        self._journal.clear()

    def roll_back(self) -> None:
        """Undo what was changed, last first."""
        while self._journal:
            self._journal.pop()()


class MemoryStore(Store):
    """The store operations on dictionaries."""

    def find(self, thread_id: str, ns: str, checkpoint_id: str | None) -> Program[Found | None]:
        def call(tables: Tables) -> Found | None:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return None
            row = _newest(thread, ns) if checkpoint_id is None else thread.checkpoints.get((ns, checkpoint_id))
            if row is None:
                return None
            key = (ns, row.outline.id)
            return Found(thread.epoch, row, [write for write in thread.writes.values() if write[:2] == key], {})

        return (yield from _ask(call))

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        def call(tables: Tables) -> dict[bytes, bytes]:
            held = tables.threads[thread_id].segments if thread_id in tables.threads else {}
            return {key: held[key] for key in keys if key in held}

        return (yield from _ask(call))

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        def call(tables: Tables) -> list[Outline]:
            outlines = [row.outline for thread in tables.threads.values() for row in thread.checkpoints.values()]
            chosen = sorted(filter(partial(_in_scope, scope), outlines), key=_order, reverse=True)
            return [outline for outline in chosen if after is None or _order(outline) < _order(after)][:limit]

        return (yield from _ask(call))

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        def call(tables: Tables) -> list[CheckpointRow]:
            held = tables.threads[thread_id].checkpoints if thread_id in tables.threads else {}
            return [held[key] for key in keys if key in held]

        return (yield from _ask(call))

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        def call(tables: Tables) -> list[WriteRow]:
            held = tables.threads[thread_id].writes if thread_id in tables.threads else {}
            wanted = None if keys is None else set(keys)
            return [row for row in held.values() if wanted is None or row[:2] in wanted]

        return (yield from _ask(call))

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        def call(tables: Tables) -> list[CheckpointRow]:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return []
            row = _newest(thread, ns) if checkpoint_id is None else thread.checkpoints.get((ns, checkpoint_id))
            rows: list[CheckpointRow] = []
            while row is not None and len(rows) < limit:
                rows.append(row)
                row = thread.checkpoints.get((ns, row.outline.parent or ""))
            return rows

        return (yield from _ask(call))

    def epoch(self, thread_id: str) -> Program[int | None]:
        def call(tables: Tables) -> int | None:
            thread = tables.threads.get(thread_id)
            return thread.epoch if thread and thread.state["live"] else None

        return (yield from _ask(call))

    def lock(self, thread_id: str) -> Program[int | None]:
        return self.epoch(thread_id)  # a transaction has the dictionaries to itself

    def add(self, change: Change) -> Program[Added]:
        thread: Thread | None = yield Call(lambda tables: tables.threads.get(change.thread_id))
        if change.epoch is not None and (thread is None or thread.epoch != change.epoch):
            return Added(thread.epoch if thread else 0)
        if thread is None:
            thread = yield Call(partial(_new_thread, thread_id=change.thread_id, now=change.now))
        if _too_late(thread, change):
            return Added(thread.epoch, too_late=True)
        yield Call(partial(_add_segments, thread=thread, segments=change.segments.items()))
        yield Call(partial(_add_checkpoints, thread=thread, rows=change.checkpoints))
        yield Call(partial(_add_writes, thread=thread, rows=change.writes))
        return Added(thread.epoch)

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        def call(tables: Tables) -> dict[bytes, int]:
            held = tables.threads[thread_id].segments if thread_id in tables.threads else {}
            return {key: len(data) for key, data in held.items()}

        return (yield from _ask(call))

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        def call(tables: Tables) -> int:
            thread = tables.threads[thread_id]
            doomed = set(keys)
            for key in doomed:
                tables.unset(thread.checkpoints, key)
            for write_key in [key for key in thread.writes if key[:2] in doomed]:
                tables.unset(thread.writes, write_key)
            for segment in segments:
                tables.unset(thread.segments, segment)
            tables.set(thread.state, "epoch", thread.epoch + 1)
            return thread.epoch

        return (yield from _ask(call))

    def drop(self, thread_id: str, now: int) -> Program[None]:
        def call(tables: Tables) -> None:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return
            ids = [row.outline.id for row in thread.checkpoints.values()]
            ids += [row.checkpoint_id for row in thread.writes.values()]
            tombstone = Thread(max(now, thread.epoch + 1), max([*ids, thread.deleted_up_to]))
            tables.set(tables.threads, thread_id, tombstone)
            old = now - TOMBSTONE_MICROSECONDS
            for other in [key for key, each in tables.threads.items() if each.epoch < old and not each.state["live"]]:
                tables.unset(tables.threads, other)

        yield Call(call)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        def call(tables: Tables) -> None:
            _add_segments(tables, tables.threads[target], tables.threads[source].segments.items())

        yield Call(call)

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        def call(tables: Tables) -> list[str]:
            live = [thread_id for thread_id, thread in tables.threads.items() if thread.state["live"]]
            return sorted(thread_id for thread_id in live if thread_id > after)[:limit]

        return (yield from _ask(call))


def _ask(function: Callable[[Tables], T]) -> Program[T]:
    result: T = yield Call(function)
    return result


def _newest(thread: Thread, ns: str) -> CheckpointRow | None:
    rows = [row for row in thread.checkpoints.values() if row.outline.ns == ns]
    return max(rows, key=lambda row: row.outline.rank, default=None)


def _order(outline: Outline) -> tuple[str, str, str]:
    return outline.rank, outline.thread_id, outline.ns


def _in_scope(scope: Scope, outline: Outline) -> bool:
    return (
        (scope.thread_id is None or outline.thread_id == scope.thread_id)
        and (scope.ns is None or outline.ns == scope.ns)
        and (scope.checkpoint_id is None or outline.id == scope.checkpoint_id)
        and (scope.before is None or outline.rank < scope.before)
        and all(fragment in outline.metadata for fragment in scope.fragments)
    )


def _new_thread(tables: Tables, thread_id: str, now: int) -> Thread:
    thread = Thread(now)
    tables.set(tables.threads, thread_id, thread)
    return thread


def _too_late(thread: Thread, change: Change) -> bool:
    """Whether the change continues a checkpoint that went with the deleted thread."""
    continued = change.continues
    if continued is None or continued > thread.deleted_up_to:
        return False
    return not any(key[1] == continued for key in thread.checkpoints)


def _add_segments(tables: Tables, thread: Thread, segments: Iterable[tuple[bytes, bytes]]) -> None:
    for key, data in segments:
        if key not in thread.segments:
            tables.set(thread.segments, key, data)


def _add_checkpoints(tables: Tables, thread: Thread, rows: Iterable[CheckpointRow]) -> None:
    tables.set(thread.state, "live", value=True)
    for row in rows:
        tables.set(thread.checkpoints, (row.outline.ns, row.outline.id), row)


def _add_writes(tables: Tables, thread: Thread, rows: Iterable[WriteRow]) -> None:
    for row in rows:
        key = row.ns, row.checkpoint_id, row.task_id, row.idx
        if row.idx < 0 or key not in thread.writes:
            tables.set(thread.writes, key, row)


class MemoryDriver:
    """Runs a program at a time, on the caller's thread, and undoes it when it fails."""

    def __init__(self) -> None:
        self._tables: Tables | None = Tables()
        self._lock = threading.Lock()

    def run(self, transaction: Transaction) -> Any:
        """Run the program in one transaction and return its result."""
        with self._lock:
            if self._tables is None:
                raise ClosedError("this saver was closed; make a new one")
            tables = self._tables
            try:
                result = play(transaction.program(), partial(_execute, tables))
            except BaseException:
                tables.roll_back()
                raise
            tables.commit()
            return result

    async def arun(self, transaction: Transaction) -> Any:
        """Like `run`, for asyncio. Nothing here waits, so nothing is gained by another thread."""
        return self.run(transaction)

    def close(self) -> None:
        """Let everything go."""
        with self._lock:
            self._tables = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()


def _execute(tables: Tables, step: Step) -> Any:
    if not isinstance(step, Call):
        raise TypeError(f"the memory backend has no {type(step).__name__}")
    return step.function(tables)


class MemorySaver(Saver):
    """Keeps everything in this process; for tests, and for graphs whose state need not outlive them."""

    def __init__(self, *, serde: Serializer | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), serde=serde, cache_bytes=cache_bytes)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """The saver for `memory:`."""
        if url not in ("memory:", "memory://"):
            raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:'")
        return cls(**options)
