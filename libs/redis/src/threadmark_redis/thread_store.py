"""The store operations on threads themselves."""

from collections.abc import Sequence
from functools import partial

from threadmark.backends import (
    SPECIAL_WRITES,
    LeaseRow,
    Program,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
    is_unfinished,
)
from threadmark_redis import listing
from threadmark_redis.columns import (
    as_head,
    checkpoint_row,
    int_or_none,
    is_live,
    is_member,
    lease_row,
    text_or_none,
    thread_fields,
    thread_outline,
    to_bytes,
)
from threadmark_redis.index import STALE, Indexed, Settings, index, unindex
from threadmark_redis.locked import Locked
from threadmark_redis.reading import EVICTED, OPEN, Reader
from threadmark_redis.steps import run
from threadmark_redis.transactions import the_work
from threadmark_redis.writes import writes_of_thread

_CHUNK = 500


class RedisThreadStore(ThreadStore):
    """The operations on threads themselves."""

    settings: Settings

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        head = yield from (yield from self.reader(thread_id)).head()
        return thread_outline(thread_id, head) if is_live(head) else None

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        return (yield from listing.thread_outlines(self.settings, list(dict.fromkeys(thread_ids))))

    def set_thread(self, row: ThreadRow) -> Program[None]:
        reader = yield from self.reader(row.thread_id)
        locked = yield from reader.lock()
        locked.set_head(thread_fields(row))
        yield from self.follow(reader)

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        return (yield from listing.thread_page(self.settings, scope, after, offset, limit))

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        return (yield from listing.count_threads(self.settings, scope))

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        work = yield from the_work()
        found: list[ThreadCounts] = []
        names = list(dict.fromkeys(thread_ids))
        for name in [name for name in names if name in work.locked]:
            counts = yield from self._counted((yield from self.reader(name)))
            found += [counts] if counts else []
        names = [name for name in names if name not in work.locked]
        for start in range(0, len(names), _CHUNK):
            some = names[start : start + _CHUNK]
            replies = yield from listing.counts(self.settings, some, sizes=True)
            for name, reply in zip(some, replies, strict=True):
                live, checkpoints, namespaces, size, newest, *states = (
                    reply if len(reply) > 1 else [reply[0], *_NOTHING]
                )
                if live == b"torn":
                    found.append(ThreadCounts(name, *_NOTHING, EVICTED))
                elif live == b"1":
                    leased, failed, interrupted, unfinished = map(bool, states)
                    counted = checkpoints, namespaces, size, text_or_none(newest)
                    found.append(ThreadCounts(name, *counted, leased, failed, interrupted, unfinished))
                elif live == b"large":
                    counts = yield from self._counted((yield from self.reader(name)))
                    found += [counts] if counts else []
        return found

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        locked.remember()
        lease = lease_row(locked.head, locked.moment)
        if lease.outlasts:  # it is from another server's clock, or its end is damaged
            locked.set_head({b"z": b"%d" % (locked.moment + lease.left)})
        return lease

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        token = max((int_or_none(locked.head.get(b"t")) or 0) + 1, locked.moment)
        ends = b"%d" % (locked.moment + lease.left) if lease.left else None
        locked.set_head(
            {
                b"t": b"%d" % token,
                b"z": ends,
                b"l": b"%d" % lease.left if lease.left else None,
                b"g": to_bytes(lease.holder),
                b"b": None if lease.began is None else to_bytes(lease.began),
            }
        )
        return lease_row(locked.head, locked.moment)

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        if not locked.head or (int_or_none(locked.head.get(b"t")) or 0) != token:
            return False
        locked.set_head({b"z": b"%d" % (locked.moment + left), b"l": b"%d" % left})
        return True

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        reader = yield from self.reader(thread_id)
        locked = reader.locked
        if locked is not None:
            return lease_row(locked.head, locked.moment) if locked.head else None
        _, moment, fields = yield from run(OPEN, reader.keys, (0,), writes=False)
        head = as_head(fields)
        return lease_row(head, moment) if head else None

    def reader(self, thread_id: str) -> Program[Reader]:
        """Return the reader of a thread in the running transaction."""
        return Reader(self.settings.prefix, thread_id, (yield from the_work()))

    def follow(self, reader: Reader) -> Program[None]:
        """Update the index for a locked thread after the commit of the transaction."""
        work = yield from the_work()
        locked = work.locked[reader.thread_id]
        head = locked.head
        if is_live(head):
            updated = int_or_none(head.get(b"u")) or 0
            place = int_or_none(head.get(b"y")) or 0
            if abs(updated - place) >= STALE or any(locked.stored.get(name) != head.get(name) for name in _INDEXED):
                locked.set_head({b"y": b"%d" % updated})
        work.after[reader.thread_id] = partial(_reindex, self.settings, locked)

    def _counted(self, reader: Reader) -> Program[ThreadCounts | None]:
        """Count a thread's content by reading it."""
        head = yield from reader.head()
        if not is_live(head):
            return None
        names = [name for name in (yield from reader.checkpoint_names()) if is_member(name)]
        values = yield from reader.checkpoints(names)
        rows = [
            checkpoint_row(reader.thread_id, name, value)
            for name, value in zip(names, values, strict=True)
            if value is not None
        ]
        newest = max((row for row in rows if row.outline.ns == ""), key=lambda row: row.outline.rank, default=None)
        writes = yield from writes_of_thread(reader)
        sizes = yield from reader.segment_sizes()
        key = newest.outline.key if newest else None
        special = {row.idx for row in writes if row[:2] == key}
        bodies = sum(len(row.header) + len(to_bytes(row.outline.metadata)) for row in rows)
        lease = yield from self.lease(reader.thread_id)
        return ThreadCounts(
            reader.thread_id,
            len(rows),
            len({row.outline.ns for row in rows}),
            sum(sizes.values()) + bodies + sum(len(row.value) for row in writes),
            newest.outline.id if newest else None,
            leased=lease is not None and lease.left > 0,
            failed=SPECIAL_WRITES["__error__"] in special,
            interrupted=SPECIAL_WRITES["__interrupt__"] in special,
            unfinished=newest is not None and is_unfinished(newest.header, newest.check),
        )


_NOTHING = (0, 0, 0, None, False, False, False, False)

_INDEXED = (b"v", b"a", b"o", b"x")


def _reindex(settings: Settings, locked: Locked) -> Program[None]:
    """Move a changed thread to its place in the index, or take it out."""
    before, head = locked.stored, locked.head
    owner_before = text_or_none(before.get(b"o"))
    if not is_live(head):
        if is_live(before):  # it may have been created again since the commit, at another place
            yield from unindex(settings, locked.thread_id, owner_before, int_or_none(before.get(b"y")))
        return
    if any(before.get(name) != head.get(name) for name in (*_INDEXED, b"y")):
        outline = thread_outline(locked.thread_id, head)
        row, updated = outline
        entry = Indexed(row.created_at, updated, row.owner, row.expires_at)
        yield from index(settings, locked.thread_id, entry, owner_before)
