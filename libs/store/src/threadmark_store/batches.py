"""The requests of a batch, and the program that answers them: all reads first, then all puts, in one transaction.

So the reads of a batch see the items as they were before it, on every backend, and of several puts of one key the last
one counts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from threadmark.backends import Program
from threadmark_store.contract import ItemStore
from threadmark_store.filters import conditions_of, meets
from threadmark_store.namespaces import joined, literal_prefix, selected
from threadmark_store.ranking import Ranking
from threadmark_store.shapes import ItemKey, ItemRow, Labels, Match, Place, Ranked, Scope
from threadmark_store.values import Values, check_of, named
from threadmark_store.vectors.contract import Vector, VectorTable
from threadmark_store.vectors.ranking import nearest
from threadmark_store.words.contract import Words, WordStore, rows_of
from threadmark_store.words.ranking import best

_FEWEST, _MOST = 64, 1024
"""Rows that a search with a filter reads at once: few first, or as many as it wants if a database leaves most out."""


class Get(NamedTuple):
    """A request for one item."""

    key: ItemKey
    refresh: bool = False


class Search(NamedTuple):
    """A request for the items of a namespace and those below it."""

    prefix: str = ""
    filter: Mapping[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    refresh: bool = False
    vector: bytes | None = None
    """That of a query: the nearest items come first."""
    words: tuple[str, ...] | None = None
    """Those of a query: only items that have one of them are found."""


class ListNamespaces(NamedTuple):
    """A request for the namespaces that meet all conditions."""

    matches: tuple[Match, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


class Put(NamedTuple):
    """A request to store an item, or to remove it if the value is None."""

    key: ItemKey
    stored: str | bytes | None
    ttl: int | None = None
    vectors: tuple[Vector, ...] = ()
    words: Words | None = None


Request = Get | Search | ListNamespaces | Put


class Found(NamedTuple):
    """An item with its value."""

    row: ItemRow
    value: dict[str, Any]


Answer = Found | list[Found] | list[Labels] | None


class Answers(NamedTuple):
    """The answers to a batch's requests, in their order."""

    answers: list[Answer]
    refreshed: list[ItemKey]
    """The items that live on because they were read. A transaction after this one notes it, since few items end."""


