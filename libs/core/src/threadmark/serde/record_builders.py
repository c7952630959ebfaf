"""Building the dictionary of a record's names and items, which is most of the work of reading one.

A dictionary display (`{name0: item0, ...}`) is three times as fast as `dict(zip(names, items))`, but has to be written
out for a fixed number of entries. So source code is generated here for each number, as `namedtuple` and `dataclasses`
do. Only the number becomes source: names and items, which stored data chooses, are arguments and never code.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from threadmark.errors import CorruptDataError

Naming: TypeAlias = Callable[[list[Any]], dict[str, Any]]

_MOST_WRITTEN_OUT = 64
"""The most names that a function is generated for. Stored data says how many there are, and each number is compiled."""


def record_builders(names: list[str]) -> Naming:
    """Return a function from a record's items to a dictionary of them. It raises if they are more or fewer."""

    def wrong_count(items: list[Any]) -> CorruptDataError:
        return CorruptDataError(f"a stored object has {len(items)} items where its mark has {len(names)} names")

    if len(names) <= _MOST_WRITTEN_OUT:
        written_out: Naming = _written_out(len(names))(wrong_count, *names)
        return written_out

    def named(items: list[Any]) -> dict[str, Any]:
        if len(items) != len(names):
            raise wrong_count(items)
        return dict(zip(names, items, strict=True))

    return named


@cache
def _written_out(count: int) -> Callable[..., Naming]:
    names = "".join(f", name{index}" for index in range(count))
    items = ", ".join(f"item{index}" for index in range(count))
    entries = ", ".join(f"name{index}: item{index}" for index in range(count))
    source = f"""
def with_names(wrong_count{names}):
    def named(items):
        try:
            [{items}] = items
        except ValueError:
            raise wrong_count(items) from None
        return {{{entries}}}
    return named
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - nothing but a number went into the source, see above
    made: Callable[..., Naming] = namespace["with_names"]
    return made
