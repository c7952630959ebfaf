"""Statements with lists of parameters, in a few lengths only, so that few statements are prepared."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

_AT_ONCE = 256

T = TypeVar("T")


def chunks(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the keys in groups of few sizes, filled with the last key, so that few statements are prepared."""
    for start in range(0, len(keys), _AT_ONCE):
        some = tuple(keys[start : start + _AT_ONCE])
        size = 1 << (len(some) - 1).bit_length()
        yield some + some[-1:] * (size - len(some))


@lru_cache(256)
def with_rows(statement: str, row: str, count: int) -> str:
    """Return the statement that inserts this many rows."""
    return statement.format(rows=", ".join([row] * count))


def with_pairs(statement: str, pairs: Sequence[tuple[object, object]]) -> str:
    """Return the statement with two parameters for each pair."""
    return statement.format(placeholders=", ".join(["(?, ?)"] * len(pairs)))


def with_placeholders(statement: str, keys: Sequence[object]) -> str:
    """Return the statement with a parameter for each key."""
    return statement.format(placeholders=", ".join("?" * len(keys)))
