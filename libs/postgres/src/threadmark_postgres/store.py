"""The store operations in SQL: one statement wherever that can be, because each is a round trip."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from threadmark.errors import TransientStoreError
from threadmark.program import Program
from threadmark.store import (
    ANYONE,
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
)
from threadmark.text import from_column, to_column
from threadmark_postgres import sql
from threadmark_postgres.arrays import BatchParams
from threadmark_postgres.columns import (
    change_columns,
    checkpoint_columns,
    checkpoint_row,
    from_id_column,
    from_optional,
    optional,
    outline,
    run_number,
    segment_columns,
    write_columns,
    write_row,
)
from threadmark_postgres.schema import in_schema
from threadmark_postgres.steps import Query, Rows
from threadmark_postgres.thread_store import ATTEMPTS, PostgresThreadStore

_CHECKPOINT, _WRITE, _SEGMENT, _HEAD = range(4)
"""The kinds of rows that `sql.FIND` gives."""


class PostgresStore(PostgresThreadStore, Store):
    """The rows of every saver on one schema. None is the first schema of the connection's search path."""

    def find(self, thread_id: str, ns: str, checkpoint_id: str | None) -> Program[Found | None]:
        """One statement, which includes every segment of the newest checkpoint."""
        namespace = (to_column(thread_id), to_column(ns))
        if checkpoint_id is None:
            rows = yield from self._execute(sql.FIND_NEWEST, *namespace, likely_last=True)
        else:
            rows = yield from self._execute(sql.FIND, *namespace, to_column(checkpoint_id))
        found = newest = owner = None
        writes: list[WriteRow] = []
        segments: dict[bytes, bytes] = {}
        for kind, *columns in rows:
            if kind == _SEGMENT:
                segments[columns[7]] = columns[6]
            elif kind == _CHECKPOINT:
                found = columns
            elif kind == _HEAD:
                newest, owner = from_column(columns[2]), from_optional(columns[9])
            else:
                idx, _, task_path, channel, _, _, value, check, task_id, _, _ = columns
                task = (from_id_column(task_id), idx, from_column(task_path), from_column(channel))
                writes.append(WriteRow(ns, "", *task, value, check))
        if found is None:
            return None if newest is None else Found(0, None, (), {}, newest, owner)
        epoch, created_at, rank, own_id, parent, metadata, header, check, _, owner, expires_at = found
        row = checkpoint_row(thread_id, (namespace[1], own_id, rank, parent, created_at, metadata, header, check))
        writes = [write._replace(checkpoint_id=row.outline.id) for write in writes]
        return Found(epoch, row, writes, segments, newest, from_optional(owner), expires_at)

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        """One statement, whatever their number."""
        rows = yield from self._execute(sql.SEGMENTS, to_column(thread_id), list(keys))
        return dict(rows)

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        """One statement, made of the clauses that the scope asks for."""
        clauses: list[str] = [sql.PAGE_OF_ALL]
        params: list[Any] = [limit]
        for clause, values in _clauses(scope, after):
            numbers = range(len(params) + 1, len(params) + 1 + len(values))
            clauses.append(clause.format(*numbers))
            params += values
        rows = yield from self._execute(sql.PAGE.format(clauses=" AND ".join(clauses)), *params, likely_last=True)
        return [outline(from_column(thread_id), columns) for thread_id, *columns in rows]

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        """One statement, whatever their number."""
        rows = yield from self._execute(sql.ROWS, to_column(thread_id), *_arrays(keys))
        return [checkpoint_row(thread_id, columns) for columns in rows]

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        """One statement, whatever their number."""
        if keys is None:
            rows = yield from self._execute(sql.WRITES_OF_THREAD, to_column(thread_id))
        else:
            rows = yield from self._execute(sql.WRITES, to_column(thread_id), *_arrays(keys))
        return [write_row(columns) for columns in rows]

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        """One recursive statement."""
        start = (to_column(thread_id), to_column(ns), limit)
        if checkpoint_id is None:
            rows = yield from self._execute(sql.CHAIN_FROM_NEWEST, *start)
        else:
            rows = yield from self._execute(sql.CHAIN, *start, to_column(checkpoint_id))
        return [checkpoint_row(thread_id, columns) for columns in rows]

    def epoch(self, thread_id: str) -> Program[int | None]:
        """The live thread's epoch."""
        rows = yield from self._execute(sql.EPOCH, to_column(thread_id))
        return next((epoch for (epoch,) in rows), None)

    def lock(self, thread_id: str) -> Program[int | None]:
        """Lock the thread's row, also that of a deleted thread."""
        rows = yield from self._execute(sql.LOCK, to_column(thread_id))
        return next((epoch for epoch, live in rows if live), None)

    def add(self, change: Change) -> Program[Added]:
        """One statement. More only if a deleted thread begins again, another writer was faster, or the change expects
        a checkpoint to be the newest: then it locks the thread first.
        """
        if change.expects is not None and (refusal := (yield from self._lock_and_judge(change))) is not None:
            return refusal
        waits = chain([sql.AWAIT_REMOVAL], repeat(sql.AWAIT_REVIVAL))
        for _ in range(ATTEMPTS):
            added = yield from self._add_once(change, waits)
            if added is not None:
                return added
        raise TransientStoreError(
            f"thread {change.thread_id!r} was deleted and made again {ATTEMPTS} times meanwhile; try again"
        )

    def replace(self, change: Change) -> Program[Added]:
        """Lock the thread, remove what is to be replaced, and add."""
        epoch = yield from self.lock(change.thread_id)
        if epoch is None:
            return (yield from self.add(change))
        refusal = yield from self._judge(change)
        if refusal is not None:
            return refusal
        thread = to_column(change.thread_id)
        fresh = {row.outline.key: row for row in change.checkpoints}
        stored = yield from self.rows(change.thread_id, list(fresh))
        replaced = any(row.header != fresh[row.outline.key].header for row in stored)
        if stored:
            keys = [(row.outline.ns, row.outline.rank) for row in stored]
            yield from self._execute(sql.REMOVE_REPLACED, thread, *_arrays(keys))
            yield from self._execute(sql.SETTLE_HEADS, thread)
        if replaced:
            yield from self._execute(sql.NEXT_EPOCH, thread)
        added = yield from self.add(change._replace(epoch=None, expects=None))
        return added._replace(replaced=replaced)

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        """One statement."""
        _, ns, _, rank, parent, _, metadata, header, check, *_ = checkpoint_columns(rows, ())
        yield from self._execute(
            sql.REWRITE_CHECKPOINTS, to_column(thread_id), ns, rank, parent, metadata, header, check
        )

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        """One statement."""
        rows = yield from self._execute(sql.SEGMENT_SIZES, to_column(thread_id))
        return dict(rows)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        """Remove and step the epoch on in one statement."""
        thread = to_column(thread_id)
        ((epoch,),) = yield from self._execute(sql.REMOVE, thread, *_arrays(keys), list(segments))
        if keys:
            yield from self._execute(sql.SETTLE_HEADS, thread)
            yield from self._execute(sql.REMOVE_EMPTY_HEADS, thread)
        return int(epoch)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """One statement."""
        rows = yield from self._execute(sql.HEADS, *_texts(thread_id, ns), likely_last=True)
        return [_head(columns) for columns in rows]

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """One statement."""
        rows = yield from self._execute(sql.COUNTED_HEADS, *_texts(thread_id, ns))
        return [_head(columns) for columns in rows]

    def damage(self) -> Program[list[tuple[str, str]]]:
        """Return the rows whose thread is missing, in one statement."""
        rows = yield from self._execute(sql.LOST_ROWS)
        return [(f"table threadmark_{kind}", f"{count} rows belong to no thread") for kind, count in rows]

    def drop(self, thread_id: str, now: int) -> Program[None]:
        """Lock the thread, mark it deleted, and empty it. Then remove the marks of threads deleted long ago."""
        thread = to_column(thread_id)
        rows = yield from self._execute(sql.LOCK, thread)
        if not rows:
            return
        yield from self._execute(sql.BURY_THREAD, thread, now)
        yield from self._execute(sql.EMPTY_THREAD, thread)
        yield from self._execute(sql.FORGET_BURIED, now - TOMBSTONE_MICROSECONDS)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """The bytes never leave the server."""
        yield from self._execute(sql.COPY_SEGMENTS, to_column(source), to_column(target))

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        """One statement."""
        rows = yield from self._execute(sql.THREADS, to_column(after), limit)
        return [from_column(thread_id) for (thread_id,) in rows]

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        """One statement."""
        rows = yield from self._execute(sql.SAMPLE)
        return (bytes(rows[0][0]), bytes(rows[0][1])) if rows else None

    def has_only_langgraph_data(self) -> Program[bool]:
        """One statement, which reads no table of LangGraph's: the role may not be allowed to."""
        ((answer,),) = yield from self._execute(sql.HAS_ONLY_LANGGRAPH_DATA)
        return bool(answer)

    def _lock_and_judge(self, change: Change) -> Program[Added | None]:
        """Lock a thread, also one without a row, and return why a change is refused, None where it is not."""
        if not (yield from self._execute(sql.LOCK, to_column(change.thread_id))):
            refusal = _refusal_without_row(change)
            if refusal is not None:
                return refusal
            yield from self.lock_lease(change.thread_id)
        return (yield from self._judge(change))

    def _judge(self, change: Change) -> Program[Added | None]:
        """Return why a change to a locked thread is refused, None where it is not. Nothing is added."""
        ns = change.checkpoints[0].outline.ns if change.checkpoints else ""
        rows = yield from self._execute(sql.JUDGE, *change_columns(change), to_column(ns))
        ((epoch, refused, too_late, newest),) = rows
        if change.epoch not in (None, epoch):
            return Added(epoch)
        if refused or too_late:
            return Added(epoch, refused, too_late=too_late and not refused)
        if change.expects in (None, from_column(newest)):
            return None
        # Where the checkpoint is there, this may be a second attempt.
        is_there = yield from self.rows(change.thread_id, [row.outline.key for row in change.checkpoints])
        return None if is_there else Added(epoch, "conflict")

    def _add_once(self, change: Change, waits: Iterator[str]) -> Program[Added | None]:
        """Return the outcome of the change, or None if it must be tried again, perhaps after waiting for the thread."""
        thread = to_column(change.thread_id)
        added = Added(0)
        for query in self._adding(change):
            rows: Rows = yield query
            if not rows:
                found = yield from self._execute(next(waits), thread)
                return None if found else _refusal_without_row(change)
            ((_, epoch, live, steady, refused, too_late, renewal, expires_at, *outcome),) = rows
            if change.epoch not in (None, epoch):
                return Added(epoch)
            if not steady:
                return None
            if refused or too_late:
                return Added(epoch, refused, too_late=too_late and not refused)
            if not live:
                yield from self._revive(change)
                return None
            added = _added(change, epoch, *outcome)._replace(renewal=renewal, expires_at=expires_at)
            if added.exists:
                break
        return added

    def _revive(self, change: Change) -> Program[None]:
        owner, expires_at, check = change.beginning
        row = (to_column(change.thread_id), change.token, change.now, optional(owner), expires_at, check or None)
        yield from self._execute(sql.REVIVE_THREAD, *row)

    def _adding(self, change: Change) -> Iterator[Query]:
        likely_last = not (change.checkpoints and change.writes)
        start = (*change_columns(change), *segment_columns(change))
        if change.checkpoints:
            columns = checkpoint_columns(change.checkpoints, change.needs())
            # One statement that added a checkpoint under two ranks would see no row to replace, and add both.
            ranked_by_id = all(row.outline.rank == row.outline.id for row in change.checkpoints)
            params = (*start, *columns)
            query = in_schema(sql.ADD_CHECKPOINTS, self._schema)
            yield Query(query, BatchParams(params) if ranked_by_id else params, likely_last)
        if change.writes or not change.checkpoints:
            columns = write_columns(change.writes)
            special = any(row.idx < 0 for row in change.writes)
            statement = sql.ADD_SPECIAL_WRITES if special else sql.ADD_WRITES
            yield Query(in_schema(statement, self._schema), BatchParams((*start, *columns)), likely_last)


