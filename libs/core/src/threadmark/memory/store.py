"""The store operations on dictionaries, row for row what a database would keep."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from threadmark.memory.replica_store import MemoryReplicaStore, add_entry
from threadmark.memory.tables import Tables, Thread, clock, with_tables
from threadmark.memory.thread_store import MemoryThreadStore, found_of, newest, next_lease
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.replica_store import Copied, ReplicaStore
from threadmark.store import (
    ANYONE,
    NEVER,
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Follows,
    Found,
    Head,
    Key,
    Outline,
    Refusal,
    Scope,
    WriteRow,
    nothing_held,
)
from threadmark.thread_store import LeaseRow, ThreadRow


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
            key = (ns, row.outline.id)
            return found_of(thread, row, [write for write in thread.writes.values() if write[:2] == key])

        return with_tables(call)

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        def call(tables: Tables) -> dict[bytes, bytes]:
            held = tables.threads[thread_id].segments if thread_id in tables.threads else {}
            return {key: held[key] for key in keys if key in held}

        return with_tables(call)

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        def call(tables: Tables) -> list[Outline]:
            some = [each for each in tables.threads.values() if scope.owner in (None, each.row.owner)]
            outlines = [row.outline for thread in some for row in thread.checkpoints.values()]
            chosen = sorted(filter(partial(_in_scope, scope), outlines), key=_order, reverse=True)
            return [outline for outline in chosen if after is None or _order(outline) < _order(after)][:limit]

        return with_tables(call)

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        def call(tables: Tables) -> list[CheckpointRow]:
            held = tables.threads[thread_id].checkpoints if thread_id in tables.threads else {}
            return [held[key] for key in keys if key in held]

        return with_tables(call)

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        def call(tables: Tables) -> list[WriteRow]:
            held = tables.threads[thread_id].writes if thread_id in tables.threads else {}
            wanted = None if keys is None else set(keys)
            return [row for row in held.values() if wanted is None or row[:2] in wanted]

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
        return self._add(change, replace=False)

    def replace(self, change: Change) -> Program[Added]:
        return self._add(change, replace=True)

    def _add(self, change: Change, *, replace: bool) -> Program[Added]:  # noqa: PLR0911, C901 - one for each refusal
        if change.term is not None and (yield from self.replica()).term > change.term:
            return Added(0, "term")
        thread = yield from with_tables(lambda tables: tables.threads.get(change.thread_id))
        if change.copied is not None and _is_behind(thread, change.copied):
            return Added(thread.epoch if thread else 0, "behind")
        if change.epoch is not None and (thread is None or thread.epoch != change.epoch):
            return Added(thread.epoch if thread else 0)
        if thread is None:
            thread = Thread(change.thread_id, 0, live=False)  # nothing is kept of it if the change is refused
        if (refused := _refusal(thread, change)) is not None:
            return Added(thread.epoch, refused)
        if _too_late(thread, change):
            return Added(thread.epoch, too_late=True)
        exists = any(row.outline.key in thread.checkpoints for row in change.checkpoints)
        if exists and not replace:
            return Added(thread.epoch, exists=True)
        if change.has_place and not exists and not change.may_follow(_newest_rank(thread, change)):
            return Added(thread.epoch, "conflict")
        if not thread.live:
            yield from with_tables(partial(_begin, thread=thread, change=change))
        yield from with_tables(partial(_add_segments, thread=thread, segments=change.segments.items()))
        yield from with_tables(partial(_update, thread=thread, change=change))
        replaced = yield from with_tables(partial(_add_checkpoints, thread=thread, rows=change.checkpoints))
        replaced_writes = yield from with_tables(partial(_add_writes, thread=thread, rows=change.writes))
        previous = thread.position
        if change.entry is not None:
            yield from with_tables(partial(add_entry, thread=thread, body=change.entry))
        if change.copied is not None:
            yield from self.set_copied(change.thread_id, Copied(change.copied.position, change.copied.epoch))
        return Added(
            thread.epoch,
            replaced=replaced,
            replaced_writes=replaced_writes,
            renewal=_renewal(thread, change),
            expires_at=thread.row.expires_at,
            position=thread.position if change.entry is not None else 0,
            previous=previous,
        )

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        def call(tables: Tables) -> None:
            for row in rows:
                tables.set(tables.threads[thread_id].checkpoints, row.outline.key, row)

        return with_tables(call)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """Dictionaries do not get damaged: what is recorded is what is there."""
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
            for write_key in [key for key in thread.writes if key[:2] in doomed]:
                tables.unset(thread.writes, write_key)
            for segment in segments:
                tables.unset(thread.segments, segment)
            tables.set(thread.state, "epoch", thread.epoch + 1)
            return thread.epoch

        return with_tables(call)

    def drop(self, thread_id: str, now: int) -> Program[None]:
        def call(tables: Tables) -> None:
            thread = tables.threads.get(thread_id)
            if thread is None:
                return
            ids = [row.outline.id for row in thread.checkpoints.values() if row.outline.ns != MESSAGES_NS]
            ids += [row.checkpoint_id for row in thread.writes.values()]
            deleted_up_to = max([*ids, thread.deleted_up_to])
            tombstone = Thread(thread_id, max(now, thread.epoch + 1), live=False, deleted_up_to=deleted_up_to)
            if thread.lease.row.token:
                tombstone.state["lease"] = next_lease(thread, LeaseRow(0))
            tombstone.state.update(position=thread.position, copied=thread.copied)
            tombstone.outbox = thread.outbox
            tables.set(tables.threads, thread_id, tombstone)
            old = now - TOMBSTONE_MICROSECONDS
            forgotten = [each for each in tables.threads.values() if each.epoch < old and not each.live]
            buried = {each.row.thread_id: each for each in forgotten if not each.outbox}
            for other in [key for key, each in buried.items() if each.lease.ends <= clock()]:
                tables.unset(tables.threads, other)

        return with_tables(call)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        def call(tables: Tables) -> None:
            _add_segments(tables, tables.threads[target], tables.threads[source].segments.items())

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


def _begin(tables: Tables, thread: Thread, change: Change) -> None:
    if change.thread_id not in tables.threads:
        tables.set(tables.threads, change.thread_id, thread)
        tables.set(thread.state, "epoch", change.now)
    tables.set(thread.state, "live", value=True)
    owner, expires_at, check = change.beginning
    row = ThreadRow(change.thread_id, change.now, owner, expires_at=expires_at, check=check)
    tables.set(thread.state, "row", row)
    tables.set(thread.state, "updated", change.now)


def _is_behind(thread: Thread | None, follows: Follows) -> bool:
    """Whether a thread is not as far as a change of another database needs it, or was changed here as well."""
    if thread is None or thread.copied is None:
        return follows.previous != NEVER or bool(thread and thread.outbox)
    return follows.previous != thread.copied.position or bool(thread.outbox)


def _refusal(thread: Thread, change: Change) -> Refusal | None:
    if change.only_owner and thread.live and thread.row.owner != change.beginning.owner:
        return "owner"
    if change.token is None:
        return "busy" if thread.lease.ends > clock() else None
    return None if change.token in (thread.lease.row.token, ANYONE) else "lost"


def _newest_rank(thread: Thread, change: Change) -> str:
    row = newest(thread, change.checkpoints[0].outline.ns)
    return row.outline.rank if row else ""


def _renewal(thread: Thread, change: Change) -> int:
    lease = thread.lease
    is_due = change.token == lease.row.token and lease.ends - clock() < lease.ttl // 2
    return lease.ttl if is_due else 0


def _too_late(thread: Thread, change: Change) -> bool:
    """Whether the change continues a checkpoint that went with the deleted thread."""
    continued = change.continues
    if continued is None or continued > thread.deleted_up_to:
        return False
    return not any(key[1] == continued for key in thread.checkpoints)


def _update(tables: Tables, thread: Thread, change: Change) -> None:
    """Note when the thread was updated, before the checkpoints of a change are added.

    A thread without checkpoints was updated when it was created: that does not count any more once it has one.
    """
    fresh = {row.outline.key: row.outline.created_at for row in change.checkpoints if row.outline.ns == ""}
    if fresh:
        has_others = any(key[0] == "" and key not in fresh for key in thread.checkpoints)
        times = [thread.updated_at, *fresh.values()] if has_others else fresh.values()
        tables.set(thread.state, "updated", max(times))
    if change.touches:
        tables.set(thread.state, "updated", max(thread.updated_at, change.now))


def _add_segments(tables: Tables, thread: Thread, segments: Iterable[tuple[bytes, bytes]]) -> None:
    for key, data in segments:
        if key not in thread.segments:
            tables.set(thread.segments, key, data)


def _add_checkpoints(tables: Tables, thread: Thread, rows: Iterable[CheckpointRow]) -> bool:
    """Add checkpoints. Returns whether a different header was replaced, which ends the epoch."""
    replaced = False
    for row in rows:
        key = row.outline.key
        replaced |= key in thread.checkpoints and thread.checkpoints[key].header != row.header
        tables.set(thread.checkpoints, key, row)
    if replaced:
        tables.set(thread.state, "epoch", thread.epoch + 1)
    return replaced


def _add_writes(tables: Tables, thread: Thread, rows: Iterable[WriteRow]) -> list[WriteRow]:
    """Add writes. Returns those that replaced others, with the values of the replaced ones."""
    replaced = []
    for row in rows:
        key = row.ns, row.checkpoint_id, row.task_id, row.idx
        if key not in thread.writes:
            tables.set(thread.writes, key, row)
        elif row.idx < 0:
            replaced.append(row._replace(value=thread.writes[key].value))
            tables.set(thread.writes, key, row)
    return replaced
