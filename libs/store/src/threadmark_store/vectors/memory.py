"""Vectors in a dictionary of the memory saver."""

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.shapes import Cursor, Scope
from threadmark_store.tables.memory import MemoryRowsOfItems
from threadmark_store.vectors.contract import CHOICE, Scanned, VectorCounts, VectorRow


def rows_over(rows: object) -> "MemoryVectors":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the vectors in a saver's database."""
    return MemoryVectors()


class MemoryVectors(MemoryRowsOfItems[VectorRow]):
    """Vectors in a dictionary."""

    table = "vector"

    def page(
        self,
        scope: Scope,
        model: str,
        cursor: Cursor | None,  # noqa: ARG002 - there is one page
    ) -> Program[tuple[list[Scanned], Cursor | None]]:
        def call(tables: Tables) -> tuple[list[Scanned], Cursor | None]:
            found = [row for rows in self._in(tables, scope) for row in rows.values() if row.model == model]
            return [(*row.key, *row.vector, row.check) for row in found], None

        return with_tables(call)

    def text(self, column: str) -> str:
        return column

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        def call(tables: Tables) -> VectorCounts:
            found = [row for rows in self._in(tables, scope) for row in rows.values() if row.vector.number != CHOICE]
            of_model = sum(row.model == model for row in found)
            return VectorCounts(of_model, len(found) - of_model)

        return with_tables(call)