def _refusal_without_row(change: Change) -> Added | None:
    """Return why a change is refused where its thread has no row, None where it begins the thread."""
    if change.epoch is not None:
        return Added(0)
    if change.token not in (None, 0, ANYONE):
        return Added(0, "lost")
    return Added(0, "conflict") if change.expects else None


def _added(change: Change, epoch: int, *outcome: Any) -> Added:
    """Return what became of an accepted change, from the last columns of its judgement.

    They say whether one of its checkpoints is there already; or, of special writes, which were replaced.
    """
    if len(outcome) == 1:
        return Added(epoch, exists=outcome[0])
    special = {row.idx: row for row in change.writes if row.idx < 0}
    old = zip(*(each or () for each in outcome), strict=True)
    return Added(epoch, replaced_writes=[special[idx]._replace(value=value) for idx, value in old])


def _head(columns: Sequence[Any]) -> Head:
    thread_id, ns, newest, checkpoints = columns
    return Head(from_column(thread_id), from_column(ns), from_column(newest), checkpoints)


def _texts(*names: str | None) -> list[str | None]:
    return [None if name is None else to_column(name) for name in names]


def _arrays(keys: Sequence[Key]) -> tuple[list[str], list[str]]:
    return [to_column(ns) for ns, _ in keys], [to_column(checkpoint_id) for _, checkpoint_id in keys]


def _clauses(scope: Scope, after: Outline | None) -> Iterator[tuple[str, list[Any]]]:
    if scope.thread_id is not None:
        yield sql.PAGE_OF_THREAD, [to_column(scope.thread_id)]
    if scope.ns is not None:
        yield sql.PAGE_OF_NAMESPACE, [to_column(scope.ns)]
    if scope.checkpoint_id is not None:
        yield sql.PAGE_WITH_ID, [to_column(scope.checkpoint_id)]
    if scope.before is not None:
        yield sql.PAGE_BEFORE, [to_column(scope.before)]
    if scope.run_id is not None:
        yield sql.PAGE_OF_RUN, [run_number(scope.run_id)]
    if scope.owner is not None:
        yield sql.PAGE_OF_OWNER, [to_column(scope.owner)]
    for fragment in scope.fragments:
        yield sql.PAGE_WITH_FRAGMENT, [to_column(fragment)]
    if after is not None:
        yield sql.PAGE_AFTER, [to_column(text) for text in (after.rank, after.thread_id, after.ns)]
