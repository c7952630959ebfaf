"""A store that forwards every operation to another store.

A store that changes some operations derives from it. A test knows which operations each such store leaves unchanged, so
a new operation of the contract cannot slip past a wrapper.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from threadmark.program import Program
from threadmark.store.contract import (
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
    nothing_held,
)
from threadmark.store.replica import Copied, Entry, Replica, ReplicaStore, RowMarks, Summary, Waiting
from threadmark.store.threads import LeaseRow, ThreadCounts, ThreadOutline, ThreadPlace, ThreadRow, ThreadScope


class ForwardingStore(ReplicaStore):
    """Another store."""

    def __init__(self, store: Store) -> None:
        self._store = cast("ReplicaStore", store)  # a store without those of ReplicaStore is never asked for them

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        return self._store.find(thread_id, ns, checkpoint_id, held)

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        return self._store.segments(thread_id, keys)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        return self._store.newest(thread_ids, ns)

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        return self._store.segments_of(requested)

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        return self._store.page(scope, after, limit)

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        return self._store.page_of_rows(scope, after, limit)

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        return self._store.rows(thread_id, keys)

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        return self._store.writes(thread_id, keys)

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        return self._store.chain(thread_id, ns, checkpoint_id, limit)

    def epoch(self, thread_id: str) -> Program[int | None]:
        return self._store.epoch(thread_id)

    def lock(self, thread_id: str) -> Program[int | None]:
        return self._store.lock(thread_id)

    def add(self, change: Change) -> Program[Added]:
        return self._store.add(change)

    def replace(self, change: Change) -> Program[Added]:
        return self._store.replace(change)

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        return self._store.rewrite(thread_id, rows)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._store.heads(thread_id, ns)

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._store.counted_heads(thread_id, ns)

    def damage(self) -> Program[list[tuple[str, str]]]:
        return self._store.damage()

    def mend(self) -> Program[None]:
        return self._store.mend()

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        return self._store.segment_sizes(thread_id)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        return self._store.remove(thread_id, keys, segments)

    def forget(self, thread_id: str, keys: Sequence[Key], *, removes: bool) -> Program[None]:
        return self._store.forget(thread_id, keys, removes=removes)

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        return self._store.drop(thread_id, now)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        return self._store.copy_segments(source, target)

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        return self._store.threads(after, limit)

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        return self._store.sample()

    def has_only_langgraph_data(self) -> Program[bool]:
        return self._store.has_only_langgraph_data()

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        return self._store.thread(thread_id)

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        return self._store.thread_outlines(thread_ids)

    def set_thread(self, row: ThreadRow) -> Program[None]:
        return self._store.set_thread(row)

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        return self._store.thread_page(scope, after, offset, limit)

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        return self._store.count_threads(scope)

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        return self._store.thread_counts(thread_ids)

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        return self._store.lock_lease(thread_id)

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        return self._store.set_lease(thread_id, lease)

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        return self._store.renew_lease(thread_id, token, left)

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        return self._store.lease(thread_id)

    def replica(self) -> Program[Replica]:
        return self._store.replica()

    def set_replica(self, replica: Replica) -> Program[Replica]:
        return self._store.set_replica(replica)

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        return self._store.record(thread_id, body, term)

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        return self._store.outbox(thread_id, limit)

    def waiting(self) -> Program[Waiting]:
        return self._store.waiting()

    def settle(self, thread_id: str, position: int) -> Program[None]:
        return self._store.settle(thread_id, position)

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        return self._store.positions(thread_ids)

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        return self._store.copied(thread_ids)

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        return self._store.set_copied(thread_id, copied)

    def marks(self, thread_id: str) -> Program[RowMarks]:
        return self._store.marks(thread_id)

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        return self._store.summaries(after, limit)
