"""Vectors in a dictionary of the memory saver."""

from threadmark.memory.tables import Tables
from threadmark_store.shapes import Cursor, Scope
from threadmark_store.tables.memory import MemoryRowsOfItems, program
from threadmark_store.vectors.contract import CHOICE, ComparedByNumpy, Scanned, VectorCounts, VectorRow


class MemoryVectors(ComparedByNumpy, MemoryRowsOfItems[VectorRow]):
    """Vectors in a dictionary."""

    table = "vector"

    rows = MemoryRowsOfItems.whole_rows

    @program
    def page(
        self, tables: Tables, scope: Scope, model: str, cursor: Cursor | None
    ) -> tuple[list[Scanned], Cursor | None]:
        found = [row for rows in self._in(tables, scope) for row in rows.values() if row.model == model]
        return [(*row.key, *row.vector, row.check) for row in found], None

    def text(self, column: str) -> str:
        return column

    @program
    def counts(self, tables: Tables, scope: Scope, model: str) -> VectorCounts:
        found = [row for rows in self._in(tables, scope) for row in rows.values() if row.vector.number != CHOICE]
        of_model = sum(row.model == model for row in found)
        return VectorCounts(of_model, len(found) - of_model)


rows_over = MemoryVectors
