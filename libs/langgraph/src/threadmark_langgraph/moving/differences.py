"""The first difference between two values: the path to it, and the two parts that differ."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from threadmark.errors import short_repr

_DEEPEST = 50
"""Levels that are searched. A difference further inside is reported for the value that contains it."""

_BEFORE = 20
"""The characters of a text before the first difference in a message."""


class Difference(NamedTuple):
    """A difference between two sides."""

    what: str
    """The part of the checkpoint that differs."""
    detail: str
    """The place inside it, and both values, shortened."""


def first_difference(what: str, one: Any, other: Any, same: Callable[[Any, Any], bool]) -> Difference:
    """Return the first difference inside two values that are not the same."""
    path = ""
    for _ in range(_DEEPEST):
        inner = next((pair for pair in pairs(one, other) if not same(*pair[1:])), None)
        if inner is None:
            break
        step, one, other = inner
        path += step
    where = f"at {path}, " if path else ""
    texts = _excerpt(one, other), _excerpt(other, one)
    if texts[0] == texts[1]:
        return Difference(what, f"{where}{texts[0]} in both, and different in something that is not shown here")
    return Difference(what, f"{where}{texts[0]} in the source, {texts[1]} in the target")


def pairs(one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of two values that correspond to each other, each pair with its step of the path."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in [*one, *(key for key in other if key not in one)]:
            yield f"[{short_repr(key)}]", one.get(key, _NOTHING), other.get(key, _NOTHING)
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        for index in range(max(len(one), len(other))):
            mine, its = (side[index] if index < len(side) else _NOTHING for side in (one, other))
            yield f"[{index}]", mine, its
    elif type(one) is type(other):
        for name in _attributes(one):
            yield f".{name}", getattr(one, name, _NOTHING), getattr(other, name, _NOTHING)


class _Nothing:
    """Stands for a part that one side does not have."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def _attributes(value: Any) -> list[str]:
    if is_dataclass(value):
        return [each.name for each in fields(value)]
    return [name for name in getattr(value, "__dict__", ()) if not name.startswith("_")]


def _excerpt(value: Any, other: Any) -> str:
    if not (isinstance(value, str) and isinstance(other, str)):
        return short_repr(value)
    parting = next((n for n, (mine, its) in enumerate(zip(value, other, strict=False)) if mine != its), len(other))
    start = max(0, min(parting, len(value)) - _BEFORE)
    return f"{'...' if start else ''}{short_repr(value[start:])}"
