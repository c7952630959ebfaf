"""The ways in which a store answers a query: by vectors with an `index`, by words with `text_search`, or not at all.

A store without either still removes what another one has stored of the items that it changes. As long as a table is
missing, it looks for it in every transaction that removes items, and once a minute before a put: at every put, that
would take Postgres more than twice as long. Until then, an item that it replaces keeps vectors and words that do not
count any more.
"""

from collections.abc import Callable, Iterable, Sequence
from logging import WARNING
from typing import Any, NamedTuple

from langgraph.store.base import IndexConfig, Op, PutOp, SearchOp

from threadmark.backends import ConfigError, Flow, Operation, Program, now
from threadmark.program import read, write
from threadmark_store.batches import Put, Request, Search
from threadmark_store.contract import ItemStore, delete_all
from threadmark_store.embedding import Index
from threadmark_store.log import log
from threadmark_store.operating import Rows
from threadmark_store.reindexing import Reindexing
from threadmark_store.shapes import MINUTE, ItemKey, ItemRow, Scope, StoreReport
from threadmark_store.texts import Lacking, TextIndex
from threadmark_store.values import Values
from threadmark_store.vectors.contract import VectorTable
from threadmark_store.words.contract import WordStore, rows_of


class Tables(NamedTuple):
    """The tables to search by, whose rows go with their items."""

    vectors: VectorTable | None = None
    words: WordStore | None = None


class Searching:
    """The search by vectors or by text of one store."""

    def __init__(self, rows: Rows, index: IndexConfig | None, text_search: object) -> None:
        if index and text_search:
            raise ConfigError("a store searches by vectors or by text: give it `index` or `text_search`, not both")
        self.index = Index(index, rows.cipher) if index else None
        self.text = TextIndex(text_search, is_sealed=rows.cipher is not None) if text_search else None
        self.computing: Any = self.index or self.text
        self._backend, self._owner, self._words = rows.backend, rows.owner, rows.words
        vectors: Any = rows.vectors  # each backend has these; None stands for a missing table elsewhere
        self._vectors = VectorTable(vectors)
        if self.index:
            opened = self.index.opened if rows.cipher else None
            self._vectors = self._vectors._replace(model=self.index.model, opened=opened)
        if self.text and self._words is None:
            raise ConfigError(f"there is no search by text on {self._backend}: give the store an `index` instead")
        self._has_warned = False
        self.tables = Tables()
        self._looks_at = 0

    def prepare(self) -> Operation[None]:
        """Create the tables that are missing, and find out which there are."""
        has_vectors = yield from read(self._vectors.store.exists)
        if self.index and not (has_vectors and (yield from read(self._vectors.store.is_complete))):
            yield from write(self._vectors.store.create)
        words = self._words
        has_words = words is not None and (yield from read(words.exists))
        if words and self.text and not has_words:
            yield from write(words.create)
        self.tables = Tables(
            self._vectors if self.index or has_vectors else None, words if self.text or has_words else None
        )
        self._looks_at = now() + MINUTE

    def completed(
        self, ops: Sequence[Op], requests: Sequence[Request], queries: Sequence[str]
    ) -> Flow[Any, Sequence[Request]]:
        """Return the requests with the vectors or words of their values and queries."""
        if queries and not self._has_warned:
            yield from self._warn()
        computing = self.computing
        if computing is None:
            return requests
        last = {request.key: op for op, request in zip(ops, requests, strict=True) if isinstance(request, Put)}
        puts = [
            Lacking(key, op.value, op.index)
            for key, op in last.items()
            if isinstance(op, PutOp) and op.value is not None
        ]
        if not puts and not queries:
            return requests
        of_put, of_search = ("vectors", "vector") if self.index else ("words", "words")
        made = yield from computing.of_values(puts)
        looked_for = yield from computing.queries(queries)
        return [
            request._replace(**{of_put: made[request.key]} if request.key in made else {})
            if isinstance(request, Put)
            else request._replace(**{of_search: looked_for[op.query]})
            if isinstance(request, Search) and isinstance(op, SearchOp) and op.query
            else request
            for op, request in zip(ops, requests, strict=True)
        ]

    def is_to_look(self) -> bool:
        """Return whether a table was missing a minute ago. Another process may have created it since."""
        return self._misses_any and now() >= self._looks_at

    def look(self) -> Program[None]:
        """Find the tables that were created since the last look."""
        if self._misses_any:
            self._looks_at = now() + MINUTE
            vectors, words = self.tables
            if vectors is None and (yield from self._vectors.store.exists()):
                vectors = self._vectors
            if words is None and self._words is not None and (yield from self._words.exists()):
                words = self._words
            self.tables = Tables(vectors, words)

    def remove(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove the vectors and words of items that the same transaction has removed.

        Missing tables are looked for behind the removal, which waits for those who put the items with vectors or words.
        """
        if keys:
            yield from self.look()
            vectors, words = self.tables
            yield from delete_all((vectors and vectors.store, words), keys, owner)

    @property
    def _misses_any(self) -> bool:
        vectors, words = self.tables
        return vectors is None or (words is None and self._words is not None)

    def reindex(self, items: ItemStore, values: Values) -> Flow[Any, int]:
        """Compute missing and outdated vectors and words again. Returns for how many items."""
        table: Any
        make_rows: Callable[[ItemRow, Any], Iterable[Any]]
        if self.index:
            cursor = yield from write(self._vectors.store.adopt, None)
            while cursor is not None:
                cursor = yield from write(self._vectors.store.adopt, cursor)
            table, make_rows = self._vectors.store, self._vectors.rows_of
        elif self.text:
            table, make_rows = self._words, rows_of
        else:
            raise ConfigError(
                "the store has neither `index` nor `text_search`, so there is nothing to compute: "
                "Store(saver, index={...})"
            )
        return (yield from Reindexing(items, values, self._owner, table, self.computing, make_rows).all())

    def report(self) -> Operation[StoreReport]:
        """Return how the store searches."""
        of_model, stale = 0, 0
        if self.tables.vectors:
            of_model, stale = yield from read(self._vectors.store.counts, Scope(owner=self._owner), self._vectors.model)
        engine = (yield from read(self._vectors.store.engine)) if self.index else None
        return StoreReport(self._backend, engine, of_model, stale, "words" if self.text else None)

    def _warn(self) -> Operation[None]:
        """Warn once if queries find less than you may expect."""
        self._has_warned = True
        if self.index:
            counts = yield from read(self._vectors.store.counts, Scope(owner=self._owner), self.index.model)
            if counts.of_others:
                log.write(
                    WARNING,
                    "%d vectors are not of the model %s and are not compared: store.reindex() computes them again",
                    counts.of_others,
                    self.index.model,
                )
        elif not self.text:
            log.write(
                WARNING,
                "a search has a query, but the store has no `index` and no `text_search`: it returns the newest items",
            )
