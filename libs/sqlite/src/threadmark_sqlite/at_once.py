"""Adds the rows of ordinary changes with fewer statements than the program in `adding` needs.

A thread that was read before is not read again: the statement that adds to it checks that the thread has not changed,
and adds nothing if it has. The program handles all other cases: a thread that is missing or leased, and a change that
may be refused or that replaces something.
"""

from collections.abc import Callable, Mapping, Sequence
from sqlite3 import IntegrityError, OperationalError
from typing import Any, NamedTuple

from threadmark.backends import FIRST_RECORD, PACK, Added, Change, CheckpointRow, WriteRow, to_column
from threadmark_sqlite.adding import segment_inserts, write_inserts
from threadmark_sqlite.columns import checkpoint_columns, id_column, text_or_null, write_columns
from threadmark_sqlite.placeholders import with_rows
from threadmark_sqlite.sql import adding
from threadmark_sqlite.sql.expressions import MINUTE

_MOST_KNOWN = 256
"""How many threads are remembered."""

_RECORD = with_rows(adding.ADD_RECORDS, adding.ROW_OF_WRITE, 1)
_WITH_A_RECORD = 2
"""The rows of a pack and its record."""

_WRITE_COLUMNS = adding.ROW_OF_WRITE.count("?")

Run = Callable[..., Any]
"""`execute` of a connection, which returns a cursor."""


class _Plain(NamedTuple):
    """A thread that exists, was never deleted and has no lease: the columns of `sql.adding.PLAIN_THREAD`."""

    number: int
    epoch: int
    owner: str | None
    expires_at: int | None
    minute: int | None