@dataclass(slots=True)
class Batch:
    """Requests that are answered in one transaction."""

    requests: Sequence[Request]
    values: Values
    owner: str | None = None
    omits_expired: bool = False
    vectors: VectorTable | None = None
    words: WordStore | None = None
    remove: Callable[[Sequence[ItemKey], str | None], Program[None]] = field(kw_only=True)
    """Removes the vectors and words of items of an owner, which are gone."""
    clock: Callable[[], int] = field(kw_only=True)
    ends: bool = True
    """Whether its transaction ends with it, so that a backend may save round trips."""

    def answers(self, items: ItemStore) -> Program[Answers]:
        """Answer the requests, in their order. Raises PermissionError for a put of another owner's item."""
        now = self.clock()
        scope = self._scope(now)
        asked = dict.fromkeys([request.key for request in self.requests if isinstance(request, Get)])
        rows = (yield from items.items(list(asked))) if asked else {}
        answers: list[Answer] = [None] * len(self.requests)
        refreshed: dict[ItemKey, None] = {}
        puts: dict[ItemKey, Put] = {}
        for place, request in enumerate(self.requests):
            if isinstance(request, Get):
                row = rows.get(request.key)
                if row is not None and scope.has(row):
                    answers[place] = Found(row, self.values.decoded(row))
                    if request.refresh and row.ttl:
                        refreshed[request.key] = None
            elif isinstance(request, Search):
                answers[place] = found = yield from self._search(items, now, request)
                if request.refresh:
                    refreshed.update((each.row.key, None) for each in found if each.row.ttl)
            elif isinstance(request, ListNamespaces):
                answers[place] = yield from self._namespaces(items, now, request)
            else:
                puts[request.key] = request
        if puts:
            yield from self._put(items, now, puts)
        return Answers(answers, list(refreshed))

    def _scope(self, now: int, prefix: str = "") -> Scope:
        return Scope(prefix, self.owner, now if self.omits_expired else None)

    def _search(self, items: ItemStore, now: int, request: Search) -> Program[list[Found]]:
        scope = self._scope(now, request.prefix)
        if request.vector is not None and self.vectors is not None:
            ranking = partial(nearest, self.vectors, scope, request.vector)
            return (yield from self._ranked(items, now, request, ranking))
        if request.words is not None and self.words is not None:
            return (yield from self._ranked(items, now, request, partial(best, self.words, scope, request.words)))
        return (yield from self._newest(items, now, request))

    def _newest(
        self, items: ItemStore, now: int, request: Search, skipped: Collection[ItemKey] = ()
    ) -> Program[list[Found]]:
        """Return the items that were updated last, without those that are skipped."""
        scope = self._scope(now, request.prefix)
        if not request.filter and not skipped:
            return list(self._met(request, (yield from items.search(scope, None, request.limit, request.offset))))
        scope = self._narrowed(now, request)
        found: list[Found] = []
        after, wanted, size = None, request.offset + request.limit, 1 if scope.conditions else _FEWEST
        while len(found) < wanted:
            rows = yield from items.search(scope, after, size := max(min(wanted - len(found), _MOST), size), 0)
            found += self._met(request, (row for row in rows if row.key not in skipped))
            if len(rows) < size:
                break
            after, size = Place(rows[-1].updated_at, rows[-1].key), min(max(2 * size, _FEWEST), _MOST)
        return found[request.offset : wanted]

    def _ranked(
        self, items: ItemStore, now: int, request: Search, ranking: Callable[[int | None], Program[Ranking]]
    ) -> Program[list[Found]]:
        """Return the best items, and behind all that have a vector those without one.

        `ranking` returns as many of the best as it is asked for, or more.
        """
        wanted = request.offset + request.limit
        count = max(wanted, _MOST) if request.filter or self.omits_expired else max(2 * wanted, _FEWEST)
        ranked = yield from ranking(count)
        first = ranked.first(count)
        found, scored = yield from self._judged(items, now, request, first)
        if len(found) < wanted:
            if len(first) < len(ranked.scores) or not ranked.is_whole:  # few of the best meet the request
                whole = ranked if ranked.is_whole else (yield from ranking(None))
                found = yield from self._matching(items, now, request, whole)
            elif request.vector is not None:
                rest = request._replace(offset=0, limit=wanted - len(found))
                found += yield from self._newest(items, now, rest, scored)
        return found[request.offset : wanted]

    def _judged(
        self, items: ItemStore, now: int, request: Search, ranked: Sequence[Ranked]
    ) -> Program[tuple[list[Found], set[ItemKey]]]:
        """Return the best items that meet a request, and the keys of all ranked ones that were looked at."""
        found: list[Found] = []
        scored: set[ItemKey] = set()
        scope = self._scope(now)
        start, wanted, size = 0, request.offset + request.limit, _FEWEST
        while start < len(ranked) and len(found) < wanted:
            some = ranked[start : start + max(min(wanted - len(found), _MOST), size)]
            rows = yield from items.items([each.key for each in some])
            there = [
                row._replace(score=score)
                for key, score, check in some
                if (row := rows.get(key)) is not None and row.check == check and scope.has(row)
            ]
            scored.update(row.key for row in there)
            found += self._met(request, there)
            start, size = start + len(some), min(2 * size, _MOST)
        return found, scored

    def _matching(self, items: ItemStore, now: int, request: Search, ranking: Ranking) -> Program[list[Found]]:
        """Return all items that meet the filter, in the order of a ranking, by going through the scope once."""
        scope, scores = self._narrowed(now, request), ranking.by_key()
        found: list[Found] = []
        after: ItemKey | None = None
        while rows := (yield from items.in_key_order(scope, after, _MOST)):
            after = rows[-1].key
            ranked = (row._replace(score=scores.get((row.key, row.check))) for row in rows)
            found += self._met(request, (row for row in ranked if row.score is not None or request.vector is not None))
        found.sort(key=lambda each: _order(each.row))
        return found

    def _met(self, request: Search, rows: Iterable[ItemRow]) -> Iterator[Found]:
        """Yield the items that meet the filter of a request."""
        for row in rows:
            value = self.values.decoded(row)
            if not request.filter or meets(value, request.filter):
                yield Found(row, value)

    def _narrowed(self, now: int, request: Search) -> Scope:
        """Return the scope of a request, with the conditions of its filter that a database can compare."""
        scope = self._scope(now, request.prefix)
        if request.filter and self.values.comparable:
            scope = scope._replace(conditions=tuple(conditions_of(request.filter)))
        return scope

    def _namespaces(self, items: ItemStore, now: int, request: ListNamespaces) -> Program[list[Labels]]:
        names = yield from items.namespaces(self._scope(now, literal_prefix(request.matches)))
        found = selected(names, request.matches, request.max_depth)
        return found[request.offset : request.offset + request.limit]

    def _put(self, items: ItemStore, now: int, puts: Mapping[ItemKey, Put]) -> Program[None]:
        rows = list(self._rows(puts.values(), now))
        if removed := [key for key, put in puts.items() if put.stored is None]:
            yield from items.delete(removed, self.owner)
            yield from self.remove(removed, self.owner)
        if rows:
            has_more = self.vectors is not None or self.words is not None  # to store than the items
            refused = yield from items.put(rows, last=self.ends and not has_more)
            if refused:
                raise PermissionError(f"{named(refused[0])} belongs to another owner than {self.owner!r}")
            yield from self._put_found_by(items, {row.key: row for row in rows}, puts)

    def _put_found_by(
        self, items: ItemStore, rows: dict[ItemKey, ItemRow], puts: Mapping[ItemKey, Put]
    ) -> Program[None]:
        """Replace the stored vectors and words of items."""
        keys = list(rows)
        if self.owner is None and any(puts[key].vectors or puts[key].words for key in keys):
            rows.update((yield from items.items(keys)))  # an item keeps its owner if one without an owner replaces it
        if self.vectors:
            vectors = [each for key, row in rows.items() for each in self.vectors.rows_of(row, puts[key].vectors)]
            yield from self.vectors.store.replace(keys, vectors)
        if self.words:
            words = [(row, words) for key, row in rows.items() if (words := puts[key].words) is not None]
            yield from self.words.replace(keys, [each for row, words in words for each in rows_of(row, words)])

    def _rows(self, puts: Iterable[Put], now: int) -> Iterable[ItemRow]:
        """Return rows whose times differ, so that a search lists the last one first."""
        for moment, put in enumerate(puts, now):
            if put.stored is not None:
                expires_at = None if put.ttl is None else now + put.ttl
                check = check_of(put.key, put.stored)
                yield ItemRow(put.key, put.stored, check, moment, moment, self.owner, expires_at, put.ttl)


def _order(row: ItemRow) -> tuple[bool, float, int, ItemKey]:
    """Return the place of a row: by its score, or behind all that have one by its last update, and then by key."""
    return row.score is None, -(row.score or 0.0), -row.updated_at if row.score is None else 0, row.key


def key_of(namespace: Labels, key: str) -> ItemKey:
    """Return the key of an item."""
    return ItemKey(joined(namespace), key)
