"""The tables of one side: a question goes to the database that the driver of the pair has chosen."""

from functools import partial
from typing import Any

from threadmark.backends import Program
from threadmark.replication.side_store import SideStore, on_side
from threadmark.replication.steps import Side
from threadmark_store.backends import over
from threadmark_store.vectors.contract import Nearest, VectorCounts
from threadmark_store.words.contract import WordTotals

_IF_MISSING: dict[str, Any] = {
    "items": {},
    "search": [],
    "in_key_order": [],
    "namespaces": [],
    "count": (0, 0),
    "rows": [],
    "page": ([], None),
    "nearest": Nearest([], True),
    "engine": "numpy",
    "is_complete": True,
    "adopt": None,
    "keys": ([], None),
    "counts": VectorCounts(0, 0),
    "whole_rows": [],
    "find": [],
    "totals": WordTotals(0, 0),
}
"""The answer of each method that reads, if there is no table. The others create it."""


def is_there(side: Side, folder: str) -> Program[bool]:
    """Return whether a side has the table of items, vectors or words."""
    if folder in side.tables:
        return True
    exists: bool = yield from over(side.store, folder).exists()
    if exists and folder not in side.created:
        side.tables.add(folder)
    return exists


def ask_side(side: Side, folder: str, method: str, *args: Any, **kwargs: Any) -> Program[Any]:
    """Call a method of the items, vectors or words of a side, whose table may be missing."""
    table = over(side.store, folder)
    if method == "exists":
        return (yield from table.exists())
    is_missing = method == "create" or not (yield from is_there(side, folder))
    if is_missing and method in _IF_MISSING:
        return _IF_MISSING[method]
    if is_missing:
        side.created.add(folder)
        yield from table.create()
    if method == "create":
        return None
    return (yield from getattr(table, method)(*args, **kwargs))


class PairTable:
    """The items, vectors or words of the side that runs a transaction. It has all their methods that are programs."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(on_side, _asked, self._folder, method)


def _asked(store: SideStore, folder: str, method: str, *args: Any, **kwargs: Any) -> Program[Any]:
    return (yield from ask_side(store.side, folder, method, *args, **kwargs))
