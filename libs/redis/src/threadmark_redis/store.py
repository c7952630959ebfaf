"""The store operations, on a few hashes for each thread."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from threadmark.backends import (
    MESSAGES_NS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Program,
    ReplicaStore,
    Scope,
    UpgradeReport,
    WriteRow,
    all_held,
    deleted_up_to,
    nothing_held,
)
from threadmark_redis import formats
from threadmark_redis.adding import add_to_locked, settle_heads, stored_rows
from threadmark_redis.adding_at_once import add_at_once
from threadmark_redis.columns import (
    ALIAS,
    alias_of,
    alias_parts,
    as_head,
    checkpoint_row,
    checkpoint_value,
    int_or_none,
    is_live,
    is_member,
    member_of,
    namespaces_in,
    parts_of,
    state_in,
    text_or_none,
    to_bytes,
    written_for,
)
from threadmark_redis.heads import counted_heads, recorded_heads
from threadmark_redis.index import Settings
from threadmark_redis.keys import PREFIX, thread_keys
from threadmark_redis.listing import live_ids, matching_ids, outlines_of
from threadmark_redis.reading import Reader, evicted_error
from threadmark_redis.repair import mend_index, problems_of_index
from threadmark_redis.replica_store import RedisReplicaStore
from threadmark_redis.steps import Command, commands, run, run_each, script
from threadmark_redis.writes import lost_write, own_fields, reference_to, referred, write_rows, writes_of_thread

FIND = script("find", "thread", "groups")
CHAIN = script("chain", "thread")

GRACE = 60_000
"""Milliseconds for which a thread that has expired can still be found."""

_SEGMENT_BYTES = 8 * 1024 * 1024
"""The number of bytes of segments that come with the newest checkpoint."""

_CHAIN_BYTES = 1024 * 1024
"""About how many bytes of a checkpoint and its ancestors come in one reply."""

_CHUNK = 500

_REPLICATED = (b"p", b"f")
"""Fields of the head that a deleted thread keeps."""


class RedisStore(RedisReplicaStore, ReplicaStore):
    """The rows of every saver with one prefix in one database."""

    def __init__(self, prefix: str = PREFIX, *, clustered: bool = False, grace: int = GRACE) -> None:
        self.settings = Settings(to_bytes(prefix), clustered, grace)

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        reader = yield from self.reader(thread_id)
        if reader.locked is not None:
            return (yield from self._find_in_locked(reader, ns, checkpoint_id))
        if checkpoint_id == "":
            return None
        most = 0 if held is all_held else _SEGMENT_BYTES
        reply = yield from run(
            FIND,
            reader.keys,
            (to_bytes(ns), to_bytes(checkpoint_id or ""), to_bytes(held() or "\0"), most),
            writes=False,
        )
        outcome, epoch, revision = reply[:3]
        if outcome == b"torn":
            raise evicted_error(thread_id)
        reader.work.see(thread_id, state_in(epoch, revision))
        return _found(thread_id, (ns, checkpoint_id), reply) if outcome == b"found" else None

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        found = yield from (yield from self.reader(thread_id)).segments(keys)
        return {key: data for key, data in zip(keys, found, strict=True) if data is not None}

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        distinct = list(dict.fromkeys(thread_ids))
        found: dict[str, Found] = {}
        for start in range(0, len(distinct), _CHUNK):
            some = distinct[start : start + _CHUNK]
            asked = [(to_bytes(ns), b"", b"\0", 0)] * len(some)
            calls = [(thread_keys(self.settings.prefix, name), args) for name, args in zip(some, asked, strict=True)]
            replies = yield from run_each(FIND, calls)
            for name, reply in zip(some, replies, strict=True):
                if reply[0] == b"torn":
                    raise evicted_error(name)
                if reply[0] == b"found":
                    found[name] = _found(name, (ns, None), reply)._replace(writes=(), segments={})
        return found

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        found: dict[str, dict[bytes, bytes]] = {thread_id: {} for thread_id in requested}
        pairs = [(thread_id, key) for thread_id, keys in requested.items() for key in keys]
        for start in range(0, len(pairs), _CHUNK):
            some = pairs[start : start + _CHUNK]
            asked: list[Command] = [
                (b"HGET", thread_keys(self.settings.prefix, thread_id).segments, key) for thread_id, key in some
            ]
            replies = yield from commands(asked)
            for (thread_id, key), data in zip(some, replies, strict=True):
                if data is not None:
                    found[thread_id][key] = data
        return found

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        names = yield from matching_ids(self.settings, scope)
        return (yield from outlines_of(self.settings, names, scope, after, limit))

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        found = yield from stored_rows((yield from self.reader(thread_id)), keys)
        return [row for _, row in found]

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        reader = yield from self.reader(thread_id)
        if keys is None:
            return (yield from writes_of_thread(reader))
        found: list[WriteRow] = []
        distinct = {reference_to(key): key for key in keys}
        mains = yield from reader.written(list(distinct))
        own = {
            name: key
            for (reference, key), main in zip(distinct.items(), mains, strict=True)
            for name in own_fields(reference, main)
        }
        of_tasks = yield from reader.writes(list(own))
        for key, value in [*zip(distinct.values(), mains, strict=True), *zip(own.values(), of_tasks, strict=True)]:
            found += write_rows(key, [value])
        return [*found, *(lost_write(key) for key, value in zip(own.values(), of_tasks, strict=True) if value is None)]

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        reader = yield from self.reader(thread_id)
        if reader.locked is not None:
            return (yield from self._chain_in_locked(reader, ns, checkpoint_id, limit))
        rows: list[CheckpointRow] = []
        requested = checkpoint_id or ""
        while len(rows) < limit and not (rows and not requested):
            args = (to_bytes(ns), to_bytes(requested), limit - len(rows), _CHAIN_BYTES)
            torn, epoch, revision, found = yield from run(CHAIN, reader.keys, args, writes=False)
            if torn:
                raise evicted_error(thread_id)
            reader.work.see(thread_id, state_in(epoch, revision))
            if not found:
                break
            rows += [checkpoint_row(thread_id, *each) for each in as_head(found).items()]
            requested = rows[-1].outline.parent or ""
        return rows

    def epoch(self, thread_id: str) -> Program[int | None]:
        head = yield from (yield from self.reader(thread_id)).head()
        return _live_epoch(head)

    def lock(self, thread_id: str) -> Program[int | None]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        return _live_epoch(locked.head)

    def add(self, change: Change) -> Program[Added]:
        reader = yield from self.reader(change.thread_id)
        locked = reader.locked
        if locked is None:
            return (yield from add_at_once(self.settings, change))
        added = yield from add_to_locked(reader, locked, change, replace=False)
        yield from self.follow(reader)
        return added

    def replace(self, change: Change) -> Program[Added]:
        reader = yield from self.reader(change.thread_id)
        locked = yield from reader.lock()
        added = yield from add_to_locked(reader, locked, change, replace=True)
        yield from self.follow(reader)
        return added

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        locked = yield from (yield from self.reader(thread_id)).lock()
        for row in rows:
            locked.checkpoints.changes[member_of(row.outline.ns, row.outline.rank)] = checkpoint_value(row)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return (yield from recorded_heads(self.settings, thread_id, ns))

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return (yield from counted_heads(self.settings, thread_id, ns))

    def damage(self) -> Program[list[tuple[str, str]]]:
        return (yield from problems_of_index(self.settings))

    def mend(self) -> Program[None]:
        yield from mend_index(self.settings)

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        reader = yield from self.reader(thread_id)
        reader.work.is_strict = True  # the sizes and the rows compared with them must be from the same moment
        return (yield from reader.segment_sizes())

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        reader = yield from self.reader(thread_id)
        locked = yield from reader.lock()
        gone: dict[str, int] = {}
        found = yield from stored_rows(reader, keys)
        for member, row in found:
            gone[row.outline.ns] = gone.get(row.outline.ns, 0) + 1
            locked.checkpoints.changes[member] = None
            if row.outline.id != row.outline.rank:
                locked.checkpoints.changes[alias_of(*row.outline.key)] = None
        references = [reference_to(key) for key in keys]
        mains = yield from reader.written(references)
        for reference, main in zip(references, mains, strict=True):
            if main is not None:
                locked.writes.changes.update(dict.fromkeys([reference, *own_fields(reference, main)]))
                locked.checkpoints.changes[written_for(reference)] = None
        locked.segments.changes.update(dict.fromkeys(segments))
        if gone:
            yield from settle_heads(reader, locked, gone)
        epoch = (int_or_none(locked.head.get(b"e")) or 0) + 1
        gone_up_to = max((checkpoint_id for ns, checkpoint_id in keys if ns != MESSAGES_NS), default="")
        removed_up_to = max(text_or_none(locked.head.get(b"h")) or "", gone_up_to)
        locked.set_head({b"e": b"%d" % epoch, b"h": to_bytes(removed_up_to) or None})
        return epoch

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        reader = yield from self.reader(thread_id)
        locked = yield from reader.lock()
        if not locked.head and not locked.is_torn:
            return None
        before = _live_epoch(locked.head)
        locked.is_torn = False  # the rest of the thread is removed
        head = locked.head
        ids = [text_or_none(head.get(field)) or "" for field in (b"d", b"h")]
        names = yield from reader.checkpoint_names()
        aliases = [name for name in names if name.startswith(ALIAS)]
        ids += [each for ns, each in map(alias_parts, aliases) if ns != MESSAGES_NS]
        ranks = yield from reader.checkpoints(aliases)
        others = {(alias_parts(name)[0], text_or_none(rank)) for name, rank in zip(aliases, ranks, strict=True)}
        members = {parts_of(name) for name in names if is_member(name)}
        ids += [rank for ns, rank in members - others if ns != MESSAGES_NS]
        ids += [referred(name)[0][1] for name in (yield from reader.write_names())]
        token = int_or_none(head.get(b"t")) or 0
        epoch = max(now, (int_or_none(head.get(b"e")) or 0) + 1)
        locked.empty()
        kept = {name: value for name, value in head.items() if name in _REPLICATED}
        locked.head = {
            b"i": to_bytes(thread_id),
            b"e": b"%d" % epoch,
            b"v": b"0",
            b"d": to_bytes(deleted_up_to(ids, now)),
            **kept,
        }
        if token:
            locked.set_head({b"t": b"%d" % max(token + 1, locked.moment)})
        yield from self.follow(reader)
        return before

    def copy_segments(self, source: str, target: str) -> Program[None]:
        reader = yield from self.reader(source)
        locked = yield from (yield from self.reader(target)).lock()
        there = set((yield from (yield from self.reader(target)).segment_names()))
        names = [name for name in (yield from reader.segment_names()) if name not in there]
        found = yield from reader.segments(names)
        locked.segments.changes.update(
            (name, data) for name, data in zip(names, found, strict=True) if data is not None
        )

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        return (yield from live_ids(self.settings, after, limit))

    def upgrade(self, *, dry_run: bool) -> Program[UpgradeReport]:
        return formats.upgrade(self.settings.prefix, dry_run=dry_run)

    def awaits_others(self) -> Program[bool]:
        return formats.awaits_others(self.settings.prefix)

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        for name in (yield from live_ids(self.settings, None, 1)):
            page = yield from self.page(Scope(name), None, 1)
            rows = yield from self.rows(name, [outline.key for outline in page])
            for row in rows:
                return row.check, row.header
        return None

    def _chain_in_locked(
        self, reader: Reader, ns: str, checkpoint_id: str | None, limit: int
    ) -> Program[list[CheckpointRow]]:
        requested = checkpoint_id
        if requested is None:
            page = yield from self.page(Scope(reader.thread_id, ns), None, 1)
            requested = page[0].id if page else None
        rows: list[CheckpointRow] = []
        while requested is not None and len(rows) < limit:
            found = yield from stored_rows(reader, [(ns, requested)])
            if not found:
                break
            rows.append(found[0][1])
            requested = found[0][1].outline.parent
        return rows

    def _find_in_locked(self, reader: Reader, ns: str, checkpoint_id: str | None) -> Program[Found | None]:
        head = yield from reader.head()
        recorded = namespaces_in(head).get(ns)
        newest = None
        if checkpoint_id is None:
            page = yield from self.page(Scope(reader.thread_id, ns), None, 1)
            if not page and recorded is None:
                return None
            newest = recorded[1] if recorded else ""
            checkpoint_id = page[0].id if page else None
        rows = [] if checkpoint_id is None else (yield from stored_rows(reader, [(ns, checkpoint_id)]))
        if not rows and newest is None:
            return None
        row = rows[0][1] if rows else None
        writes = (yield from self.writes(reader.thread_id, [row.outline.key])) if row else []
        owner, expires_at = text_or_none(head.get(b"o")), int_or_none(head.get(b"x"))
        return Found(int_or_none(head.get(b"e")) or 0, row, writes, {}, newest, owner, expires_at)


def _live_epoch(head: Mapping[bytes, bytes]) -> int | None:
    return int_or_none(head.get(b"e")) if is_live(head) else None


def _found(thread_id: str, requested: tuple[str, str | None], reply: Sequence[Any]) -> Found:
    _, epoch, _, newest, owner, expires_at, member, value, main, own, segments = reply
    newest = text_or_none(newest) if requested[1] is None else None
    about = text_or_none(owner), int_or_none(expires_at)
    if value is None:  # the head is the only row
        return Found(int_or_none(epoch) or 0, None, (), {}, newest, *about)
    row = checkpoint_row(thread_id, member, value)
    key = requested[0], row.outline.id
    return Found(int_or_none(epoch) or 0, row, write_rows(key, [main, *own]), as_head(segments), newest, *about)
