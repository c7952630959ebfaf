"""Items on Redis: hashes by namespace, and sorted sets along which they are found.

Namespaces are spread over 16 shards by their names, as threads are in their index. All keys of a shard have one hash
tag, so no node of a cluster has everything, and one script (`redis.lua`) changes an item and all that leads to it: an
index never lacks an item, and has nothing that is gone. A namespace has a hash of its items, so `get` is one HGET. It
also has the keys in order, for a walk through everything, and for each owner its items' places: the time of update,
inverted, and the key. Their members sort like the results of a search, without scores, which are not exact and have
ties. A search reads those few orders side by side, then the rows, and nothing of other owners. Each shard has the names
of its namespaces, by name and by owner, where a prefix is a range; and the expiries, for a sweep. One key of a whole
database would lie on one node; a slot for each namespace would have its index in another slot.

One server makes the puts and the deletions of a batch in one script, all or none. A cluster has a script for each of
the shards that the batch is about: each shard's items are stored together, and a failure may leave those of others
behind. A batch with another owner's item is refused as a whole, unless the item is created at this moment.

The reads of a batch show one moment, without a lock: each change gives its namespace another version, and a batch whose
namespaces have changed when its last rows come is read again. After 16 attempts, and in a search over more than 1,000
namespaces, an item that another client updates at that time is found in its new version, or missed by a later page.

Keys are named before the script runs, as clusters require. The order of an item with another owner than expected has
another key: then the script says whose it is, changes nothing, and is sent again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from secrets import token_bytes
from typing import Any, Literal

from threadmark.backends import ConfigError, Program, short_repr
from threadmark_redis.columns import from_bytes, measured, pack, to_bytes
from threadmark_redis.keys import shard_of
from threadmark_redis.steps import Command, commands, run
from threadmark_redis.transactions import ChangedError, Work, expect_proven, the_work
from threadmark_store.items.redis_layout import (
    LONGEST_NAMESPACE,
    VERSION,
    Bucket,
    bucket_in,
    bucket_of,
    expiry_in,
    expiry_member,
    has_short_namespace,
    items_key,
    mark_of,
    names_key,
    namespace_member,
    owner_member,
    ranges_of,
    row_bytes,
    row_in,
    shard_keys,
    shards_of,
    value_size,
)
from threadmark_store.items.redis_walk import CHUNK, Walk
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope
from threadmark_store.tables.redis import RedisTable, script

_PROVEN = 1000
"""Namespaces of a search whose reads show one moment."""

_NONCE_BYTES = 8

_NAMES_AT_ONCE = 64
"""Namespaces that a walk by key reads together."""

_REMOVALS = None
"""The place of removals among the actions that end a transaction, which are about no thread."""


@dataclass(slots=True)
class _Change:
    """A change of one item, as `redis.lua` describes it."""

    kind: Literal["put", "delete", "sweep", "refresh"]
    key: ItemKey
    own: bytes
    only_own: bool
    row: ItemRow | None = None
    moment: int = 0
    expected: bytes = b""

    def __post_init__(self) -> None:
        self.expected = self.own

    def keys(self, prefix: bytes) -> tuple[bytes, ...]:
        namespace = self.key.namespace
        order = bucket_of(prefix, namespace, self.expected).order
        shard = shard_keys(prefix, shard_of(namespace))
        return items_key(prefix, namespace), names_key(prefix, namespace), order, *shard

    def columns(self) -> bytes:
        namespace, key = self.key
        refreshes = self.kind == "refresh"
        expiry = measured(to_bytes(namespace)) if refreshes else expiry_member(self.key, self.expected)
        members = namespace_member(namespace, self.expected), owner_member(namespace, self.expected)
        about = self.kind, to_bytes(key), expiry, self.expected, self.own, self.only_own, *members
        if self.row is None:
            return pack((*about, b"%d" % self.moment))
        expires = b"" if self.row.expires_at is None else b"%d" % self.row.expires_at
        return pack((*about, row_bytes(self.row, self.expected), expires))


class RedisItems(RedisTable):
    """Items in hashes."""

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        work = yield from self._remove_now()
        asked = [self._get(key) for key in keys]
        # One item proves itself.
        first = [self._version(name) for name in {key.namespace for key in keys}] if len(asked) > 1 else []
        replies = yield from commands([*first, *asked, *first])
        found = replies[len(first) : len(first) + len(asked)]
        proof = dict(zip(first, replies, strict=False)) or dict(zip(asked, found, strict=True))
        _note(work, proof, replies[len(first) + len(asked) :])
        return {key: row_in(key, row) for key, row in zip(keys, found, strict=True) if row is not None}

    def lock(self, keys: Sequence[ItemKey]) -> Program[None]:
        yield from ()

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """Raises ConfigError for a namespace that is too long."""
        for row in rows:
            if not has_short_namespace(row.key):
                raise ConfigError(
                    f"the namespace {short_repr(row.key.namespace)} has more than {LONGEST_NAMESPACE:,} bytes with its "
                    "dots, and Redis has items of no longer one: give shorter labels, such as digests"
                )
        puts = [_Change("put", row.key, mark_of(row.owner), row.owner is not None, row) for row in rows]
        if len({self._place(change) for change in puts}) > 1 and (refused := (yield from self._of_others(rows))):
            return refused
        work = yield from the_work()
        yield from expect_proven(work)
        work.proofs.clear()
        removals = work.after.pop(_REMOVALS, None)
        _, refused = yield from self._make([*(removals.args[0] if isinstance(removals, partial) else ()), *puts])
        return refused

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove items, together with the puts that follow, or else at the end of the transaction."""
        work = yield from self._remove_now()
        there = filter(has_short_namespace, keys)
        changes = [_Change("delete", key, mark_of(owner), owner is not None) for key in there]
        work.after[_REMOVALS] = partial(self._removed, changes)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        yield from self._make([_Change("refresh", key, b"", only_own=False, moment=now) for key in keys])

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        work = yield from self._remove_now()
        walk, listed = yield from self._walk(work, scope, after)
        passed, proven = 0, len(work.proofs)
        if scope.alive_at is None:  # places suffice
            while passed < offset and (places := (yield from walk.next(min(offset - passed, CHUNK)))):
                passed += len(places)
        wanted = limit + offset - passed
        rows: list[ItemRow] = []
        while len(rows) < wanted and (places := (yield from walk.next(min(wanted - len(rows), CHUNK)))):
            proof = {**walk.proofs, **listed} if walk.proofs else {}
            replies = yield from commands([*(self._get(place.key) for _, place in places), *proof])
            _note(work, proof, replies[len(places) :])
            for (_, place), stored in zip(places, replies, strict=False):
                row = None if stored is None else row_in(place.key, stored)
                # One that was updated since has moved to the front, where a later page is not.
                if row is not None and scope.has(row) and (after is None or row.updated_at == place.updated_at):
                    rows.append(row)
        if len(work.proofs) == proven:
            _note(work, {**walk.proofs, **listed} if walk.proofs or not walk.buckets else {})
        return sorted(rows, key=lambda row: (-row.updated_at, row.key))[offset - passed :]

    def _walk(self, work: Work, scope: Scope, after: Place | None) -> Program[tuple[Walk, dict[Command, list[bytes]]]]:
        """Return the walk of a search, and the listing of its buckets. A later page goes on with the one before."""
        kept: tuple[Walk, dict[Command, list[bytes]]] | None = work.kept.get(scope)
        if kept is None or after is None or kept[0].last != after:
            listed = yield from self._listed(scope)
            buckets = self._buckets_in(scope, listed)
            versions = [self._version(name) for name in {bucket.namespace for bucket in buckets}]
            kept = Walk(buckets, after, versions if len(versions) <= _PROVEN else ()), listed
            work.kept[scope] = kept
        return kept

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        yield from self._remove_now()
        start = "" if after is None else after.namespace
        rows: list[ItemRow] = []
        while (wanted := limit - len(rows)) > 0 and (names := (yield from self._names(scope, start))):
            keys = yield from self._keys(names, after, wanted)
            rows += [row for row in (yield from self._rows(keys)) if row is not None and scope.has(row)]
            if len(keys) < wanted:  # these namespaces have no more
                start, after = names[-1] + "\0", None
            else:
                start, after = keys[-1].namespace, keys[-1]
        return rows

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        yield from self._remove_now()
        buckets = yield from self._buckets(scope)
        if scope.alive_at is not None:
            buckets = yield from self._alive(buckets, scope.alive_at)
        return sorted({bucket.namespace for bucket in buckets})

    def sweep(self, now: int, limit: int) -> Program[list[ItemKey]]:
        asked: list[Command] = [
            (b"ZRANGEBYSCORE", shard.expiries, b"-inf", now, b"WITHSCORES", b"LIMIT", 0, limit)
            for shard in shards_of(self._prefix)
        ]
        expired: list[tuple[float, bytes]] = []
        for reply in (yield from commands(asked)):
            expired += [(float(score), member) for member, score in zip(reply[::2], reply[1::2], strict=True)]
        oldest = [expiry_in(member) for _, member in sorted(expired)[:limit]]
        swept, _ = yield from self._make(
            [_Change("sweep", key, mark, only_own=True, moment=now) for key, mark in oldest]
        )
        return swept

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        yield from self._remove_now()
        walk = Walk((yield from self._buckets(scope)), None)
        count = size = 0
        while places := (yield from walk.next(CHUNK)):
            found = [(place.key, walk.buckets[bucket].mark) for bucket, place in places]
            replies = yield from commands([command for key, mark in found for command in self._sizes(key, mark)])
            for (key, mark), length, expires in zip(found, replies[::2], replies[1::2], strict=True):
                if length and (scope.alive_at is None or expires is None or float(expires) > scope.alive_at):
                    count += 1
                    size += sum(map(len, map(to_bytes, key))) + value_size(length, mark, ends=expires is not None)
        return count, size

    def _sizes(self, key: ItemKey, mark: bytes) -> Iterator[Command]:
        yield b"HSTRLEN", items_key(self._prefix, key.namespace), to_bytes(key.key)
        yield b"ZSCORE", shard_keys(self._prefix, shard_of(key.namespace)).expiries, expiry_member(key, mark)

    def _rows(self, keys: Iterable[ItemKey]) -> Program[list[ItemRow | None]]:
        """Return the rows of keys, None for each that has none."""
        distinct = list(keys)
        found: list[ItemRow | None] = []
        for start in range(0, len(distinct), CHUNK):
            some = distinct[start : start + CHUNK]
            replies = yield from commands(list(map(self._get, some)))
            found += [None if row is None else row_in(key, row) for key, row in zip(some, replies, strict=True)]
        return found

    def _get(self, key: ItemKey) -> Command:
        return b"HGET", items_key(self._prefix, key.namespace), to_bytes(key.key)

    def _version(self, namespace: str) -> Command:
        return b"HGET", items_key(self._prefix, namespace), VERSION

    def _listed(self, scope: Scope) -> Program[dict[Command, list[bytes]]]:
        """Return the commands that list the buckets of a scope, and their replies."""
        asked: list[Command] = [(b"ZRANGEBYLEX", key, *bounds) for key, bounds in ranges_of(self._prefix, scope)]
        return dict(zip(asked, (yield from commands(asked)), strict=True))

    def _buckets_in(self, scope: Scope, listed: Mapping[Command, list[bytes]]) -> list[Bucket]:
        return [bucket_in(self._prefix, scope, member) for members in listed.values() for member in members]

    def _buckets(self, scope: Scope) -> Program[list[Bucket]]:
        return self._buckets_in(scope, (yield from self._listed(scope)))

    def _alive(self, buckets: Sequence[Bucket], moment: int) -> Program[list[Bucket]]:
        """Return those buckets that have an item which has not expired."""
        shards = {shard_keys(self._prefix, shard_of(bucket.namespace)).expiries for bucket in buckets}
        expired: Counter[tuple[str, bytes]] = Counter()
        for members in (yield from commands([(b"ZRANGEBYSCORE", key, b"-inf", moment) for key in shards])):
            for key, mark in map(expiry_in, members):
                expired[key.namespace, mark] += 1
        counts = yield from commands([(b"ZCARD", bucket.order) for bucket in buckets if expired[bucket[:2]]])
        sizes = iter(counts)
        return [bucket for bucket in buckets if not expired[bucket[:2]] or next(sizes) > expired[bucket[:2]]]

    def _names(self, scope: Scope, start: str) -> Program[list[str]]:
        """Return the next namespaces of a scope, in order, from a name on."""
        ranges = ranges_of(self._prefix, scope, start)
        limit = b"LIMIT", 0, _NAMES_AT_ONCE
        replies = yield from commands([(b"ZRANGEBYLEX", key, *bounds, *limit) for key, bounds in ranges])
        found = [[bucket_in(self._prefix, scope, member).namespace for member in members] for members in replies]
        cut = [names[-1] for names in found if len(names) == _NAMES_AT_ONCE]  # behind these may be more
        return sorted({name for names in found for name in names if not cut or name <= min(cut)})

    def _keys(self, names: Sequence[str], after: ItemKey | None, limit: int) -> Program[list[ItemKey]]:
        """Return the first keys of these namespaces, in order, behind a key."""
        asked: list[Command] = [
            (
                b"ZRANGEBYLEX",
                names_key(self._prefix, name),
                b"(" + to_bytes(after.key) if after is not None and after.namespace == name else b"-",
                b"+",
                b"LIMIT",
                0,
                limit,
            )
            for name in names
        ]
        replies = yield from commands(asked)
        found = [ItemKey(name, from_bytes(key)) for name, keys in zip(names, replies, strict=True) for key in keys]
        return found[:limit]

    def _of_others(self, rows: Sequence[ItemRow]) -> Program[list[ItemKey]]:
        """Return the keys of items that belong to another owner than the rows."""
        owners = {row.key: row.owner for row in rows if row.owner is not None}
        found = yield from self._rows(owners)
        return [row.key for row in found if row is not None and row.owner != owners[row.key]]

    def _remove_now(self) -> Program[Work]:
        """Make the removals that wait for the end of the transaction, so that later steps see them."""
        work = yield from the_work()
        removals = work.after.pop(_REMOVALS, None)
        if removals is not None:
            work.proofs.clear()
            yield from removals()
        return work

    def _removed(self, changes: Sequence[_Change]) -> Program[None]:
        yield from self._make(changes)

    def _make(self, changes: Sequence[_Change]) -> Program[tuple[list[ItemKey], list[ItemKey]]]:
        """Make changes. Returns the keys of items that a sweep removed, and those of refused puts."""
        groups: dict[int, list[_Change]] = {}
        for change in changes:
            groups.setdefault(self._place(change), []).append(change)
        swept: list[ItemKey] = []
        refused: list[ItemKey] = []
        for group in groups.values():
            outcome, *numbers = yield from self._sent(group)
            (refused if outcome == b"refused" else swept).extend(group[number - 1].key for number in numbers)
        return swept, refused

    def _sent(self, group: Sequence[_Change]) -> Program[list[Any]]:
        """Run the script, until every item has the owner that is expected."""
        nonce = token_bytes(_NONCE_BYTES)
        while True:
            keys = [key for change in group for key in change.keys(self._prefix)]
            reply: list[Any] = yield from run(script("items"), keys, [nonce, *(change.columns() for change in group)])
            if reply[0] != b"others":
                return reply
            for number, mark in zip(reply[1::2], reply[2::2], strict=True):
                group[number - 1].expected = mark

    def _place(self, change: _Change) -> int:
        """Return which changes one script can make together: all on one server, those of a slot in a cluster."""
        return shard_of(change.key.namespace) if self._clustered else 0


rows_over = RedisItems


def _note(work: Work, proof: dict[Command, Any], replies: Sequence[Any] = ()) -> None:
    """Note a read with its proof. Raises ChangedError if it does not hold any more, by these replies."""
    if replies and list(proof.values()) != list(replies) and not work.is_late:
        raise ChangedError
    work.proofs.append(proof)
