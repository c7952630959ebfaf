"""Functions for operators: whether all items are as they were stored, and how much there is.

Nothing here needs LangGraph, creates tables or changes a row, so the command uses it on databases that it only reads.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from threadmark.backends import ConfigError, CorruptDataError, Operation, Program, Saver, now
from threadmark.errors import LocatedError
from threadmark.model import Problem
from threadmark.program import read_existing, read_itself
from threadmark.sealing import Cipher
from threadmark_store.backends import PAIR, backend_of, rows_over
from threadmark_store.cached.contract import CachedStore, Placed
from threadmark_store.contract import ItemStore, by_item, orphans_behind
from threadmark_store.entries import Entries
from threadmark_store.shapes import ItemKey, ItemRow, Scope, StoreStats, StoreVerifyReport, time_of
from threadmark_store.texts import fields_of
from threadmark_store.values import Values, named
from threadmark_store.vectors.contract import CHOICE, SEALED_MODEL, VectorRow, VectorStore, dims_of, vector_name
from threadmark_store.words.contract import HEAD, WordRow, WordStore, WordTotals

T = TypeVar("T")

AT_ONCE = 256
"""Items that a transaction reads."""

_FLOAT_BYTES = 4
_NOT_OF_LENGTH_1 = 1e-3

OnItems = Callable[[int, int], object]
"""Called between two transactions with the number of items that are done, and of all."""


class Rows(NamedTuple):
    """Everything that a store keeps in a saver's database, and that belongs to the saver's owner."""

    backend: str
    items: ItemStore
    values: Values
    owner: str | None
    cipher: Cipher | None
    vectors: VectorStore | None
    words: WordStore | None
    cached: CachedStore | None
    entries: Entries


class Page(NamedTuple):
    """Some items, with all that a search finds them by."""

    items: Sequence[ItemRow]
    vectors: Sequence[VectorRow]
    words: Sequence[WordRow]
    """Their heads, or all of them if these were asked for."""


def rows_of(saver: Saver) -> Rows:
    """Return what a store keeps in a saver's database. Raises ConfigError if this backend has no items."""
    backend = backend_of(saver)
    context = saver._context  # noqa: SLF001 - it works on the saver's database as the saver itself does
    serde, cipher, owner = context.serde, context.cipher, context.threads.owner
    return Rows(
        backend,
        items=rows_over(saver, "items"),
        values=Values(serde, cipher),
        owner=owner,
        cipher=cipher,
        vectors=rows_over(saver, "vectors"),
        words=None if backend == "redis" else rows_over(saver, "words"),
        cached=None if backend == PAIR else rows_over(saver, "cached"),
        entries=Entries(serde, cipher, owner),
    )


def existing(rows: Rows) -> Operation[Rows | None]:
    """Return the rows without the tables that do not exist, None if there is none of items."""
    if not (yield from read_existing(rows.items.exists)):
        return None
    vectors, words = rows.vectors, rows.words
    if vectors and not (yield from read_existing(vectors.exists)):
        vectors = None
    if words and not (yield from read_existing(words.exists)):
        words = None
    return rows._replace(vectors=vectors, words=words)


def page_behind(rows: Rows, after: ItemKey | None, *, all_words: bool = False) -> Program[Page]:
    """Return the next items in the order of their keys, none at the end."""
    items = yield from rows.items.in_key_order(Scope(owner=rows.owner), after, AT_ONCE)
    keys = [item.key for item in items]
    vectors = (yield from rows.vectors.whole_rows(keys)) if keys and rows.vectors else ()
    words: Sequence[WordRow] = ()
    if keys and rows.words:
        words = yield from (rows.words.whole_rows if all_words else rows.words.rows)(keys)
    return Page(items, vectors, words)


def through_cached(rows: Rows, work: Callable[[Sequence[Placed]], Operation[int]]) -> Operation[int]:
    """Do something with all values of the cache of nodes, page by page. Returns the sum of the results."""
    if rows.cached is None or not (yield from read_existing(rows.cached.exists)):
        return 0
    done, cursor = 0, None
    while True:
        some, cursor = yield from read_itself(rows.cached.page, rows.owner, cursor)
        done += yield from work(some)
        if cursor is None:
            return done


def verify(rows: Rows, *, decode: bool = False, progress: OnItems | None = None) -> Operation[StoreVerifyReport]:
    """Read everything, and report damage and orphans."""
    findings = _Findings(rows, decode=decode)
    findings.cached = yield from through_cached(rows, findings.add_cached)
    there = yield from existing(rows)
    if there is None:
        return findings.report()
    count = (yield from read_itself(there.items.count, Scope(owner=there.owner)))[0] if progress else 0
    after: ItemKey | None = None
    while (page := (yield from read_itself(page_behind, there, after, all_words=True))).items:
        after = page.items[-1].key
        findings.add(page)
        if progress:
            progress(findings.items, max(findings.items, count))
    if there.owner is None:
        for what, table in (("vectors", there.vectors), ("words", there.words)):
            if table is not None:
                yield from _find_orphans(there.items, what, table, findings)
    return findings.report()


