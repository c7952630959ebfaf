"""Keys and scopes as columns of SQLite."""

from typing import Any

from threadmark.backends import from_column, to_column
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import ItemKey, Scope


def columns_of(key: ItemKey) -> tuple[str, str]:
    """Return the columns of a key."""
    return to_column(key.namespace), to_column(key.key)


def key_in(namespace: str, key: str) -> ItemKey:
    """Return the key of columns."""
    return ItemKey(from_column(namespace), from_column(key))


def optional(text: str | None) -> str | None:
    """Return text as a column, NULL if there is none."""
    return None if text is None else to_column(text)


def from_optional(column: str | None) -> str | None:
    """Return the text of a column that may be NULL."""
    return None if column is None else from_column(column)


def clauses_of(scope: Scope) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of a scope's namespaces and owner, and its parameters."""
    clauses, params = ["true"], list[Any]()
    if scope.prefix:
        prefix = to_column(scope.prefix)
        first, end = bounds_below(prefix)
        clauses.append("namespace >= ? AND namespace < ? AND (namespace = ? OR namespace >= ?)")
        params += [prefix, end, prefix, first]
    if scope.owner is not None:
        clauses.append("owner = ?")
        params.append(to_column(scope.owner))
    return " AND ".join(clauses), tuple(params)
