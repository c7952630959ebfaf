"""Rows of a store in dictionaries of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import Cursor, ItemKey, Scope

Row = TypeVar("Row", bound=Any)


class MemoryTable:
    """A dictionary, which is always there."""

    table: str

    def exists(self) -> Program[bool]:
        return with_tables(lambda _: True)

    def create(self) -> Program[None]:
        return with_tables(lambda _: None)


class MemoryRowsOfItems(MemoryTable, Generic[Row]):
    """For each item a dictionary of its rows, by their first column behind the item's key."""

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:  # noqa: ARG002 - there is one writer
        return with_tables(lambda _: None)

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[Row]]:
        return with_tables(lambda tables: [row for key in keys for row in self._of(tables).get(key, {}).values()])

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[Row]) -> Program[None]:
        def call(tables: Tables) -> None:
            added: dict[ItemKey, dict[Any, Row]] = {key: {} for key in keys}
            for row in rows:
                added[row.key][row[1]] = row
            for key, some in added.items():
                if some:
                    tables.set(self._of(tables), key, some)
                else:
                    tables.unset(self._of(tables), key)

        return with_tables(call)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        def call(tables: Tables) -> None:
            for key in keys:
                if all(owner in (None, row.owner) for row in self._of(tables).get(key, {}).values()):
                    tables.unset(self._of(tables), key)

        return with_tables(call)

    def keys(
        self,
        cursor: Cursor | None,  # noqa: ARG002 - there is one page
    ) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return with_tables(lambda tables: (list(self._of(tables)), None))

    def _of(self, tables: Tables) -> dict[ItemKey, dict[Any, Row]]:
        return tables.others.setdefault(self.table, {})

    def _in(self, tables: Tables, scope: Scope) -> Iterator[Mapping[Any, Row]]:
        """Yield the rows of each item of a scope."""
        for key, rows in self._of(tables).items():
            if is_within(key.namespace, scope.prefix) and all(
                scope.owner in (None, row.owner) for row in rows.values()
            ):
                yield rows
