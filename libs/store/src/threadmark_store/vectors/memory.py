"""Vectors in a dictionary of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Iterator, Sequence

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.vectors.contract import CHOICE, Scanned, VectorCounts, VectorRow

_Rows = dict[ItemKey, tuple[VectorRow, ...]]


def vectors_over(rows: object) -> "MemoryVectors":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the vectors in a saver's database."""
    return MemoryVectors()


class MemoryVectors:
    """Vectors in a dictionary."""

    def exists(self) -> Program[bool]:
        return with_tables(lambda _: True)

    def create(self) -> Program[None]:
        return with_tables(lambda _: None)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:  # noqa: ARG002 - there is one writer
        return with_tables(lambda _: None)

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return with_tables(lambda tables: [row for key in keys for row in _rows(tables).get(key, ())])

    whole_rows = rows

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        def call(tables: Tables) -> None:
            added: dict[ItemKey, list[VectorRow]] = {key: [] for key in keys}
            for row in rows:
                added[row.key].append(row)
            for key, some in added.items():
                if some:
                    tables.set(_rows(tables), key, tuple(some))
                else:
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        def call(tables: Tables) -> None:
            for key in keys:
                if all(owner in (None, row.owner) for row in _rows(tables).get(key, ())):
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def page(
        self,
        scope: Scope,
        model: str,
        cursor: Cursor | None,  # noqa: ARG002 - there is one page
    ) -> Program[tuple[list[Scanned], Cursor | None]]:
        def call(tables: Tables) -> tuple[list[Scanned], Cursor | None]:
            rows = [row for row in _in(tables, scope) if row.model == model]
            return [(*row.key, *row.vector, row.check) for row in rows], None

        return with_tables(call)

    def text(self, column: str) -> str:
        return column

    def keys(
        self,
        cursor: Cursor | None,  # noqa: ARG002 - there is one page
    ) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return with_tables(lambda tables: (list(_rows(tables)), None))

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        def call(tables: Tables) -> VectorCounts:
            models = [row.model for row in _in(tables, scope) if row.vector.number != CHOICE]
            of_model = models.count(model)
            return VectorCounts(of_model, len(models) - of_model)

        return with_tables(call)


def _rows(tables: Tables) -> _Rows:
    found: _Rows = tables.others.setdefault("vector", {})
    return found


def _in(tables: Tables, scope: Scope) -> Iterator[VectorRow]:
    for key, rows in _rows(tables).items():
        if is_within(key.namespace, scope.prefix):
            for row in rows:
                if scope.owner in (None, row.owner):
                    yield row