class _Findings:
    """The findings so far."""

    def __init__(self, rows: Rows, *, decode: bool) -> None:
        self._values = rows.values
        self._cipher = rows.cipher
        self._decode = decode
        self._entries = rows.entries
        self.cached = self.items = self._vectors = self._texts = 0
        self.problems: list[Problem] = []
        self._unreadable: list[Problem] = []

    def add(self, page: Page) -> None:
        """Prove some items, and compare all that is stored of them."""
        items, vectors, words = page
        self.items += len(items)
        of_key = {item.key: item for item in items}
        for item in items:
            self._item(item)
        for vector in vectors:
            self._vectors += vector.vector.number != CHOICE
            location = f"{named(vector.key)}, vector {vector.vector.field!r}"
            if self._belongs(vector, of_key[vector.key], location):
                self._vector(vector, location)
        for key, some in by_item(words).items():
            self._words(some, of_key[key], f"{named(key)}, words")

    def add_cached(self, entries: Sequence[Placed]) -> Operation[int]:
        """Prove some values of the cache. Returns how many."""
        yield from ()
        for _, entry in entries:
            self._prove(entry, f"cached value {entry.key.key.hex()}", self._entries.prove, self._entries.decoded)
        return len(entries)

    def report(self) -> StoreVerifyReport:
        """Return the findings."""
        return StoreVerifyReport(self.items, self._vectors, self._texts, self.problems, self._unreadable, self.cached)

    def _item(self, item: ItemRow) -> None:
        is_whole = self._prove(item, named(item.key), self._values.plain, self._values.decoded)
        if is_whole and (problem := _problem_of_times(item)):
            self.problems.append(Problem("damaged", named(item.key), problem))

    def _prove(self, row: T, location: str, prove: Callable[[T], object], decode: Callable[[T], object]) -> bool:
        """Return whether a row is as it was stored. If so, decode its value if that is asked for."""
        try:
            prove(row)
        except CorruptDataError as error:
            self.problems.append(Problem("damaged", location, error.problem))
            return False
        except ConfigError as error:  # it is sealed, and there is no keyring
            self.problems.append(Problem("damaged", location, str(error).removeprefix(f"{location} ")))
            return False
        if self._decode:
            try:
                decode(row)
            except LocatedError as error:
                inside = error.location.removeprefix(location).removeprefix(" -> ")
                problem = f"{inside}: {error.problem}" if inside else error.problem
                self._unreadable.append(Problem("unreadable", location, problem))
        return True

    def _belongs(self, row: VectorRow | WordRow, item: ItemRow, location: str) -> bool:
        """Return whether a row is about the value that the item has now."""
        if row.owner != item.owner:
            self.problems.append(Problem("damaged", location, "its owner is not that of the item"))
        elif row.check != item.check:
            self.problems.append(Problem("orphan", location, "it is of an earlier value; reindex() computes it again"))
        return row.check == item.check

    def _words(self, rows: Sequence[WordRow], item: ItemRow, location: str) -> None:
        self._texts += sum(row.word.startswith(HEAD) for row in rows)
        distinct = {(row.owner, row.check): row for row in rows}.values()
        if all(self._belongs(row, item, location) for row in distinct):
            count = sum(row.times for row in rows)
            if {row.length for row in rows} != {count}:
                self.problems.append(Problem("damaged", location, f"its words were counted, but not as {count:,}"))

    def _vector(self, row: VectorRow, location: str) -> None:
        field, number, data = row.vector
        if number == CHOICE:
            if row.model or data or (field and fields_of(field) is None):
                self.problems.append(Problem("damaged", location, "it is no choice of fields"))
            return
        try:
            if row.model.endswith(SEALED_MODEL):
                if self._cipher is None:
                    return
                data = self._cipher.open(data, vector_name(row.key, row.vector))
            numbers = _floats(data)
        except (CorruptDataError, ValueError) as error:
            self.problems.append(Problem("damaged", location, f"it does not read: {error}"))
            return
        if len(numbers) != dims_of(row.model):
            problem = f"it has {len(numbers):,} dimensions, unlike its model {row.model!r}"
            self.problems.append(Problem("damaged", location, problem))
            return
        length = math.hypot(*numbers)
        if length and not abs(length - 1) < _NOT_OF_LENGTH_1:
            self.problems.append(Problem("damaged", location, f"its length is {length:.3g}, not 1"))


def _floats(data: bytes) -> tuple[float, ...]:
    if not data or len(data) % _FLOAT_BYTES:
        raise ValueError(f"{len(data)} bytes are no vector")
    return struct.unpack(f"<{len(data) // _FLOAT_BYTES}f", data)


def _problem_of_times(item: ItemRow) -> str:
    """Return a problem if no time can have the numbers of a row, else nothing."""
    try:
        for number in (item.created_at, item.updated_at, item.expires_at or 0):
            time_of(number)
    except CorruptDataError as error:
        return error.problem
    return "it has a time to live, but does not expire" if item.ttl is not None and item.expires_at is None else ""


def _find_orphans(items: ItemStore, what: str, table: VectorStore | WordStore, findings: _Findings) -> Operation[None]:
    """Report the vectors or words of items that are gone."""
    orphans: dict[ItemKey, None] = {}
    cursor = None
    while True:
        gone, cursor = yield from read_itself(orphans_behind, items, table, cursor)
        orphans.update(dict.fromkeys(gone))
        if cursor is None:
            break
    if orphans:
        location = f"{what} of {len(orphans)} items, such as {named(next(iter(orphans)))}"
        findings.problems.append(Problem("orphan", location, "the items are gone; reindex() removes them"))


def stats(rows: Rows) -> Operation[StoreStats]:
    """Count items, and all that they are found by."""
    there = yield from existing(rows)
    if there is None:
        return StoreStats(0, 0, 0, 0, 0, 0, 0)
    scope = Scope(owner=there.owner)
    count, size = yield from read_itself(there.items.count, scope)
    alive, _ = yield from read_itself(there.items.count, scope._replace(alive_at=now()))
    names = yield from read_itself(there.items.namespaces, scope)
    vectors = (yield from read_itself(there.vectors.counts, scope, "")).of_others if there.vectors else 0
    texts = (yield from read_itself(there.words.totals, scope)) if there.words else WordTotals(0, 0)
    return StoreStats(count, max(count - alive, 0), len(names), size, vectors, texts.items, texts.words)
