"""The store operations on dictionaries, with the same rows as in a database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from heapq import nlargest

from threadmark.ids import deleted_up_to
from threadmark.memory.adding import add_change, add_segments
from threadmark.memory.replica_store import MemoryReplicaStore
from threadmark.memory.tables import Lease, Tables, Thread, clock, heads_of, newest, with_tables
from threadmark.model import SPECIAL_WRITES
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.store.contract import (
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Scope,
    WriteRow,
    nothing_held,
    now,
)
from threadmark.store.replica import ReplicaStore
from threadmark.store.threads import (
    LeaseRow,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
    in_scope,
    is_unfinished,
    status_of,
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

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        def call(tables: Tables) -> dict[str, dict[bytes, bytes]]:
            held = {each: tables.threads[each].segments if each in tables.threads else {} for each in requested}
            return {
                each: {key: held[each][key] for key in keys if key in held[each]} for each, keys in requested.items()
            }

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
    """The result of a search for a checkpoint."""
    return Found(thread.epoch, row, writes, {}, row.outline.rank, thread.row.owner, thread.row.expires_at)


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
    return [_outline(thread) for thread in tables.threads.values() if thread.live and _is_listed(scope, thread)]


def _is_listed(scope: ThreadScope, thread: Thread) -> bool:
    return in_scope(scope, _outline(thread)) and (scope.status is None or status_of(_counts(thread)) == scope.status)


def _counts(thread: Thread) -> ThreadCounts:
    checkpoint = newest(thread, "")
    key = ("", checkpoint.outline.id) if checkpoint else None
    special = {idx for _, idx in thread.writes.get(key, ())} if key else set()
    texts = [row.outline.metadata.encode("utf-8", "surrogatepass") for row in thread.checkpoints.values()]
    bodies = [len(row.header) for row in thread.checkpoints.values()] + [len(text) for text in texts]
    return ThreadCounts(
        thread.row.thread_id,
        len(thread.checkpoints),
        len({row.outline.ns for row in thread.checkpoints.values()}),
        sum(map(len, thread.segments.values())) + sum(bodies) + sum(len(row.value) for row in thread.every_write),
        checkpoint.outline.id if checkpoint else None,
        leased=thread.lease.ends > clock(),
        failed=SPECIAL_WRITES["__error__"] in special,
        interrupted=SPECIAL_WRITES["__interrupt__"] in special,
        unfinished=checkpoint is not None and is_unfinished(checkpoint.header, checkpoint.check),
    )


class MemoryStore(MemoryThreadStore, MemoryReplicaStore, ReplicaStore):
    """The store operations on dictionaries."""

    def find(
        self,
        thread_id: str,
        ns: str,
        checkpoint_id: str | None,
        held: Callable[[], str | None] = nothing_held,  # noqa: ARG002 - segments never come along here
    ) -> Program[Found | None]:
        def call(tables: Tables) -> Found | None:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return None
            row = newest(thread, ns) if checkpoint_id is None else thread.checkpoints.get((ns, checkpoint_id))
            if row is None:
                return None
            return found_of(thread, row, list(thread.writes.get((ns, row.outline.id), {}).values()))

        return with_tables(call)

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        def call(tables: Tables) -> dict[bytes, bytes]:
            held = tables.threads[thread_id].segments if thread_id in tables.threads else {}
            return {key: held[key] for key in keys if key in held}

        return with_tables(call)

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        def call(tables: Tables) -> list[Outline]:
            named = tables.threads.keys() if scope.thread_id is None else tables.threads.keys() & {scope.thread_id}
            some = [each for each in map(tables.threads.__getitem__, named) if scope.owner in (None, each.row.owner)]
            outlines = (row.outline for thread in some for row in thread.checkpoints.values())
            chosen = filter(partial(_in_scope, scope), outlines)
            return nlargest(limit, [each for each in chosen if after is None or _order(each) < _order(after)], _order)

        return with_tables(call)

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        def call(tables: Tables) -> list[CheckpointRow]:
            held = tables.threads[thread_id].checkpoints if thread_id in tables.threads else {}
            return [held[key] for key in keys if key in held]

        return with_tables(call)

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        def call(tables: Tables) -> list[WriteRow]:
            held = tables.threads[thread_id].writes if thread_id in tables.threads else {}
            requested: Collection[Key] = held if keys is None else dict.fromkeys(keys)
            return [row for key in requested for row in held.get(key, {}).values()]

        return with_tables(call)

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        def call(tables: Tables) -> list[CheckpointRow]:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return []
            row = newest(thread, ns) if checkpoint_id is None else thread.checkpoints.get((ns, checkpoint_id))
            rows: list[CheckpointRow] = []
            while row is not None and len(rows) < limit:
                rows.append(row)
                row = thread.checkpoints.get((ns, row.outline.parent or ""))
            return rows

        return with_tables(call)

    def epoch(self, thread_id: str) -> Program[int | None]:
        def call(tables: Tables) -> int | None:
            thread = tables.threads.get(thread_id)
            return thread.epoch if thread and thread.live else None

        return with_tables(call)

    def lock(self, thread_id: str) -> Program[int | None]:
        return self.epoch(thread_id)  # a transaction has the dictionaries to itself

    def add(self, change: Change) -> Program[Added]:
        return with_tables(partial(add_change, change=change, replace=False))

    def replace(self, change: Change) -> Program[Added]:
        return with_tables(partial(add_change, change=change, replace=True))

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        def call(tables: Tables) -> None:
            for row in rows:
                tables.set(tables.threads[thread_id].checkpoints, row.outline.key, row)

        return with_tables(call)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """Dictionaries do not get damaged: the record is the content."""
        return self.counted_heads(thread_id, ns)

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        def call(tables: Tables) -> list[Head]:
            ranks: dict[Key, list[str]] = {}
            for name, thread in tables.threads.items():
                if thread_id in (None, name):
                    for outline in (row.outline for row in thread.checkpoints.values()):
                        ranks.setdefault((name, outline.ns), []).append(outline.rank)
            return [Head(*key, max(some), len(some)) for key, some in ranks.items() if ns in (None, key[1])]

        return with_tables(call)

    def damage(self) -> Program[list[tuple[str, str]]]:
        return with_tables(lambda _: [])

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        def call(tables: Tables) -> dict[bytes, int]:
            held = tables.threads[thread_id].segments if thread_id in tables.threads else {}
            return {key: len(data) for key, data in held.items()}

        return with_tables(call)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        def call(tables: Tables) -> int:
            thread = tables.threads[thread_id]
            doomed = set(keys)
            for key in doomed:
                tables.unset(thread.checkpoints, key)
                tables.unset(thread.writes, key)
            heads = heads_of(thread)
            for ns in {ns for ns, _ in doomed} & thread.heads.keys():
                if ns in heads:
                    tables.set(thread.heads, ns, heads[ns])
                else:
                    tables.unset(thread.heads, ns)
            for segment in segments:
                tables.unset(thread.segments, segment)
            gone = [checkpoint_id for ns, checkpoint_id in doomed if ns != MESSAGES_NS]
            tables.set(thread.state, "removed_up_to", max([thread.removed_up_to, *gone]))
            tables.set(thread.state, "epoch", thread.epoch + 1)
            return thread.epoch

        return with_tables(call)

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        def call(tables: Tables) -> int | None:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return None
            ids = [row.outline.id for row in thread.checkpoints.values() if row.outline.ns != MESSAGES_NS]
            ids += [checkpoint_id for _, checkpoint_id in thread.writes]
            up_to = deleted_up_to([*ids, thread.deleted_up_to, thread.removed_up_to], now)
            tombstone = Thread(thread_id, max(now, thread.epoch + 1), live=False, deleted_up_to=up_to)
            if thread.lease.row.token:
                tombstone.state["lease"] = next_lease(thread, LeaseRow(0))
            tombstone.state.update(position=thread.position, copied=thread.state["copied"])
            tombstone.outbox = thread.outbox
            tables.set(tables.threads, thread_id, tombstone)
            old = now - TOMBSTONE_MICROSECONDS
            forgotten = [each for each in tables.threads.values() if each.epoch < old and not each.live]
            buried = {each.row.thread_id: each for each in forgotten if not each.outbox}
            for other in [key for key, each in buried.items() if each.lease.ends <= clock()]:
                tables.unset(tables.threads, other)
            return thread.epoch if thread.live else None

        return with_tables(call)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        def call(tables: Tables) -> None:
            add_segments(tables, tables.threads[target], tables.threads[source].segments.items())

        return with_tables(call)

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        def call(tables: Tables) -> list[str]:
            live = [thread_id for thread_id, thread in tables.threads.items() if thread.live]
            return sorted(thread_id for thread_id in live if thread_id > after)[:limit]

        return with_tables(call)


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
