"""Rows of a store in dictionaries of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import Cursor, ItemKey, Scope

P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row", bound=Any)
Self = TypeVar("Self")


def program(method: Callable[Concatenate[Self, Tables, P], T]) -> Callable[Concatenate[Self, P], Program[T]]:
    """Turn a method that takes the memory saver's tables into a program."""

    @wraps(method)
    def made(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> Program[T]:
        return with_tables(lambda tables: method(self, tables, *args, **kwargs))

    return made


class MemoryTable:
    """A dictionary, which is always there."""

    table: ClassVar[str]

    def __init__(self, rows: object) -> None:
        """Take the saver's rows, which are of no use here: the dictionaries are the driver's."""

    @program
    def exists(self, tables: Tables) -> bool:
        return True

    @program
    def create(self, tables: Tables) -> None:
        """Nothing to do."""

    def _of(self, tables: Tables) -> dict[Any, Any]:
        return tables.others.setdefault(self.table, {})


class MemoryRowsOfItems(MemoryTable, Generic[Row]):
    """For each item a dictionary of its rows, by their first column behind the item's key."""

    def _rows_of(self, tables: Tables, keys: Sequence[ItemKey]) -> list[Row]:
        return [row for key in keys for row in self._of(tables).get(key, {}).values()]

    @program
    def hold(self, tables: Tables, keys: Sequence[ItemKey]) -> None:
        """Nothing to do: there is one writer."""

    @program
    def whole_rows(self, tables: Tables, keys: Sequence[ItemKey]) -> list[Row]:
        return self._rows_of(tables, keys)

    @program
    def replace(self, tables: Tables, keys: Sequence[ItemKey], rows: Sequence[Row]) -> None:
        added: dict[ItemKey, dict[Any, Row]] = {key: {} for key in keys}
        for row in rows:
            added[row.key][row[1]] = row
        for key, some in added.items():
            if some:
                tables.set(self._of(tables), key, some)
            else:
                tables.unset(self._of(tables), key)

    @program
    def delete(self, tables: Tables, keys: Sequence[ItemKey], owner: str | None) -> None:
        for key in keys:
            if all(owner in (None, row.owner) for row in self._of(tables).get(key, {}).values()):
                tables.unset(self._of(tables), key)

    @program
    def keys(self, tables: Tables, cursor: Cursor | None) -> tuple[list[ItemKey], Cursor | None]:
        return list(self._of(tables)), None

    def _in(self, tables: Tables, scope: Scope) -> Iterator[Mapping[Any, Row]]:
        """Yield the rows of each item of a scope."""
        for key, rows in self._of(tables).items():
            if is_within(key.namespace, scope.prefix) and all(
                scope.owner in (None, row.owner) for row in rows.values()
            ):
                yield rows
