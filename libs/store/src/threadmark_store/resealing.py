"""Items and cached values under the keys of a keyring: sealing all of them again, and refusing keys that do not fit."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from threadmark.backends import ConfigError, CorruptDataError, Operation, Program, Saver
from threadmark.program import read, read_itself, write
from threadmark.saver.kit import HOW_TO_SEAL
from threadmark.sealing import Cipher
from threadmark_store.cached.contract import Placed
from threadmark_store.contract import by_item
from threadmark_store.operating import AT_ONCE, Rows, existing, rows_of, through_cached
from threadmark_store.pairs.changes import of_one_owner
from threadmark_store.pairs.items import PairItems
from threadmark_store.shapes import ItemKey, ItemRow, Scope
from threadmark_store.values import check_of, named
from threadmark_store.vectors.contract import CHOICE, SEALED_MODEL, VectorRow, VectorStore, vector_name

_LOOKED_AT = 4
"""Items: the first ones by key, which every database finds at once."""


def expect_same_keys(rows: Rows) -> Operation[None]:
    """Look at some items, of whomever they are. Raises ConfigError if they are sealed, and none with the keyring."""
    opened = []
    for row in (yield from read(rows.items.in_key_order, Scope(), None, _LOOKED_AT)):
        if rows.values.is_sealed(row) and check_of(row.key, row.value) == row.check:
            try:
                rows.values.plain(row)
            except CorruptDataError:
                opened.append(False)
            else:
                opened.append(True)
    if rows.cipher is not None:
        rows.cipher.expect_to_open(opened, "items")


def reencrypt(saver: Saver, plain: bool) -> Operation[int]:  # noqa: FBT001 - as the saver's method calls it
    """Seal items, their vectors and cached values with the newest key. Returns how many rows that were.

    An item that does not open stays as it is, and the first of these is named in an error when all others are done.
    Cached values that do not open, or were stored without a keyring, cannot be found: with `plain` they go.
    """
    try:
        rows = rows_of(saver)
    except ConfigError:  # there are none
        return 0
    count, failed = 0, list[CorruptDataError]()
    there = yield from existing(rows)
    after: ItemKey | None = None
    while there and (page := (yield from read_itself(there.items.in_key_order, Scope(), after, AT_ONCE))):
        after = page[-1].key
        if stale := [row.key for row in page if not _is_current(there, row)]:
            done, errors = yield from write(_items_sealed_again, there, stale, rows.vectors, plain=plain)
            count, failed = count + done, failed + errors
    count += yield from through_cached(rows, partial(_cached_sealed_again, rows, plain=plain))
    if failed:
        more = f" (and {len(failed) - 1} more items)" if len(failed) > 1 else ""
        raise CorruptDataError(f"{failed[0].problem}{more}", failed[0].location)
    return count


def _is_current(rows: Rows, row: ItemRow) -> bool:
    try:
        return rows.values.is_current(row)
    except CorruptDataError:
        return False


def _items_sealed_again(
    rows: Rows, keys: Sequence[ItemKey], holder: VectorStore | None, *, plain: bool
) -> Program[tuple[int, list[CorruptDataError]]]:
    """Seal some items as they are now. Returns how many, and the errors of others.

    Their words go: a store with a keyring has none.
    """
    items = rows.items
    if isinstance(items, PairItems):
        yield from items.lock(keys)
    elif holder:
        yield from holder.hold(keys)
    stored = yield from items.items(keys)
    vectors = by_item((yield from rows.vectors.whole_rows(list(stored))) if rows.vectors and stored else ())
    sealed: list[ItemRow] = []
    found_by: list[VectorRow] = []
    failed: list[CorruptDataError] = []
    for row in stored.values():
        try:
            again = _sealed(rows, row, plain=plain)
            same = [each for each in vectors.get(row.key, ()) if each.check == row.check]
            found_by += [vector_sealed_again(rows.cipher, rows.cipher, each, again) for each in same]
        except CorruptDataError as error:
            failed.append(error)
        else:
            sealed.append(again)
    for some in of_one_owner(sealed):
        yield from items.replace(some) if isinstance(items, PairItems) else items.put(some)
    done = [row.key for row in sealed]
    if done and rows.vectors:
        yield from rows.vectors.replace(done, [each for each in found_by if each.key in set(done)])
    if done and rows.words:
        yield from rows.words.delete(done, None)
    return len(done), failed


def _sealed(rows: Rows, row: ItemRow, *, plain: bool) -> ItemRow:
    if not plain and not rows.values.is_sealed(row):
        raise CorruptDataError(f"it is not sealed: {HOW_TO_SEAL}", named(row.key))
    value = rows.values.stored(row.key, rows.values.plain(row))
    return row._replace(value=value, check=check_of(row.key, value))


def vector_sealed_again(old: Cipher | None, new: Cipher | None, row: VectorRow, item: ItemRow) -> VectorRow:
    """Return a vector for an item whose value was stored again with other keys, or without."""
    name, data, model = vector_name(row.key, row.vector), row.vector.data, row.model
    if row.vector.number != CHOICE:
        if old and model.endswith(SEALED_MODEL):
            data, model = old.open(data, name), f"{model.removesuffix(SEALED_MODEL)})"
        if new and not model.endswith(SEALED_MODEL):
            data, model = new.seal(data, name), f"{model.removesuffix(')')}{SEALED_MODEL}"
    return row._replace(vector=row.vector._replace(data=data), model=model, check=item.check, owner=item.owner)


def _cached_sealed_again(rows: Rows, some: Sequence[Placed], *, plain: bool) -> Operation[int]:
    """Seal cached values again. Returns how many."""
    count = 0
    for each in some:
        if rows.cached is None or rows.entries.is_current(each.entry):
            continue
        new = None
        if not rows.entries.is_plain(each.entry):
            with suppress(CorruptDataError):
                new = rows.entries.sealed_again(each.entry)
        if new or plain:
            count += yield from write(rows.cached.replace, each, new)
    return count
