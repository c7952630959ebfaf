"""The store operations on dictionaries, row for row what a database would keep."""

from collections.abc import Callable, Sequence
from functools import partial

from threadmark.ids import deleted_up_to
from threadmark.memory.adding import add_change, add_segments
from threadmark.memory.replica_store import MemoryReplicaStore
from threadmark.memory.tables import Tables, Thread, clock, with_tables
from threadmark.memory.thread_store import MemoryThreadStore, found_of, newest, next_lease
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.replica_store import ReplicaStore
from threadmark.store import (
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
)
from threadmark.thread_store import LeaseRow


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
        return with_tables(partial(add_change, change=change, replace=False))

    def replace(self, change: Change) -> Program[Added]:
        return with_tables(partial(add_change, change=change, replace=True))

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
            gone = [checkpoint_id for ns, checkpoint_id in doomed if ns != MESSAGES_NS]
            tables.set(thread.state, "removed_up_to", max([thread.removed_up_to, *gone]))
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
            up_to = deleted_up_to([*ids, thread.deleted_up_to, thread.removed_up_to], now)
            tombstone = Thread(thread_id, max(now, thread.epoch + 1), live=False, deleted_up_to=up_to)
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