class Adder:
    """Adds the rows of ordinary changes."""

    def __init__(self) -> None:
        self._known: dict[str, _Plain] = {}
        """Threads that were found, by the column of their names.

        An entry may be of another database, or outdated; the statement that relies on it checks it.
        """

    def __call__(self, run: Run, change: Change) -> Added | None:
        """Add the rows of a change. Returns the outcome, or None if the program has to handle the change.

        If it returns None, nothing was changed.
        """
        ordinary = _ordinary_writes(change.writes)
        if ordinary is None or not _is_simple(change):
            return None
        name = to_column(change.thread_id)
        row = change.checkpoints[0] if change.checkpoints else None
        has_pack = ordinary > 0 and change.writes[0].idx == PACK
        if row is None and has_pack and not change.touches:
            made = self._add_pack_to_same(run, name, change)
            if made is not None:
                return made
        thread = None if row is None else self._add_to_same_head(run, name, change, row)
        if thread is None:
            thread = _found(run, name, row)
            if thread is None or not _admits(thread, change) or not _add_checkpoint(run, name, thread, row):
                return None
            self._remember(name, thread)
        if follows := row is not None and _is_of_another_minute(thread, row):
            self._remember(name, thread._replace(minute=change.checkpoints[0].outline.created_at // MINUTE))
        if change.segments:
            _add_segments(run, thread.number, change.segments)
        _touch(run, name, thread, change, follows=follows)
        if not change.writes:
            return _made(thread, pack_left_out=False)
        count = _add_writes(run, thread.number, adding.ADD_WRITES, change.writes[:ordinary])
        _add_writes(run, thread.number, adding.ADD_RECORDS, change.writes[ordinary:])
        return _made(thread, pack_left_out=has_pack and count < ordinary)

    def _remember(self, name: str, thread: _Plain) -> None:
        """Remember a thread if nothing will expire."""
        if thread.expires_at is not None:
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name] = thread

    def _add_pack_to_same(self, run: Run, name: str, change: Change) -> Added | None:
        """Add a pack with its record and segments to a thread that has not changed. Returns the outcome.

        Returns None, and adds nothing, if the thread has changed or already has a pack of this task.
        """
        thread = self._known.get(name)
        if thread is None or len(change.writes) != _WITH_A_RECORD or change.only_owner or not _admits(thread, change):
            return None
        columns = write_columns(thread.number, change.writes)
        of_pack, of_record = columns[:_WRITE_COLUMNS], columns[_WRITE_COLUMNS:]
        if run(adding.ADD_PACK_OF_SAME, (*of_pack, thread.number, name, thread.epoch)).rowcount != 1:
            self._known.pop(name, None)
            return None
        if change.segments:
            _add_segments(run, thread.number, change.segments)
        run(_RECORD, of_record)
        return _made(thread, pack_left_out=False)

    def _add_to_same_head(self, run: Run, name: str, change: Change, row: CheckpointRow) -> _Plain | None:
        """Add the newest checkpoint to a thread that has not changed since it was found. Returns the thread.

        Returns None, and adds nothing, if the thread has changed or the checkpoint is not the newest. A checkpoint
        without a parent may be the first of its namespace, which has no head yet.
        """
        outline = row.outline
        thread = self._known.get(name)
        if thread is None or outline.id != outline.rank or outline.parent is None:
            return None
        if thread.owner is not None or not _admits(thread, change):
            return None
        columns = checkpoint_columns(thread.number, row)
        if not _add_row(run, columns):
            return None
        _, ns, rank, *_ = columns
        created_at = outline.created_at
        of_head = rank, created_at, id_column(outline.id), name, ns, rank, created_at
        proof = thread.number, thread.epoch, thread.minute, rank
        if run(adding.ADD_TO_HEAD_OF_SAME, (*of_head, *proof)).rowcount == 1:
            return thread
        run(adding.TAKE_BACK, columns[:3])
        self._known.pop(name, None)
        return None


def _is_simple(change: Change) -> bool:
    """Return whether a change only adds rows, and can only be refused because of the thread's epoch or owner."""
    return (
        change.token is None
        and change.expects is None
        and change.term is None
        and change.entry is None
        and change.copied is None
        and not change.sorts_last
        and len(change.checkpoints) <= 1
    )


def _ordinary_writes(writes: Sequence[WriteRow]) -> int | None:
    """Return how many writes come before the records of batches. Those of one task are counted from the first on.

    Returns None if there are special writes, writes that follow records, or packs together with other rows.
    """
    count = packs = 0
    for seen, row in enumerate(writes):
        index = row.idx
        if index < 0 or (index < FIRST_RECORD and count < seen):
            return None
        if PACK <= index < FIRST_RECORD:
            if index != PACK + packs:
                return None
            packs += 1
        count += index < FIRST_RECORD
    return None if packs and packs < count else count


def _admits(thread: _Plain, change: Change) -> bool:
    """Return whether the thread admits a change that expects an epoch, or that only the owner may make."""
    if change.epoch is not None and change.epoch != thread.epoch:
        return False
    return not change.only_owner or thread.owner == text_or_null(change.beginning.owner)


def _found(run: Run, name: str, row: CheckpointRow | None) -> _Plain | None:
    """Return the thread if it is plain and does not have this checkpoint under another rank."""
    try:
        if row is None:
            rows = run(adding.PLAIN_THREAD, (name,)).fetchall()
        else:
            _, ns, checkpoint_id, rank, *_ = row.outline
            if checkpoint_id != rank:
                return None
            asked = name, to_column(ns), to_column(checkpoint_id)
            rows = run(adding.PLAIN_THREAD_WITHOUT, asked).fetchall()
    except OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        return None  # raised by sqlite3 for damaged text, which the program can read all the same
    return _Plain(*rows[0]) if rows else None


def _add_checkpoint(run: Run, name: str, thread: _Plain, row: CheckpointRow | None) -> bool:
    """Add a checkpoint whose rank is its id, if there is one, and update its head. Returns whether it was new."""
    if row is None:
        return True
    columns = checkpoint_columns(thread.number, row)
    if not _add_row(run, columns):
        return False
    _, ns, rank, *_ = columns
    run(adding.ADD_TO_HEAD, (name, ns, rank, row.outline.created_at, id_column(row.outline.id)))
    return True


def _add_row(run: Run, columns: tuple[Any, ...]) -> bool:
    """Add a checkpoint under its rank. Returns whether it was new."""
    try:
        run(adding.ADD_UNDER_RANK, columns[:3] + columns[4:])
    except IntegrityError:
        return False
    return True


def _is_of_another_minute(thread: _Plain, row: CheckpointRow) -> bool:
    """Return whether a checkpoint may move the thread's last update to another minute."""
    return not row.outline.ns and row.outline.created_at // MINUTE != thread.minute


def _touch(run: Run, name: str, thread: _Plain, change: Change, *, follows: bool) -> None:
    """Record an update of a thread for listings, if the change is one; `follows` if its checkpoint may be one."""
    if change.touches:
        run(adding.TOUCH, (change.now, name))
        follows = follows or change.now // MINUTE != thread.minute
    if follows:
        run(adding.FOLLOW_HEAD, (thread.number,))


def _add_segments(run: Run, number: int, segments: Mapping[bytes, bytes]) -> None:
    for statement, columns in segment_inserts(number, segments):
        run(statement, columns)


def _add_writes(run: Run, number: int, statement: str, rows: Sequence[WriteRow]) -> int:
    """Add writes. Returns how many were new."""
    return sum(run(insert, columns).rowcount for insert, columns, _ in write_inserts(number, statement, rows))


def _made(thread: _Plain, *, pack_left_out: bool) -> Added:
    """Return the outcome of a change that was made and that replaced nothing."""
    return Added(thread.epoch, replaced_writes=[], expires_at=thread.expires_at, pack_left_out=pack_left_out)
