"""Vectors on Redis: two hashes for each namespace, of all rows of an item, and of these without their data.

Their keys have the hash tag of the items' shard, and one script (`redis.lua`) changes them, after the one that changes
the items. At the end of a transaction the script removes the vectors of those items that are gone, also if another
caller removed them. An item has no vectors that count if the connection is lost between both, or if another caller or
a `reindex` stores those of an earlier value at that time: the next `reindex` computes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgpack

from threadmark.backends import Program
from threadmark_redis.columns import from_bytes, pack, to_bytes
from threadmark_redis.keys import SHARDS, shard_of
from threadmark_redis.steps import Command, commands, run
from threadmark_redis.transactions import the_work
from threadmark_store.items.redis_layout import items_key, start_of
from threadmark_store.namespaces import bounds_below, is_within
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.tables.redis import RedisTable, script
from threadmark_store.vectors.contract import CHOICE, ComparedByNumpy, Scanned, Vector, VectorCounts, VectorRow

_ITEMS_AT_ONCE = 1024
_NAMES_AT_ONCE = 64
_TYPES = (str, int, bytes, str, int)
"""The types of the first columns of a row: field, number, data, model and check."""


class RedisVectors(ComparedByNumpy, RedisTable):
    """Vectors in hashes."""

    def exists(self) -> Program[bool]:
        return any((yield from commands([(b"EXISTS", self._names_key(shard)) for shard in range(SHARDS)])))

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        yield from ()

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        """Return those that both hashes have, so that a `reindex` computes again what does not read."""
        whole = yield from self.whole_rows(keys)
        heads = {row._replace(vector=row.vector._replace(data=b"")) for row in whole}
        return [row for row in (yield from self._rows(keys, b"h")) if row in heads]

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return (yield from self._rows(keys, b"r"))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        of_item: dict[ItemKey, list[VectorRow]] = {key: [] for key in keys}
        for row in rows:
            of_item[row.key].append(row)
        yield from self._change({key: _ends(rows) for key, rows in of_item.items()})
        if rows:
            yield from self._look_at_end(keys)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove the vectors of those items that are gone at the end of the transaction."""
        yield from self._look_at_end(keys)

    def _look_at_end(self, keys: Sequence[ItemKey]) -> Program[None]:
        work = yield from the_work()
        work.at_end.append(partial(self._change, dict.fromkeys(keys, ())))

    def _change(self, changes: Mapping[ItemKey, tuple[object, ...]]) -> Program[None]:
        """Run the script for items, each with the end of its arguments."""
        shards: dict[int, list[ItemKey]] = {}
        for key in changes:
            shards.setdefault(shard_of(key.namespace), []).append(key)
        for shard, some in shards.items():
            names = [self._names_key(shard), *(name for key in some for name in self._keys_of(key.namespace))]
            yield from run(
                script("vectors"),
                names,
                [pack((to_bytes(key.namespace), to_bytes(key.key), *changes[key])) for key in some],
            )

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        keys, cursor = yield from self._keys(scope, cursor)
        rows = yield from self._rows(keys, b"r")
        wanted = [row for row in rows if row.model == model and scope.owner in (None, row.owner)]
        return [(*row.key, *row.vector, row.check) for row in wanted], cursor

    def text(self, column: str) -> str:
        return column

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return self._keys(Scope(), cursor)

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        cursor: Cursor | None = None
        of_model = of_others = 0
        while True:
            keys, cursor = yield from self._keys(scope, cursor)
            for row in (yield from self._rows(keys, b"h")):
                if scope.owner in (None, row.owner) and row.vector.number != CHOICE:
                    of_model += row.model == model
                    of_others += row.model != model
            if cursor is None:
                return VectorCounts(of_model, of_others)

    def _keys(self, scope: Scope, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        """Return the keys of the next items. The cursor has the last one, and the namespaces that are left."""
        after, *names = cursor or ("", *(yield from self._names(scope)))
        some = [str(name) for name in names[:_NAMES_AT_ONCE]]
        bounds = b"+", b"LIMIT", 0, _ITEMS_AT_ONCE
        asked: list[Command] = [
            (
                b"ZRANGEBYLEX",
                self._key(name, b"k"),
                b"-" if number or not after else b"(" + to_bytes(str(after)),
                *bounds,
            )
            for number, name in enumerate(some)
        ]
        keys: list[ItemKey] = []
        for number, found in enumerate((yield from commands(asked))):
            keys += [ItemKey(some[number], from_bytes(key)) for key in found]
            if len(found) == _ITEMS_AT_ONCE:  # there may be more
                return keys, (keys[-1].key, *names[number:])
            if len(keys) >= _ITEMS_AT_ONCE:
                break
        left = names[number + 1 :] if some else []
        return keys, ("", *left) if left else None

    def _names(self, scope: Scope) -> Program[list[str]]:
        """Return the namespaces of a scope."""
        least, most = b"-", b"+"
        if scope.prefix:
            least, most = b"[" + to_bytes(scope.prefix), b"(" + to_bytes(bounds_below(scope.prefix)[1])
        replies = yield from commands(
            [(b"ZRANGEBYLEX", self._names_key(shard), least, most) for shard in range(SHARDS)]
        )
        names = [from_bytes(name) for found in replies for name in found]
        return [name for name in names if is_within(name, scope.prefix)]

    def _rows(self, keys: Sequence[ItemKey], end: bytes) -> Program[list[VectorRow]]:
        asked: list[Command] = [(b"HGET", self._key(key.namespace, end), to_bytes(key.key)) for key in keys]
        replies = yield from commands(asked)
        return [row for key, packed in zip(keys, replies, strict=True) if packed for row in _unpacked(key, packed)]

    def _names_key(self, shard: int) -> bytes:
        return start_of(self._prefix, shard) + b"vn"

    def _key(self, namespace: str, end: bytes) -> bytes:
        return b"%bv:%b%b" % (start_of(self._prefix, shard_of(namespace)), to_bytes(namespace), end)

    def _keys_of(self, namespace: str) -> Iterator[bytes]:
        yield items_key(self._prefix, namespace)
        for end in (b"k", b"h", b"r"):
            yield self._key(namespace, end)


rows_over = RedisVectors


def _ends(rows: Sequence[VectorRow]) -> tuple[object, ...]:
    """Return the end of the script's arguments for an item that gets these rows."""
    if not rows:
        return (False,)
    columns = [(*row.vector, row.model, row.check, row.owner) for row in rows]
    heads = [(field, number, b"", *others) for field, number, _, *others in columns]
    return tuple(msgpack.packb(each, unicode_errors="surrogatepass") for each in (heads, columns))


def _unpacked(key: ItemKey, packed: bytes) -> Iterator[VectorRow]:
    try:
        for columns in msgpack.unpackb(packed, unicode_errors="surrogatepass"):
            yield _row(key, *columns)
    except (ValueError, TypeError):  # no item has this check, so `verify` reports it, and `reindex` computes it again
        yield VectorRow(key, Vector("", 0, b""), "", 0)


def _row(key: ItemKey, field: str, number: int, data: bytes, model: str, check: int, owner: str | None) -> VectorRow:
    """Return a row. Raises TypeError if its columns have other types."""
    if tuple(map(type, (field, number, data, model, check))) != _TYPES or not isinstance(owner, str | None):
        raise TypeError("the columns of a vector have other types")
    return VectorRow(key, Vector(field, number, data), model, check, owner)
