"""Items to another store, and from one of LangGraph's.

Between Threadmark's stores every column is copied, with vectors and words; a value is sealed again for the target, and
is never decoded for it. From and to LangGraph's stores go the things that they keep: values that JSON has, times, times
to live, the fields that a put chose, and vectors of the same model. An item that the target has in the same or in a
later version stays as it is there, so you can repeat a move that was stopped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Literal, NamedTuple

import orjson
from langgraph.store.base import PutOp

from threadmark.backends import ConfigError, CorruptDataError, Driver, Flow, Operation, Program, arun, run
from threadmark.errors import LocatedError
from threadmark.model import Problem
from threadmark.program import read, read_itself, write
from threadmark_store.calls import Call
from threadmark_store.contract import by_item
from threadmark_store.embedding import Index
from threadmark_store.langgraphs import Passed, Theirs, langgraphs
from threadmark_store.namespaces import labels_of
from threadmark_store.operating import OnItems, Page, Rows, existing, page_behind
from threadmark_store.resealing import expect_same_keys, vector_sealed_again
from threadmark_store.searching import Searching
from threadmark_store.shapes import MINUTE, ItemKey, ItemRow, Scope, StoreMoved
from threadmark_store.texts import Fields, Lacking, chosen_in, fields_of, texts_of
from threadmark_store.values import check_of, named
from threadmark_store.vectors.contract import CHOICE, SEALED_MODEL, Vector, VectorRow, VectorTable
from threadmark_store.vectors.ranking import unit
from threadmark_store.words.contract import WordRow, rows_of

_NOT_JSON = "its value has types that JSON has not, so LangGraph's store cannot keep it"


class Whole(NamedTuple):
    """An item with all that is stored of it."""

    item: ItemRow
    vectors: Sequence[VectorRow] = ()
    words: Sequence[WordRow] = ()


class Move:
    """The counts of a move so far, and what every move does."""

    def __init__(self, *, dry_run: bool, progress: OnItems | None) -> None:
        self.dry_run = dry_run
        self._progress = progress
        self._done = self._of = 0
        self._stored = self._already_there = self._newer = 0
        self.problems: list[Problem] = []

    def count(self, stored: int, already_there: int, newer: int) -> None:
        """Add to the counts."""
        self._stored += stored
        self._already_there += already_there
        self._newer += newer

    def done(self, number: int) -> None:
        """Tell that some more items are done."""
        self._done += number
        if self._progress:
            self._progress(self._done, max(self._done, self._of))

    def expect(self, rows: Rows) -> Operation[None]:
        """Find out how many items there are, if that is to be told."""
        if self._progress:
            self._of, _ = yield from read(rows.items.count, Scope(owner=rows.owner))

    def refuse(self, key: ItemKey, error: LocatedError | str) -> None:
        """Note an item that was not stored, or not whole."""
        kind: Literal["damaged", "unreadable"] = "damaged" if isinstance(error, CorruptDataError) else "unreadable"
        self.problems.append(Problem(kind, named(key), error if isinstance(error, str) else error.problem))

    def moved(self) -> StoreMoved:
        """Return the result."""
        return StoreMoved(self._stored, self._already_there, self._newer, self.problems)


def _on(driver: Driver, operation: Callable[[], Operation[Any]]) -> Flow[Any, Any]:
    """Run an operation on another database."""
    return (yield Call(lambda: run(driver, operation()), lambda: arun(driver, operation())))


def copy(source: Rows, target: Rows, driver: Driver, move: Move) -> Flow[Any, StoreMoved]:
    """Copy everything to the database of another driver."""
    if target.owner is not None:
        raise ConfigError("items keep their owners: give a target without an owner")
    there = yield from existing(source)
    if there is None:
        return move.moved()
    if target.words is None or target.cipher:  # it has no search by text
        there = there._replace(words=None)
    yield from move.expect(there)
    ready = yield from _on(driver, partial(_ready, target, there, dry_run=move.dry_run))
    after: ItemKey | None = None
    while (page := (yield from read_itself(page_behind, there, after, all_words=True))).items:
        after = page.items[-1].key
        yield from _stored(ready, driver, list(_copies(there, target, page, move)), move)
        move.done(len(page.items))
    return move.moved()


def _stored(target: Rows | None, driver: Driver, items: Sequence[Whole], move: Move) -> Flow[Any, None]:
    """Store items on another database. Rows that are stored together have one owner."""
    if target is None:  # a dry run, on a database without tables
        move.count(len(items), 0, 0)
        return
    by_owner = sorted(items, key=lambda each: (each.item.owner is not None, each.item.owner or ""))
    for _, some in groupby(by_owner, lambda each: each.item.owner):
        yield from _added(target, driver, list(some), move)


def _added(target: Rows, driver: Driver, items: Sequence[Whole], move: Move) -> Flow[Any, None]:
    """Store items of one owner. Those that the target cannot have, such as a key that is too long, are refused."""
    try:
        counts = yield from _on(driver, partial(write, _add, target, items, dry_run=move.dry_run))
    except ConfigError as error:
        if len(items) == 1:
            move.refuse(items[0].item.key, str(error))
            return
        for each in items:
            yield from _added(target, driver, [each], move)
    else:
        move.count(*counts)


def _ready(target: Rows, source: Rows, *, dry_run: bool) -> Operation[Rows | None]:
    """Create the tables that the items of the source need. Returns the target with the tables that it has then."""
    if dry_run:
        return (yield from existing(target))
    yield from write(target.items.create)
    yield from expect_same_keys(target)
    there = yield from existing(target)
    vectors, words = there and there.vectors, there and there.words
    if source.vectors and target.vectors:
        yield from write(target.vectors.create)
        vectors = target.vectors
    if source.words and target.words:
        yield from write(target.words.create)
        words = target.words
    return target._replace(vectors=vectors, words=words)


def _copies(source: Rows, target: Rows, page: Page, move: Move) -> Iterator[Whole]:
    """Yield the rows of the target for a page of the source."""
    vectors_of, words_of = by_item(page.vectors), by_item(page.words)
    for item in page.items:
        try:
            plain = source.values.plain(item)
        except CorruptDataError as error:
            move.refuse(item.key, error)
            continue
        stored = item.value if source.cipher is target.cipher is None else target.values.stored(item.key, plain)
        row = item._replace(value=stored, check=check_of(item.key, stored))
        current = [each for each in vectors_of.get(item.key, ()) if each.check == item.check]
        try:
            vectors = [vector_sealed_again(source.cipher, target.cipher, each, row) for each in current]
        except LocatedError as error:
            move.refuse(item.key, f"it is found by no search until reindex(): {error}")
            vectors = []
        words = [
            each._replace(check=row.check, owner=row.owner)
            for each in words_of.get(item.key, ())
            if each.check == item.check
        ]
        yield Whole(row, vectors, words)


def _add(target: Rows, items: Sequence[Whole], *, dry_run: bool) -> Program[tuple[int, int, int]]:
    """Store those items that the target has not, or in an earlier version. Returns the three counts of a move."""
    keys = [each.item.key for each in items]
    if not dry_run:
        yield from target.items.lock(keys)
    there = yield from target.items.items(keys)
    new: list[Whole] = []
    same = 0
    for each in items:
        other = there.get(each.item.key)
        if other is not None and target.owner not in (None, other.owner):
            raise PermissionError(f"{named(other.key)} belongs to another owner than {target.owner!r}")
        if other is None or other.updated_at < each.item.updated_at:
            new.append(each)
        else:
            same += _is_same(target, other, each.item)
    counts = len(new), same, len(items) - len(new) - same
    if dry_run or not new:
        return counts
    keys = [each.item.key for each in new]
    # Before the items: on a cluster of Redis, the rest of a move that ended here is then stored by the next one.
    if target.vectors:
        yield from target.vectors.replace(keys, [row for each in new for row in each.vectors])
    if target.words:
        yield from target.words.replace(keys, [row for each in new for row in each.words])
    if replaced := [key for key in keys if key in there]:  # whose times and owner would stay
        yield from target.items.delete(replaced, None)
    refused = yield from target.items.put([each.item for each in new])
    if refused:
        raise PermissionError(f"{named(refused[0])} was just stored by another owner")
    return counts


def _is_same(target: Rows, one: ItemRow, other: ItemRow) -> bool:
    """Return whether two rows have one value, which may be sealed differently."""
    try:
        return target.values.plain(one) == target.values.plain(other)
    except CorruptDataError:
        return False


class _Put(NamedTuple):
    """An item of LangGraph's store that is taken over."""

    row: ItemRow
    value: dict[str, Any]
    fields: Fields = None
    vectors: Mapping[str, Sequence[float]] = {}
    """Those that can be used as they are."""


