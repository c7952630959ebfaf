"""The store operations for replication, in SQL."""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import (
    Copied,
    Entry,
    Key,
    Program,
    Replica,
    RowMarks,
    Summary,
    Waiting,
    WriteKey,
    from_column,
    to_column,
)
from threadmark_postgres.arrays import Texts
from threadmark_postgres.columns import from_id_column
from threadmark_postgres.sql import replication
from threadmark_postgres.thread_store import PostgresThreadStore

_WRITE, _SEGMENT = 1, 2
"""The kinds of rows that `sql.replication.MARKS` returns in addition to checkpoints."""


class PostgresReplicaStore(PostgresThreadStore):
    """The data that one schema keeps for replication."""

    def replica(self) -> Program[Replica]:
        rows = yield from self._execute(replication.REPLICA, likely_last=True)
        return _replica(rows[0]) if rows else Replica()

    def set_replica(self, replica: Replica) -> Program[Replica]:
        """The same term waits for no lock. A greater one waits until additions under the smaller one are committed."""
        term, body = replica.term, to_column(replica.body)
        if rows := (yield from self._execute(replication.SET_REPLICA_BODY, term, body)):
            return _replica(rows[0])
        there = yield from self.replica()
        if there.term > term:
            return there
        yield from self._execute(replication.LIMIT_WAIT)
        yield from self._execute(replication.LOCK_TERM)
        yield from self._execute(replication.RAISE_TERM, term, body)
        return (yield from self.replica())

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        """One call of a server function."""
        ((position,),) = yield from self._execute(replication.RECORD, to_column(thread_id), body, term)
        return None if position is None else int(position)

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        if thread_id is None:
            rows = yield from self._execute(replication.OUTBOX, limit, likely_last=True)
        else:
            rows = yield from self._execute(replication.OUTBOX_OF_THREAD, limit, to_column(thread_id))
        return [Entry(from_column(name), position, body) for name, position, body in rows]

    def waiting(self) -> Program[Waiting]:
        ((entries, oldest),) = yield from self._execute(replication.WAITING, likely_last=True)
        return Waiting(entries, oldest)

    def settle(self, thread_id: str, position: int) -> Program[None]:
        yield from self._execute(replication.SETTLE, to_column(thread_id), position)

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        rows = yield from self._execute(replication.POSITIONS, _names(thread_ids))
        return {from_column(name): position for name, position in rows}

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        rows = yield from self._execute(replication.COPIED, _names(thread_ids))
        return {from_column(name): Copied(position, epoch) for name, position, epoch in rows}

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        yield from self._execute(replication.SET_COPIED, to_column(thread_id), *copied)

    def marks(self, thread_id: str) -> Program[RowMarks]:
        """One statement."""
        rows = yield from self._execute(replication.MARKS, to_column(thread_id))
        checkpoints: dict[Key, tuple[str, bytes]] = {}
        writes: dict[WriteKey, bytes] = {}
        segments: dict[bytes, tuple[int, bytes]] = {}
        for kind, ns, checkpoint_id, rank, key, number, mark in rows:
            if kind == _SEGMENT:
                segments[key] = number, mark
            elif kind == _WRITE:
                writes[from_column(ns), from_column(checkpoint_id), from_id_column(key), number] = mark
            else:
                checkpoints[from_column(ns), from_column(checkpoint_id)] = from_column(rank), mark
        return RowMarks(checkpoints, writes, segments)

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        """Two statements; the second one returns a row for each thread."""
        names = yield from self._execute(replication.NAMES_OF_LIVE, to_column(after), limit)
        rows = yield from self._execute(replication.SUMMARIES, Texts(name for (name,) in names))
        return [
            Summary(from_column(name), epoch, position, from_column(newest), *counted)
            for name, epoch, position, newest, *counted in rows
        ]


def _replica(columns: Sequence[Any]) -> Replica:
    term, body = columns
    return Replica(term, from_column(body))


def _names(thread_ids: Sequence[str]) -> Texts:
    return Texts(sorted(map(to_column, {*thread_ids})))
