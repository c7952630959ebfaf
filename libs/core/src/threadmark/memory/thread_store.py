"""The operations on threads themselves, on dictionaries."""

from collections.abc import Collection, Mapping, Sequence

from threadmark.memory.tables import Lease, Tables, Thread, clock, with_tables
from threadmark.model import SPECIAL_WRITES, ThreadStatus
from threadmark.program import Program
from threadmark.store import CheckpointRow, Found, WriteRow, now
from threadmark.thread_store import (
    LeaseRow,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
)


class MemoryThreadStore(ThreadStore):
    """The operations on threads themselves, and those on the rows of several threads at once."""

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        def call(tables: Tables) -> ThreadOutline | None:
            thread = tables.threads.get(thread_id)
            return _outline(thread) if thread and thread.live else None

        return with_tables(call)

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        def call(tables: Tables) -> list[ThreadOutline]:
            found = [tables.threads[thread_id] for thread_id in thread_ids if thread_id in tables.threads]
            return [_outline(thread) for thread in found if thread.live]

        return with_tables(call)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        def call(tables: Tables) -> dict[str, Found]:
            threads = {each: tables.threads[each] for each in thread_ids if each in tables.threads}
            rows = {each: newest(thread, ns) for each, thread in threads.items()}
            return {each: found_of(threads[each], row, ()) for each, row in rows.items() if row is not None}

        return with_tables(call)

    def segments_of(self, wanted: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        def call(tables: Tables) -> dict[str, dict[bytes, bytes]]:
            held = {each: tables.threads[each].segments if each in tables.threads else {} for each in wanted}
            return {each: {key: held[each][key] for key in keys if key in held[each]} for each, keys in wanted.items()}

        return with_tables(call)

    def set_thread(self, row: ThreadRow) -> Program[None]:
        def call(tables: Tables) -> None:
            thread = tables.threads[row.thread_id]
            tables.set(thread.state, "row", row._replace(created_at=thread.row.created_at))

        return with_tables(call)

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        def call(tables: Tables) -> list[ThreadOutline]:
            found = sorted(_chosen(tables, scope), key=lambda each: _place(scope, each), reverse=scope.descending)
            if after is not None and scope.descending:
                found = [each for each in found if _place(scope, each) < after]
            elif after is not None:
                found = [each for each in found if _place(scope, each) > after]
            return found[offset : offset + limit]

        return with_tables(call)

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        return with_tables(lambda tables: len(_chosen(tables, scope)))

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        def call(tables: Tables) -> list[ThreadCounts]:
            found = [tables.threads[each] for each in thread_ids if each in tables.threads]
            return [_counts(thread) for thread in found if thread.live]

        return with_tables(call)

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        def call(tables: Tables) -> LeaseRow:
            if thread_id not in tables.threads:
                tables.set(tables.threads, thread_id, Thread(thread_id, now(), live=False))
            return _left(tables.threads[thread_id])

        return with_tables(call)

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        def call(tables: Tables) -> LeaseRow:
            thread = tables.threads[thread_id]
            tables.set(thread.state, "lease", next_lease(thread, lease))
            return _left(thread)

        return with_tables(call)

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        def call(tables: Tables) -> bool:
            thread = tables.threads.get(thread_id)
            if thread is None or thread.lease.row.token != token:
                return False
            tables.set(thread.state, "lease", Lease(thread.lease.row, left, clock() + left))
            return True

        return with_tables(call)

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        def call(tables: Tables) -> LeaseRow | None:
            thread = tables.threads.get(thread_id)
            return _left(thread) if thread else None

        return with_tables(call)


def found_of(thread: Thread, row: CheckpointRow, writes: Sequence[WriteRow]) -> Found:
    """What a search for a checkpoint finds."""
    return Found(thread.epoch, row, writes, {}, row.outline.rank, thread.row.owner, thread.row.expires_at)


def newest(thread: Thread, ns: str) -> CheckpointRow | None:
    """The checkpoint with the greatest rank of a namespace."""
    rows = [row for row in thread.checkpoints.values() if row.outline.ns == ns]
    return max(rows, key=lambda row: row.outline.rank, default=None)


def next_lease(thread: Thread, lease: LeaseRow) -> Lease:
    """The lease with the token that comes after the thread's last one.

    Tokens come from the clock of the day, as those of a database do: they must grow in the next process, too.
    """
    token = max(thread.lease.row.token + 1, now())
    return Lease(lease._replace(token=token), lease.left, clock() + lease.left if lease.left else 0)


def _left(thread: Thread) -> LeaseRow:
    return thread.lease.row._replace(left=max(0, thread.lease.ends - clock()))


def _outline(thread: Thread) -> ThreadOutline:
    return ThreadOutline(thread.row, thread.updated_at)


def _place(scope: ThreadScope, outline: ThreadOutline) -> ThreadPlace:
    values = {"updated": outline.updated_at, "created": outline.row.created_at, "id": 0}
    return ThreadPlace(values[scope.sort], outline.row.thread_id)


def _chosen(tables: Tables, scope: ThreadScope) -> list[ThreadOutline]:
    return [_outline(thread) for thread in tables.threads.values() if thread.live and _in_scope(scope, thread)]


def _in_scope(scope: ThreadScope, thread: Thread) -> bool:
    row, updated_at = _outline(thread)
    return (
        scope.owner in (None, row.owner)
        and (scope.status is None or _status(thread) == scope.status)
        and (scope.since is None or updated_at >= scope.since)
        and (scope.until is None or updated_at < scope.until)
        and (scope.expired is None or (row.expires_at is not None and row.expires_at <= scope.expired))
    )


def _status(thread: Thread) -> ThreadStatus:
    counts = _counts(thread)
    if counts.leased:
        return "busy"
    return "error" if counts.failed else "interrupted" if counts.interrupted else "idle"


def _counts(thread: Thread) -> ThreadCounts:
    checkpoint = newest(thread, "")
    key = ("", checkpoint.outline.id) if checkpoint else None
    special = {row.idx for row in thread.writes.values() if row[:2] == key}
    texts = [row.outline.metadata.encode("utf-8", "surrogatepass") for row in thread.checkpoints.values()]
    bodies = [len(row.header) for row in thread.checkpoints.values()] + [len(text) for text in texts]
    return ThreadCounts(
        thread.row.thread_id,
        len(thread.checkpoints),
        len({row.outline.ns for row in thread.checkpoints.values()}),
        sum(map(len, thread.segments.values())) + sum(bodies) + sum(len(row.value) for row in thread.writes.values()),
        checkpoint.outline.id if checkpoint else None,
        leased=thread.lease.ends > clock(),
        failed=SPECIAL_WRITES["__error__"] in special,
        interrupted=SPECIAL_WRITES["__interrupt__"] in special,
    )