def migrate(
    target: Rows, there: Rows | None, searching: Searching, driver: Driver, store: object, move: Move
) -> Flow[Any, StoreMoved]:
    """Copy every item of LangGraph's store. `there` is the target with the tables that it has."""
    source = langgraphs(store)
    config = getattr(store, "index_config", None)
    index = Index(config, None) if config and searching.index else None
    passed = Passed()
    while found := (yield from source.after(passed)):
        passed = Passed(passed.items + len(found), found[-1].key)
        puts = [put for each in found if (put := _taken(target, searching, index, each, move)) is not None]
        if move.dry_run:
            items = [Whole(put.row) for put in puts]
        else:
            items = yield from _found_by(there or target, searching, puts)
        yield from _stored(there, driver, items, move)
        move.done(len(found))
    return move.moved()


def _taken(target: Rows, searching: Searching, index: Index | None, each: Theirs, move: Move) -> _Put | None:
    """Return an item of a store whose vectors are of this index, None if it cannot be stored."""
    try:
        if isinstance(each.value, CorruptDataError):
            raise each.value
        stored = target.values.encoded(each.key, each.value)
    except LocatedError as error:
        move.refuse(each.key, error)
        return None
    times = each.created_at, each.updated_at
    row = ItemRow(each.key, stored, check_of(each.key, stored), *times, target.owner, each.expires_at, each.ttl)
    if index is None or searching.index is None:
        return _Put(row, each.value)
    is_same_model = searching.index.model.replace(SEALED_MODEL, ")") == index.model
    fields = _chosen(each.value, each.vectors, index.fields)
    return _Put(row, each.value, fields, each.vectors if is_same_model else {})


