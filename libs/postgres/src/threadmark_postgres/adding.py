"""Adding and replacing rows of one thread: each is one call of a server function."""

from collections.abc import Callable, Sequence

from threadmark.backends import Added, Change, Key, Program, Store, StoreError, TransientStoreError, to_column
from threadmark_postgres.arrays import Texts
from threadmark_postgres.columns import any_rows, one_row, size_of
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import adding, threads
from threadmark_postgres.steps import Query, Rows
from threadmark_postgres.thread_store import PostgresThreadStore

_ATTEMPTS = 16
"""How often a change is tried again because another client deleted the thread or stored its checkpoint."""

BEGIN = "begin"
"""The outcome of a call that did nothing and is to be made again: the thread is missing, deleted, or locked while the
call does not wait; or the transaction would not see changes that are committed during a wait. The driver has begun one
of ours by then (`Query.likely_last`)."""


_LARGE = 64 * 1024
"""A change of this many bytes or more is sent alone: it gains nothing from a batch and would delay the others."""

_LARGEST = 2**30 - 2**24
"""The most bytes of a change. A message of Postgres has less than 1 GiB; the rest is for names and lengths. The server
ends the connection of a client that sends a longer one, which looks like a failure that passes."""

_MOST_RESTARTS = 10_000
"""A store remembers of so many threads that their epoch has ended since the server started again."""


class AddingStore(PostgresThreadStore, Store):
    """The part of the store that adds rows.

    A server that crashed, or took over, may lack changes that were acknowledged, and with them segments that a saver
    remembers. So a change that relies on an epoch also relies on the start of the server that the saver found first,
    which `first_start` returns. After another start a thread's epoch ends, once, and the saver reads its rows again.
    """

    def __init__(self, schema: str | None, first_start: Callable[[], int | None] = lambda: None) -> None:
        super().__init__(schema)
        self._first_start = first_start
        self._restarts: dict[str, tuple[int, int]] = {}
        """By thread: the start of the server at which its epoch ended, and the epoch that began then."""

    def add(self, change: Change) -> Program[Added]:
        """One call. A second one follows only if a removal holds the thread, or the head does not tell enough."""
        return self._add(change, replaces=False)

    def replace(self, change: Change) -> Program[Added]:
        """One call, which locks the thread and removes the rows that are replaced."""
        return self._add(change, replaces=True)

    def _add(self, change: Change, *, replaces: bool) -> Program[Added]:
        is_plain = not (replaces or change.has_place) and change.copied is None
        size = size_of(change)
        if size > _LARGEST:
            raise StoreError(
                f"thread {change.thread_id!r}: a change with {size} bytes of values cannot be stored, because Postgres "
                "takes less than 1 GiB in one message: divide it into several steps, or store a name in place of the "
                "largest value"
            )
        turn = _turn(change) if is_plain and size < _LARGE else ()
        statement, params = adding.ADD_ONE, one_row(change) if is_plain else None
        if params is None:
            statement, params = adding.ADD, any_rows(change, replaces=replaces, waits=False)
        start = self._start_for(change)
        if start is not None:
            statement = adding.ADD_ONE_OF_START if statement is adding.ADD_ONE else adding.ADD_OF_START
            params = *params, None if change.epoch is None else start
        rows: Rows = yield Query(in_schema(statement, self._schema), params, not replaces, turn)
        for _ in range(_ATTEMPTS):
            if rows and rows[0][1] != BEGIN:  # without rows, the checkpoint exists, but its head does not list it
                epoch, outcome = rows[0][:2]
                if outcome != "epoch" or epoch != change.epoch:
                    return _added(change, *rows[0])
            if start is not None and change.epoch is not None:
                ended = yield from self._ended_epoch(change.thread_id, change.epoch, start)
                if ended is not None:
                    return Added(ended)
            params = any_rows(change, replaces=replaces, waits=True)
            rows = yield Query(in_schema(adding.ADD, self._schema), params)
        raise TransientStoreError(
            f"thread {change.thread_id!r} was deleted and made again {_ATTEMPTS} times during this call; try again"
        )

    def _start_for(self, change: Change) -> int | None:
        """Return the start of the server that a change relies on, None if it is not known."""
        start, since = self._restarts.get(change.thread_id, (0, 0))
        return start if start and change.epoch is not None and change.epoch >= since else self._first_start()

    def _ended_epoch(self, thread_id: str, epoch: int, start: int) -> Program[int | None]:
        """Return the epoch after this one, which ends, if the server has started again and has the thread."""
        name = to_column(thread_id)
        ((present,),) = yield from self._execute(adding.START)
        if present == start:
            return None
        ((found, _),) = yield from self._execute(threads.LOCK, name)
        if found is None:
            return None
        if found <= epoch:
            ((found,),) = yield from self._execute(adding.END_EPOCH, name, epoch)
        if len(self._restarts) >= _MOST_RESTARTS:
            self._restarts = {}
        self._restarts[thread_id] = present, found
        return int(found)


def _turn(change: Change) -> tuple[str, ...]:
    """Return the place of a change among those that it may be sent with."""
    return change.thread_id, min((row.outline.ns for row in change.checkpoints), default="")


def keys_as_arrays(keys: Sequence[Key]) -> tuple[Texts, Texts]:
    """Return the columns of keys as two parameters."""
    return Texts(to_column(ns) for ns, _ in keys), Texts(to_column(checkpoint_id) for _, checkpoint_id in keys)


def _added(
    change: Change,
    epoch: int | None,
    outcome: str | None,
    renewal: int | None,
    expires_at: int | None,
    entered: int | None,
    entered_after: int | None,
    pack_left_out: bool | None,  # noqa: FBT001
    replaced: bool | None,  # noqa: FBT001
    old_idx: Sequence[int] | None,
    old_values: Sequence[bytes] | None,
) -> Added:
    """Return the outcome of a change, from the columns of the type `added_1`."""
    epoch = epoch or 0
    if outcome is not None:
        if outcome in ("epoch", "too_late", "exists"):
            return Added(epoch, too_late=outcome == "too_late", exists=outcome == "exists")
        return Added(epoch, outcome)  # type: ignore[arg-type]  # the functions have no others
    special = {row.idx: row for row in change.writes if row.idx < 0}
    old = zip(old_idx or (), old_values or (), strict=True)
    return Added(
        epoch,
        replaced=bool(replaced),
        replaced_writes=[special[idx]._replace(value=value) for idx, value in old],
        renewal=renewal or 0,
        expires_at=expires_at,
        position=entered or 0,
        previous=entered_after or 0,
        pack_left_out=bool(pack_left_out),
    )
