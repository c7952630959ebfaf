"""Listing checkpoints along the ranks of their threads, and threads along the index.

The index is compared with the threads themselves, so that a listing shows nothing that is not there, and everything in
its real order.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from threadmark.backends import (
    UNFINISHED,
    CorruptDataError,
    Outline,
    Program,
    Scope,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadScope,
    in_scope,
    status_of,
)
from threadmark_redis.adding import stored_rows
from threadmark_redis.columns import (
    OUTLINE_FIELDS,
    as_head,
    checkpoint_row,
    from_bytes,
    is_live,
    measured,
    member_of,
    namespaces_in,
    parts_of,
    range_of,
    text_or_none,
    thread_outline,
    to_bytes,
)
from threadmark_redis.index import STALE, Settings
from threadmark_redis.keys import SHARDS, index_keys, thread_keys
from threadmark_redis.reading import NOTHING_THERE, Reader
from threadmark_redis.steps import Command, commands, run_each, script
from threadmark_redis.transactions import the_work
from threadmark_redis.walk import Walk

COUNTS = script("counts", "thread", "groups")

_MOST_FIELDS = 20_000
"""A thread with more fields is not counted by one script."""

_CHUNK = 500

_EVERYTHING = 2**62


# Checkpoints.


class _Place(NamedTuple):
    """The place of a checkpoint in a listing."""

    rank: str
    thread_id: str
    ns: str


def matching_ids(settings: Settings, scope: Scope) -> Program[list[str]]:
    """Return the threads of a listing of checkpoints."""
    if scope.thread_id is None:
        if scope.owner is None:
            return (yield from live_ids(settings))
        owned = yield from thread_page(settings, ThreadScope(owner=scope.owner), None, 0, _EVERYTHING)
        return [outline.row.thread_id for outline in owned]
    if scope.owner is not None:
        work = yield from the_work()
        head = yield from Reader(settings.prefix, scope.thread_id, work).head()
        if not is_live(head) or text_or_none(head.get(b"o")) != scope.owner:
            return []
    return [scope.thread_id]


def outlines_of(
    settings: Settings, names: Sequence[str], scope: Scope, after: Outline | None, limit: int
) -> Program[list[Outline]]:
    """Return the next checkpoints of these threads, by descending (rank, thread_id, ns)."""
    work = yield from the_work()
    found: dict[_Place, bytes] = {}
    for start in range(0, len(names), _CHUNK):
        readers = [Reader(settings.prefix, name, work) for name in names[start : start + _CHUNK]]
        if scope.checkpoint_id is not None or len(readers) == 1:
            members = yield from _members_one_by_one(readers, scope, after, limit)
        else:
            members = yield from _members_of_all(readers, scope, after, limit)
        for name, member in members:
            ns, rank = parts_of(member)
            place = _Place(rank, name, ns)
            if (scope.before is None or rank < scope.before) and (after is None or place < after.order):
                found[place] = member
        found = dict(sorted(found.items(), reverse=True)[:limit])
    outlines: list[Outline] = []
    by_thread: dict[str, list[bytes]] = {}
    for place, member in found.items():
        by_thread.setdefault(place.thread_id, []).append(member)
    if len(by_thread) == 1:
        ((name, members_of_one),) = by_thread.items()
        values = yield from Reader(settings.prefix, name, work).checkpoints(members_of_one)
        named = zip([name] * len(values), members_of_one, values, strict=True)
    else:
        asked: list[Command] = [
            (b"HGET", thread_keys(settings.prefix, place.thread_id).checkpoints, member)
            for place, member in found.items()
        ]
        values = yield from commands(asked)
        named = zip([place.thread_id for place in found], found.values(), values, strict=True)
    for name, member, value in named:
        if value is not None:
            outlines.append(checkpoint_row(name, member, value).outline)
    return outlines


def _members_one_by_one(
    readers: Sequence[Reader], scope: Scope, after: Outline | None, limit: int
) -> Program[list[tuple[str, bytes]]]:
    found: list[tuple[str, bytes]] = []
    for reader in readers:
        if scope.checkpoint_id is not None:
            members = yield from _with_id(reader, scope, scope.checkpoint_id)
        else:
            members = yield from _members(reader, scope, after, limit)
        found += [(reader.thread_id, member) for member in members]
    return found


def _members_of_all(
    readers: Sequence[Reader], scope: Scope, after: Outline | None, limit: int
) -> Program[list[tuple[str, bytes]]]:
    """Return the same for many threads, in two pipelines."""
    asked: list[Command] = []
    for reader in readers:
        asked += ((b"HGETALL", reader.keys.head), *((b"EXISTS", key) for key in reader.keys.companions))
    replies = yield from commands(asked)
    width = 1 + len(readers[0].keys.companions)
    ranges: list[tuple[str, Command]] = []
    for number, reader in enumerate(readers):
        fields, *there = replies[number * width : (number + 1) * width]
        head = as_head(fields)
        if b"".join(b"%d" % each for each in there) != head.get(b"k", NOTHING_THERE):
            with suppress(CorruptDataError):  # the rest is found, and `heads` shows that something is missing
                yield from reader.head()  # finds out whether keys were evicted or are new
        namespaces = [scope.ns] if scope.ns is not None else namespaces_in(head)
        ranges += [(reader.thread_id, _range(reader, ns, scope, after, limit)) for ns in namespaces]
    replies = yield from commands([command for _, command in ranges])
    return [(name, member) for (name, _), reply in zip(ranges, replies, strict=True) for member in reply]


def _with_id(reader: Reader, scope: Scope, checkpoint_id: str) -> Program[list[bytes]]:
    namespaces = [scope.ns] if scope.ns is not None else list(namespaces_in((yield from reader.head())))
    found = yield from stored_rows(reader, [(ns, checkpoint_id) for ns in namespaces])
    return [member for member, _ in found]


def _members(reader: Reader, scope: Scope, after: Outline | None, limit: int) -> Program[list[bytes]]:
    """Return places of one thread, including the next ones of the scope in each of its namespaces."""
    locked = reader.locked
    if locked is not None and (locked.emptied or locked.checkpoints.changes):
        members = yield from reader.members()
        return [member for member in members if scope.ns in (None, parts_of(member)[0])]
    namespaces = [scope.ns] if scope.ns is not None else list(namespaces_in((yield from reader.head())))
    replies = yield from reader.look([_range(reader, ns, scope, after, limit) for ns in namespaces])
    return [member for reply in replies for member in reply]


def _range(reader: Reader, ns: str, scope: Scope, after: Outline | None, limit: int) -> Command:
    """Return the command for the next checkpoints of a namespace, and perhaps one before them."""
    least, greatest = range_of(ns)
    if scope.before is not None:
        greatest = b"(" + member_of(ns, scope.before)
    if after is not None and (scope.before is None or after.rank < scope.before):
        greatest = b"[" + member_of(ns, after.rank)  # the same rank in another namespace or thread may be next
    most = min(limit, _EVERYTHING) + 1
    return (b"ZREVRANGEBYLEX", reader.keys.ranks, greatest, least, b"LIMIT", 0, most)


# Threads.


def thread_outlines(settings: Settings, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
    """Return those of these threads that are live, in any order."""
    work = yield from the_work()
    found: list[ThreadOutline] = []
    for start in range(0, len(thread_ids), _CHUNK):
        some = thread_ids[start : start + _CHUNK]
        replies = yield from commands(
            [(b"HMGET", thread_keys(settings.prefix, name).head, *OUTLINE_FIELDS) for name in some]
        )
        for name, values in zip(some, replies, strict=True):
            locked = work.locked.get(name)
            head = locked.head if locked else dict(zip(OUTLINE_FIELDS, values, strict=True))
            if is_live(head):
                found.append(thread_outline(name, head))
    return found


def counts(settings: Settings, thread_ids: Sequence[str], *, sizes: bool) -> Program[list[Any]]:
    """Return the replies of lua/counts.lua for these threads."""
    arguments = int(sizes), _MOST_FIELDS, *UNFINISHED
    calls = [(thread_keys(settings.prefix, name), arguments) for name in thread_ids]
    return (yield from run_each(COUNTS, calls))


def live_ids(settings: Settings, after: str | None = None, limit: int = _EVERYTHING) -> Program[list[str]]:
    """Return the next ids of live threads, in ascending order, including those whose head is missing."""
    walk = Walk([index_keys(settings.prefix, shard).ids for shard in range(SHARDS)], by_score=False, descending=False)
    if after is not None:
        walk.start((0, to_bytes(after)))
    found: list[str] = []
    while len(found) < limit:
        batch = yield from walk.next_batch(min(limit - len(found), _CHUNK))
        if not batch:
            break
        names = [from_bytes(member) for _, member in batch]
        asked: list[Command] = []
        for name in names:
            keys = thread_keys(settings.prefix, name)
            asked += ((b"HGET", keys.head, b"v"), (b"EXISTS", keys.checkpoints))
        replies = yield from commands(asked)
        states = zip(names, replies[::2], replies[1::2], strict=True)
        found += [name for name, live, rows in states if live == b"1" or rows]
    return found


def thread_page(
    settings: Settings, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
) -> Program[list[ThreadOutline]]:
    """Return the next live threads of a scope."""
    if scope.owner is not None or scope.expired is not None:
        found = yield from _sorted_page(settings, scope, after)
        return found[offset : offset + limit]
    listing = _Listing(settings, scope, after)
    page: list[ThreadOutline] = []
    while len(page) < offset + limit and not listing.is_over:
        page += yield from listing.next_threads(min(offset + limit - len(page), _CHUNK))
    return page[offset : offset + limit]


def count_threads(settings: Settings, scope: ThreadScope) -> Program[int]:
    """Return how many live threads are in the scope."""
    if scope == ThreadScope(sort=scope.sort, descending=scope.descending):
        replies = yield from commands([(b"ZCARD", index_keys(settings.prefix, shard).ids) for shard in range(SHARDS)])
        return sum(replies)
    page = yield from thread_page(settings, scope, None, 0, _EVERYTHING)
    return len(page)


def place_of(scope: ThreadScope, outline: ThreadOutline) -> ThreadPlace:
    """Return the place of a thread in a listing."""
    values = {"updated": outline.updated_at, "created": outline.row.created_at, "id": 0}
    return ThreadPlace(values[scope.sort], outline.row.thread_id)


def _sorted_page(settings: Settings, scope: ThreadScope, after: ThreadPlace | None) -> Program[list[ThreadOutline]]:
    """Return all threads of an owner, or all that have expired, that come after a place."""
    shards = [index_keys(settings.prefix, shard) for shard in range(SHARDS)]
    names: list[str] = []
    if scope.owner is not None:
        start = measured(to_bytes(scope.owner))
        asked: list[Command] = [
            (b"ZRANGEBYLEX", shard.owners, b"[" + start, b"(" + start + b"\xff") for shard in shards
        ]
        for reply in (yield from commands(asked)):
            names += [from_bytes(member[len(start) :]) for member in reply]
    else:
        asked = [(b"ZRANGEBYSCORE", shard.expiries, b"-inf", scope.expired or 0) for shard in shards]
        for reply in (yield from commands(asked)):
            names += map(from_bytes, reply)
    outlines = yield from thread_outlines(settings, names)
    chosen = yield from _chosen(settings, scope, outlines)
    chosen.sort(key=lambda each: place_of(scope, each), reverse=scope.descending)
    return [each for each in chosen if after is None or _is_behind(scope, each, after)]


def _is_behind(scope: ThreadScope, outline: ThreadOutline, after: ThreadPlace) -> bool:
    place = place_of(scope, outline)
    return place < after if scope.descending else place > after


def _chosen(settings: Settings, scope: ThreadScope, outlines: Sequence[ThreadOutline]) -> Program[list[ThreadOutline]]:
    """Return those of some threads that are in the scope."""
    found = [each for each in outlines if in_scope(scope, each)]
    if scope.status is None or not found:
        return found
    replies = yield from counts(settings, [each.row.thread_id for each in found], sizes=False)
    return [each for each, reply in zip(found, replies, strict=True) if _status(reply) == scope.status]


def _status(reply: Sequence[Any]) -> str:
    if len(reply) == 1:
        return "gone"
    return status_of(ThreadCounts("", *reply[1:]))


class _Listing:
    """A walk along the index that returns threads in their real order.

    By update, a thread's real place may be up to `STALE` after its recorded one, so threads that were read wait until
    no other one can come before them.
    """

    def __init__(self, settings: Settings, scope: ThreadScope, after: ThreadPlace | None) -> None:
        self.is_over = False
        self._settings = settings
        self._scope = scope
        self._after = after
        self._waiting: list[ThreadOutline] = []
        self._seen: set[str] = set()
        column = {"id": 0, "created": 1, "updated": 2}[scope.sort]
        shards = [index_keys(settings.prefix, shard)[column] for shard in range(SHARDS)]
        self._walk = Walk(shards, by_score=scope.sort != "id", descending=scope.descending)
        if after is not None:
            back = STALE if scope.sort == "updated" and not scope.descending else 0
            self._walk.start((after.value - back, b"" if back else to_bytes(after.thread_id)))

    def next_threads(self, number: int) -> Program[list[ThreadOutline]]:
        """Return the next few threads, perhaps none."""
        batch = yield from self._walk.next_batch(number + 16)
        names = [name for name in (from_bytes(member) for _, member in batch) if name not in self._seen]
        self._seen.update(names)
        outlines = yield from thread_outlines(self._settings, names)
        chosen = yield from _chosen(self._settings, self._scope, outlines)
        after = self._after
        self._waiting += [each for each in chosen if after is None or _is_behind(self._scope, each, after)]
        self._waiting.sort(key=lambda each: place_of(self._scope, each), reverse=self._scope.descending)
        if not batch:
            self.is_over = True
            ready, self._waiting = self._waiting, []
            return ready
        if self._scope.sort != "updated":
            ready, self._waiting = self._waiting, []
            return ready
        last = batch[-1][0]
        if self._scope.descending:
            count = sum(each.updated_at > last + STALE for each in self._waiting)
        else:
            count = sum(each.updated_at < last for each in self._waiting)
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        return ready