def _chosen(value: Mapping[str, Any], vectors: Mapping[str, Sequence[float]], usual: Sequence[str]) -> Fields:
    """Return the fields that the put of an item chose, by the vectors that it has."""
    if vectors.keys() == _by_name(value, None, usual).keys():
        return None
    return list(dict.fromkeys(_field(value, name) for name in vectors)) or False


def _field(value: Mapping[str, Any], name: str) -> str:
    """Return the path to a text from the name of its vector, which ends with a number if there are several texts."""
    return name if len(list(texts_of(value, [name], ()))) == 1 else name.rpartition(".")[0] or name


def _by_name(value: Mapping[str, Any], fields: Fields, usual: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the places of texts by the names that LangGraph's stores give their vectors."""
    texts = [text[:2] for text in texts_of(value, fields, usual)]
    several = {field for field, number in texts if number}
    return {f"{field}.{number}" if field in several else field: (field, number) for field, number in texts}


def _found_by(target: Rows, searching: Searching, puts: Sequence[_Put]) -> Flow[Any, list[Whole]]:
    """Return items with their vectors or words. Vectors of another model are computed."""
    vectors: dict[ItemKey, tuple[Vector, ...]] = {}
    index = searching.index
    if index:
        vectors = {put.row.key: known for put in puts if (known := _known(index, put)) is not None}
        lacking = [Lacking(put.row.key, put.value, put.fields) for put in puts if put.row.key not in vectors]
        vectors |= yield from index.of_values(lacking)
    items = []
    for put in puts:
        words = searching.text.words(put.value, put.fields) if searching.text else None
        made = vectors.get(put.row.key, ())
        rows = VectorTable(target.vectors, index.model).rows_of(put.row, made) if index and target.vectors else ()
        items.append(Whole(put.row, rows, list(rows_of(put.row, words)) if words else ()))
    return items


def _known(index: Index, put: _Put) -> tuple[Vector, ...] | None:
    """Return the vectors of an item, None if one must be computed."""
    names = _by_name(put.value, put.fields, index.fields)
    if names.keys() - put.vectors.keys():
        return None
    units = {place: unit(put.vectors[name]) for name, place in names.items()}
    return index.known(put.row.key, put.fields, units)


def export(source: Rows, store: object, move: Move) -> Flow[Any, StoreMoved]:
    """Copy every item to a store of LangGraph's."""
    target = langgraphs(store)
    there = yield from existing(source)
    if there is None:
        return move.moved()
    yield from move.expect(there)
    if not move.dry_run:
        yield from target.make()
    after: ItemKey | None = None
    while (page := (yield from read_itself(page_behind, there, after))).items:
        after = page.items[-1].key
        puts = list(_puts(there, page, move))
        theirs = yield from target.there(item.key for item, _ in puts)
        new, same = [], 0
        for item, op in puts:
            other = theirs.get(item.key)
            is_same = other is not None and _as_json(other.value) == _as_json(op.value)
            if other is None or (other.updated_at < item.updated_at and not (is_same and not target.has_times)):
                new.append((item, op))
            else:
                same += is_same
        move.count(len(new), same, len(puts) - same - len(new))
        if new and not move.dry_run:
            yield from target.put(new)
        move.done(len(page.items))
    return move.moved()


def _as_json(value: Any) -> bytes | None:
    """Return a value for a comparison in which True is not 1. None if JSON has not all of its types."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None


def _puts(source: Rows, page: Page, move: Move) -> Iterator[tuple[ItemRow, PutOp]]:
    """Yield the items of a page that LangGraph's stores can keep."""
    checks = {item.key: item.check for item in page.items}
    fields = {head.key: chosen_in(head.word) for head in page.words if head.check == checks[head.key]}
    for row in page.vectors:
        if row.vector.number == CHOICE and row.check == checks[row.key]:
            fields[row.key] = fields_of(row.vector.field)
    for item in page.items:
        try:
            is_json = isinstance(source.values.plain(item), str)
            value = source.values.decoded(item) if is_json else {}
        except LocatedError as error:
            move.refuse(item.key, error)
            continue
        if not is_json:
            move.refuse(item.key, _NOT_JSON)
            continue
        chosen = fields.get(item.key)
        index: Any = chosen if chosen is None or isinstance(chosen, bool) else list(chosen)
        ttl = None if item.ttl is None else item.ttl / MINUTE
        yield item, PutOp(labels_of(item.key.namespace), item.key.key, value, index, ttl)
