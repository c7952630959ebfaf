"""Adding and replacing rows of one thread: what a change is refused for, and the statement that judges and inserts."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from threadmark.errors import TransientStoreError
from threadmark.names import from_column, to_column
from threadmark.program import Program
from threadmark.store.contract import ANYONE, Added, Change, Key, Refusal, Store, was_added
from threadmark_postgres.arrays import BatchParams, Texts
from threadmark_postgres.columns import (
    change_columns,
    checkpoint_alone,
    checkpoint_columns,
    entry_columns,
    optional,
    segment_columns,
    write_columns,
    writes_alone,
)
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import adding, adding_alone, fencing, judging, removing, replication
from threadmark_postgres.steps import Query, Rows
from threadmark_postgres.thread_store import PostgresThreadStore

_ATTEMPTS = 16
"""How often a change is judged again because another writer was faster."""

_ACCEPTED_COLUMNS = 4, 6
"""How many columns a row of the shorter statements has, and where the change may be recorded."""


class AddingStore(PostgresThreadStore, Store):
    """The part of the store that adds."""

    def add(self, change: Change) -> Program[Added]:
        """One statement. More only if a deleted thread begins again, another writer was faster, or it matters which
        checkpoint is the newest: then it locks the thread first.
        """
        if change.has_place:
            if (outcome := (yield from self._lock_and_judge(change))) is not None:
                return outcome
        elif (alone := self._alone(change)) is not None:
            rows: Rows = yield alone
            if rows and (added := (yield from self._outcome_alone(change, rows))) is not None:
                return added
        waits = chain([judging.AWAIT_REMOVAL], repeat(judging.AWAIT_REVIVAL))
        for _ in range(_ATTEMPTS):
            added = yield from self._add_once(change, waits)
            if added is not None:
                return added
        raise TransientStoreError(
            f"thread {change.thread_id!r} was deleted and made again {_ATTEMPTS} times meanwhile; try again"
        )

    def replace(self, change: Change) -> Program[Added]:
        """Lock the thread, remove what is to be replaced, and add."""
        epoch = yield from self.lock(change.thread_id)
        if epoch is None:
            return (yield from self.add(change))
        if (yield from self.is_outdated(change)):
            return Added(0, "term")
        outcome = yield from self._judge(change)
        if outcome is not None and not outcome.exists:
            return outcome
        thread = to_column(change.thread_id)
        fresh = {row.outline.key: row for row in change.checkpoints}
        stored = yield from self.rows(change.thread_id, list(fresh))
        replaced = any(row.header != fresh[row.outline.key].header for row in stored)
        if stored:
            keys = [(row.outline.ns, row.outline.rank) for row in stored]
            yield from self._execute(removing.REMOVE_REPLACED, thread, *keys_as_arrays(keys))
            yield from self._execute(removing.SETTLE_HEADS, thread)
        if replaced:
            yield from self._execute(removing.NEXT_EPOCH, thread)
        # It was judged; that the checkpoint it continues is one of those that were removed now does not matter.
        judged = change._replace(epoch=None, continues=None, expects=None, sorts_last=False)
        added = yield from self.add(judged)
        return added._replace(replaced=replaced)

    def _lock_and_judge(self, change: Change) -> Program[Added | None]:
        """Lock a thread, also one without a row, and return why nothing is to be added, None where it is."""
        ((epoch, _),) = yield from self._execute(judging.LOCK, to_column(change.thread_id))
        if epoch is None:
            refusal = yield from self._refusal_without_row(change)
            if refusal is not None:
                return refusal
            yield from self.lock_lease(change.thread_id)
        return (yield from self._judge(change))

    def _judge(self, change: Change) -> Program[Added | None]:
        """Return why a change to a locked thread is refused, or that a checkpoint exists; None where it may be added.

        Nothing is added here. A checkpoint that exists may be a second attempt, whatever the change expects.
        """
        ns = change.checkpoints[0].outline.ns if change.checkpoints else ""
        ids = Texts(to_column(row.outline.id) for row in change.checkpoints)
        params = (*change_columns(change), to_column(ns), ids)
        if _is_fenced(change):
            rows = yield from self._execute(fencing.judging(judging.JUDGE), *params, *entry_columns(change))
        else:
            rows = yield from self._execute(judging.JUDGE, *params)
        ((epoch, refused, too_late, newest, is_there),) = rows
        refusal = _refusal(change, epoch, refused, too_late)
        if refusal is not None:
            return refusal
        if is_there:
            return Added(epoch, exists=True)
        return None if change.may_follow(from_column(newest)) else Added(epoch, "conflict")

    def _add_once(self, change: Change, waits: Iterator[str]) -> Program[Added | None]:
        """Return the outcome of the change, or None if it must be tried again, perhaps after waiting for the thread."""
        thread = to_column(change.thread_id)
        added: Added | None = None
        for query in self._adding(change):
            rows: Rows = yield query
            if not rows:
                found = yield from self._execute(next(waits), thread)
                return None if found else (yield from self._refusal_without_row(change))
            outcome = yield from self._outcome(change, rows)
            if outcome is None or not was_added(change, outcome):
                return outcome
            if added is not None:  # both its kinds of rows are one change, which the first statement recorded
                outcome = outcome._replace(position=added.position, previous=added.previous)
            added = outcome
        if change.touches and not change.checkpoints:
            yield from self._execute(adding.TOUCH, thread, change.now)
        return added

    def _outcome(self, change: Change, rows: Rows) -> Program[Added | None]:
        """Return what became of a change that was judged, or None if it must be tried again."""
        ((_, epoch, live, steady, refused, too_late, renewal, expires_at, *outcome),) = rows
        position = previous = None
        if _is_fenced(change):
            position, previous, *outcome = outcome
        if change.epoch in (None, epoch) and not steady:
            return None
        if (refusal := _refusal(change, epoch, refused, too_late)) is not None:
            return refusal
        if not live:
            yield from self._revive(change)
            return None
        added = _added(change, epoch, *outcome)
        if added.exists:
            return added
        return added._replace(
            renewal=renewal or 0, expires_at=expires_at, position=position or 0, previous=previous or 0
        )

    def _outcome_alone(self, change: Change, rows: Rows) -> Program[Added | None]:
        """Like `_outcome`, of the shorter statement, which has a row for an accepted change only.

        Where it shared a statement with others, that one judged it.
        """
        (row,) = rows
        if len(row) not in _ACCEPTED_COLUMNS:
            return (yield from self._outcome(change, rows))
        epoch, is_there, renewal, expires_at, *numbers = row
        if is_there and change.checkpoints:
            return Added(epoch, exists=True)
        added = Added(epoch, renewal=renewal or 0, expires_at=expires_at, pack_left_out=is_there)
        return added._replace(position=numbers[0] or 0, previous=numbers[1] or 0) if numbers else added

    def _refusal_without_row(self, change: Change) -> Program[Added | None]:
        """Return why a change is refused where its thread has no row, None where it begins the thread."""
        if (yield from self.is_outdated(change)):
            return Added(0, "term")
        return _refusal_without_row(change)

    def is_outdated(self, change: Change) -> Program[bool]:
        """Whether the database has a greater term than the change. If not, it stays so until the transaction ends."""
        if change.term is None:
            return False
        yield from self._execute(replication.HOLD_TERM)
        ((is_outdated,),) = yield from self._execute(replication.IS_OUTDATED, change.term)
        return bool(is_outdated)

    def _revive(self, change: Change) -> Program[None]:
        owner, expires_at, check = change.beginning
        row = (to_column(change.thread_id), change.token, change.now, optional(owner), expires_at, check or None)
        yield from self._execute(judging.REVIVE_THREAD, *row)

    def _alone(self, change: Change) -> Query | None:
        """Return the shorter statement for a change that has no place, None where only the others can add it."""
        if not change.continues or change.touches:
            return None
        if change.only_owner and change.beginning.owner is None:  # there NULL stands for anybody
            return None
        recorded = _is_fenced(change)
        statement, params = shorter(change, recorded=recorded)
        if params is None:
            return None
        kind = "writes" if change.writes else "checkpoint"
        if recorded:
            statement, params = fencing.alone(statement), (*params, change.term, change.entry)
            kind = f"{kind}, recorded"
        query = in_schema(statement, self._schema)
        return Query(query, params, likely_last=True, shared=lambda: next(self._adding(change)), kind=kind)

    def _adding(self, change: Change) -> Iterator[Query]:
        # What shares a statement with others must end with it.
        likely_last = not (change.checkpoints and change.writes) and (bool(change.checkpoints) or not change.touches)
        start = (*change_columns(change), *segment_columns(change))
        end = entry_columns(change) if _is_fenced(change) else ()
        if change.checkpoints:
            columns = checkpoint_columns(change.checkpoints, change.needs())
            # One statement that added a checkpoint under two ranks would see no row to replace, and add both.
            ranked_by_id = all(row.outline.rank == row.outline.id for row in change.checkpoints)
            params = (*start, *columns, *end)
            statement = adding.ADD_TOUCHING_CHECKPOINTS if change.touches else adding.ADD_CHECKPOINTS
            query = self._adding_statement(statement, change)
            yield Query(query, BatchParams(params) if ranked_by_id else params, likely_last)
            end = end and entry_columns(change._replace(entry=None))  # one entry is enough for both
        if change.writes or not change.checkpoints:
            columns = write_columns(change.writes)
            special = any(row.idx < 0 for row in change.writes)
            statement = adding.ADD_SPECIAL_WRITES if special else adding.ADD_WRITES
            query = self._adding_statement(statement, change)
            yield Query(query, BatchParams((*start, *columns, *end)), likely_last)

    def _adding_statement(self, statement: str, change: Change) -> str:
        statement = statement if change.epoch is None else judging.for_begun(statement)
        return in_schema(fencing.recording(statement) if _is_fenced(change) else statement, self._schema)


def keys_as_arrays(keys: Sequence[Key]) -> tuple[Texts, Texts]:
    """Return the columns of keys as two parameters."""
    return Texts(to_column(ns) for ns, _ in keys), Texts(to_column(checkpoint_id) for _, checkpoint_id in keys)


def shorter(change: Change, *, recorded: bool) -> tuple[str, tuple[Any, ...] | None]:
    """Return the shorter statement for the rows of a change with its parameters, None where it is not for these.

    What follows another database, or is recorded for others, takes more rows than these, and all of them in one order.
    """
    if change.writes:
        statement, params = adding_alone.ADD_WRITES_ALONE, writes_alone(change)
    else:
        statement = adding_alone.ADD_CHECKPOINT_IN_ORDER if recorded else adding_alone.ADD_CHECKPOINT_ALONE
        params = checkpoint_alone(change)
    if not change.segments:
        statement = adding_alone.without_segments(statement)
    return (adding_alone.without_token(statement) if change.token is None else statement), params


def _is_fenced(change: Change) -> bool:
    """Whether its statement compares terms and records it."""
    return change.term is not None or change.entry is not None


def _refusal(change: Change, epoch: int, refused: Refusal | None, too_late: bool) -> Added | None:  # noqa: FBT001
    """Return why a change is refused, from the columns of its judgement, None where it is not."""
    if refused == "term":
        return Added(0, refused)
    if change.epoch not in (None, epoch):
        return Added(epoch)
    if refused is not None:
        return Added(epoch, refused)
    return Added(epoch, too_late=True) if too_late else None


def _refusal_without_row(change: Change) -> Added | None:
    """Return why a change is refused where its thread has no row, None where it begins the thread."""
    if change.epoch is not None:
        return Added(0)
    if change.token not in (None, 0, ANYONE):
        return Added(0, "lost")
    return Added(0, "conflict") if change.expects else None


def _added(change: Change, epoch: int, *outcome: Any) -> Added:
    """Return what became of an accepted change, from the last columns of its judgement.

    They say whether one of its checkpoints is there already; or, of writes, whether a pack is, and which special ones
    were replaced.
    """
    is_there, *old_columns = outcome
    if not old_columns:
        return Added(epoch, exists=is_there)
    special = {row.idx: row for row in change.writes if row.idx < 0}
    old = zip(*(each or () for each in old_columns), strict=True)
    replaced = [special[idx]._replace(value=value) for idx, value in old]
    return Added(epoch, replaced_writes=replaced or (), pack_left_out=is_there)
