"""The order of items by how near their vectors are to that of a query: the cosine, computed exactly with numpy.

Vectors are stored with length 1, so the cosine is a product. An item with several vectors counts by its best one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from threadmark.backends import CorruptDataError, MissingDependencyError, Program
from threadmark_store.shapes import Cursor, ItemKey, Ranked, Scope
from threadmark_store.vectors.contract import VectorRow, VectorTable

_FLOAT = "<f4"


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
    return vector.astype(_FLOAT).tobytes()


def nearest(table: VectorTable, scope: Scope, query: bytes) -> Program[list[Ranked]]:
    """Return all items of a scope that have vectors of the model, the nearest first and then by key."""
    np = numpy()
    asked, best = np.frombuffer(query, dtype=_FLOAT), dict[tuple[ItemKey, int], float]()
    cursor: Cursor | None = None
    while True:
        rows, cursor = yield from table.store.page(scope, table.model, cursor)
        for row, score in zip(rows, _scores(rows, asked, table.opened), strict=True):
            item = row.key, row.check
            if score > best.get(item, -2.0):
                best[item] = score
        if cursor is None:
            break
    ranked = [Ranked(key, score, check) for (key, check), score in best.items()]
    ranked.sort(key=lambda each: (-each.score, each.key))
    return ranked


def numpy() -> Any:
    """Return numpy, which takes long to import. Raises MissingDependencyError if it is not installed."""
    try:
        import numpy as found
    except ImportError as error:
        raise MissingDependencyError(
            "search by vectors needs numpy: pip install 'threadmark-store[vectors]'"
        ) from error
    return found


def _scores(rows: Sequence[VectorRow], asked: Any, opened: Callable[[VectorRow], bytes]) -> list[float]:
    np = numpy()
    if not rows:
        return []
    size = asked.nbytes
    data = [opened(row) for row in rows]
    for row, each in zip(rows, data, strict=True):
        if len(each) != size:
            raise CorruptDataError(f"{_named(row)} has {len(each)} bytes instead of {size}: {_HOW_TO_MEND}")
    scores = np.frombuffer(b"".join(data), dtype=_FLOAT).reshape(len(rows), len(asked)) @ asked
    if not np.isfinite(scores).all():
        row = rows[int(np.isfinite(scores).argmin())]
        raise CorruptDataError(f"{_named(row)} has numbers that are not finite: {_HOW_TO_MEND}")
    found: list[float] = scores.tolist()
    return found


_HOW_TO_MEND = "put the item once more"


def _named(row: VectorRow) -> str:
    return f"the vector of field {row.vector.field!r} of item {row.key.key!r} of namespace {row.key.namespace!r}"
