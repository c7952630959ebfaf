"""The order of items by how near their vectors are to that of a query: the exact cosine, by the database or numpy.

Vectors are stored with length 1, so the cosine is a product. An item with several vectors counts by its best one.
"""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import CorruptDataError, Program
from threadmark.errors import importing
from threadmark_store.ranking import Columns, Ranking
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.values import named
from threadmark_store.vectors.contract import Scanned, Vector, VectorTable

_FLOAT = "<f4"
_LEAST = -2.0
"""Less than any cosine."""
_MORE = 4
"""How many times as many vectors are asked for if they were of too few items."""


def unit(numbers: Sequence[float]) -> bytes:
    """Return a vector of length 1 and of this direction. Raises ValueError for numbers that are not finite."""
    np = numpy()
    vector = np.asarray(numbers, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError("an embedding must be a list of finite numbers")
    largest = float(np.abs(vector).max(initial=0.0))
    if largest:
        vector = vector / largest  # so that no square is too large or too small for a float
        vector = vector / np.linalg.norm(vector)
    data: bytes = vector.astype(_FLOAT).tobytes()
    return data


def nearest(table: VectorTable, scope: Scope, query: bytes, wanted: int | None) -> Program[Ranking]:
    """Return the items of a scope that have vectors of the model: all, or the best as far as they are wanted."""
    scores, is_whole, has_others = yield from _compared_by_database(table, scope, query, wanted)
    asked = numpy().frombuffer(query, dtype=_FLOAT)
    cursor: Cursor | None = None
    while has_others:
        rows, cursor = yield from table.store.page(scope, table.model, cursor)
        for (namespace, key, _, _, _, check), score in zip(rows, _scores(rows, asked, table), strict=True):
            item = namespace, key, check
            if score > scores.get(item, _LEAST):
                scores[item] = score
        has_others = cursor is not None
    return Ranking(scores, table.store.text, is_whole)


def _compared_by_database(
    table: VectorTable, scope: Scope, query: bytes, wanted: int | None
) -> Program[tuple[dict[Columns, float], bool, bool]]:
    """Return the scores of the items whose vectors the database compares, whether all, and whether there are others."""
    limit = wanted
    while True:
        rows, has_others = yield from table.store.nearest(scope, table.model, query, limit)
        scores = dict[Columns, float]()
        for namespace, key, check, score in rows:
            scores.setdefault((namespace, key, check), score)
        if limit is None or wanted is None or len(rows) < limit:
            return scores, True, has_others
        if len(scores) >= wanted:
            return scores, False, has_others
        limit *= _MORE  # many are of the same items


def numpy() -> Any:
    """Return numpy, which takes long to import. Raises MissingDependencyError if it is not installed."""
    with importing("search by vectors needs numpy: pip install 'threadmark-store[vectors]'"):
        import numpy as found
    return found


def _scores(rows: Sequence[Scanned], asked: Any, table: VectorTable) -> list[float]:
    np = numpy()
    if not rows:
        return []
    if table.opened is None:
        data = [each for _, _, _, _, each, _ in rows]
    else:
        data = [table.opened(*_shaped(row, table)) for row in rows]
    sizes = [len(each) if type(each) is bytes else 0 for each in data]  # a damaged file may have anything there
    if set(sizes) != {asked.nbytes}:
        wrong = next(number for number, size in enumerate(sizes) if size != asked.nbytes)
        raise _damaged(rows[wrong], table, f"has {sizes[wrong]} bytes instead of {asked.nbytes}")
    # Unlike `@`, whose rounding depends on the place of a row, this gives equal vectors equal scores.
    scores = np.einsum("ij,j->i", np.frombuffer(b"".join(data), dtype=_FLOAT).reshape(len(rows), len(asked)), asked)
    if not np.isfinite(scores).all():
        raise _damaged(rows[int(np.isfinite(scores).argmin())], table, "has numbers that are not finite")
    found: list[float] = scores.tolist()
    return found


def _shaped(row: Scanned, table: VectorTable) -> tuple[ItemKey, Vector]:
    namespace, key, field, number, data, _ = row
    text = table.store.text
    return ItemKey(text(namespace), text(key)), Vector(text(field), number, data)


def _damaged(row: Scanned, table: VectorTable, problem: str) -> CorruptDataError:
    key, vector = _shaped(row, table)
    return CorruptDataError(f"the vector of field {vector.field!r} of {named(key)} {problem}: put the item once more")
