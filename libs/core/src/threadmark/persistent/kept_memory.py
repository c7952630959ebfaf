"""A memory driver whose tables are kept in a file: read when it is made, stored by `sync` and when it is closed.

The tables are kept as plain tuples, one entry for each thread. If there is a pair of databases, its record is an entry
without a name. A deleted thread is among them for as long as the tables remember it. Only the token and the holder of a
lease are kept: it is over when the file is opened again, and the next token is greater.
"""

import asyncio
import os
import threading
from functools import partial
from typing import Any

from threadmark.errors import ClosedError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.tables import Lease, Tables, Thread, heads_of
from threadmark.persistent.dictionary import checked_path
from threadmark.persistent.ending import AtExit
from threadmark.persistent.storage import Storage
from threadmark.runtime.blocks import expect_outside
from threadmark.serde import Serde
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
from threadmark.store.replica import Copied, Replica
from threadmark.store.threads import LeaseRow, ThreadRow

ThreadEntry = tuple[str | None, tuple[Any, ...]]
"""A thread's id, and the rest of it: text, bytes, numbers, None, and tuples of these. None for data of no thread."""


def entries(tables: Tables) -> list[ThreadEntry]:
    """Return everything in the tables."""
    replica = tables.pair["replica"]
    pair: list[ThreadEntry] = [(None, tuple(replica))] if replica.term else []
    return pair + [(thread_id, _entry(thread)) for thread_id, thread in tables.threads.items()]


def tables_of(stored: list[ThreadEntry]) -> Tables:
    """Return the tables that hold these entries."""
    tables = Tables()
    for thread_id, entry in stored:
        if thread_id is None:
            tables.pair["replica"] = Replica(*entry)
        else:
            tables.threads[thread_id] = _thread(thread_id, *entry)
    return tables


def _entry(thread: Thread) -> tuple[Any, ...]:
    lease = thread.lease.row
    return (
        thread.epoch,
        thread.live,
        (thread.deleted_up_to, thread.removed_up_to),
        tuple(thread.row),
        thread.updated_at,
        (lease.token, lease.holder, lease.began),
        tuple((*row.outline, *row[1:]) for row in thread.checkpoints.values()),
        tuple(tuple(row) for row in thread.every_write),
        tuple(thread.segments.items()),
        *_replicated(thread),
    )


_OF_OUTLINE = len(Outline._fields)


def _replicated(thread: Thread) -> tuple[Any, ...]:
    """The part of a thread that is kept for replication; most have none."""
    copied = thread.state["copied"]
    if not thread.position and copied is None:
        return ()
    return thread.position, copied and tuple(copied), tuple(thread.outbox.items())


def _thread(
    thread_id: str,
    epoch: int,
    live: bool,  # noqa: FBT001 - a part of an entry, in their order
    up_to: tuple[str, str],
    row: tuple[Any, ...],
    updated_at: int,
    lease: tuple[int, str, str | None],
    checkpoints: tuple[tuple[Any, ...], ...],
    writes: tuple[tuple[Any, ...], ...],
    segments: tuple[tuple[bytes, bytes], ...],
    position: int = 0,
    copied: tuple[int, int] | None = None,
    outbox: tuple[tuple[int, bytes], ...] = (),
    /,
) -> Thread:
    deleted_up_to, removed_up_to = up_to
    thread = Thread(thread_id, epoch, live=live, deleted_up_to=deleted_up_to)
    thread.state["removed_up_to"] = removed_up_to
    token, holder, began = lease
    thread.state["row"] = ThreadRow(*row)
    thread.state["updated"] = updated_at
    thread.state["lease"] = Lease(LeaseRow(token, 0, holder, began), ttl=0, ends=0)
    for each in checkpoints:
        checkpoint = CheckpointRow(Outline(*each[:_OF_OUTLINE]), *each[_OF_OUTLINE:])
        thread.checkpoints[checkpoint.outline.key] = checkpoint
    thread.heads = heads_of(thread)
    for of_write in writes:
        write = WriteRow(*of_write)
        thread.writes.setdefault(write[:2], {})[write[2:4]] = write
    thread.segments = dict(segments)
    thread.state["position"] = position
    thread.state["copied"] = copied and Copied(*copied)
    thread.outbox = dict(outbox)
    return thread


KIND = "memory saver"


class KeptDriver(MemoryDriver):
    """Runs programs on dictionaries that are kept in a file."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        super().__init__()
        self._closing = threading.RLock()
        self._storage = Storage(checked_path(file), "c", KIND, Serde(allow=()))
        try:
            self._tables = tables_of(self._storage.read())
        except BaseException:
            self._storage.close()
            raise
        self._at_exit = AtExit(self, self._storage.path)

    def __str__(self) -> str:
        return f"the memory of this process, kept in {self._storage.path!r}"

    def sync(self) -> None:
        """Store the threads that have changed, all or nothing. When this returns, they are on the disk."""
        expect_outside(self)
        self._storage.store(self._snapshot)

    def close(self) -> None:
        """Store everything, and drop it. If it cannot be stored, this raises, and nothing is dropped."""
        expect_outside(self)
        with self._closing:
            tables = self._tables
            try:
                with self._turn.lock:
                    self._turn.wait()
                    self._tables = None  # from now on nothing is put that would not be stored
                if tables is not None and self._storage.is_open:
                    tables.roll_back()
                    self._storage.store(partial(entries, tables))
            except BaseException:
                self._tables = tables
                raise
            self._storage.close()
            self._at_exit.forget()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self.until_free()
        await asyncio.to_thread(self.close)

    def __del__(self) -> None:
        if hasattr(self, "_at_exit"):  # it was opened
            try:
                self.close()
            finally:
                self._storage.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork: it goes on with a copy, which is never stored."""
        super()._reset_after_fork()
        self._closing = threading.RLock()

    def _snapshot(self) -> list[ThreadEntry]:
        with self._turn.lock:
            self._turn.wait()
            if self._tables is None:
                raise ClosedError
            self._tables.roll_back()  # the rest of a transaction that was interrupted
            return entries(self._tables)
