"""Filters of a search: `{"color": "red", "size": {"$gte": 3}}`. Python judges; a database only leaves rows out.

So every backend answers alike, whatever it can compare, also for values that it cannot read. Numbers compare with
numbers, text with text; a bool is no number, and a missing key is None.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from threadmark.backends import short_repr
from threadmark_store.shapes import Condition, Labels

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDERS)

_SCALARS = (str, int, float, bool, type(None))

_EXACT = 2**53
"""Databases may compare greater numbers as floats, which are not exact."""
_GREATEST = 1e300
"""Greater numbers have no bounds, which could be infinite."""
_MARGIN = 1e-9
"""Bounds for a database are wider by this share, since its floats may differ in the last place."""


def check_filter(condition: Any) -> None:
    """Raise an error for a filter that is no dictionary, and for an operator that there is not."""
    if not isinstance(condition, Mapping):
        raise TypeError(f"a filter must be a dictionary, not {short_repr(condition)}")
    for each in condition.values():
        _check_condition(each)


def meets(value: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Return whether a value meets a filter, whose keys are those of the value."""
    return all(_meets(value.get(key), each) for key, each in condition.items())


def _check_condition(condition: Any) -> None:
    if isinstance(condition, Mapping):
        names = [key for key in condition if isinstance(key, str) and key.startswith("$")]
        for name in names:
            if name not in _OPERATORS:
                raise ValueError(f"the filter has an unknown operator {short_repr(name)}: use {', '.join(_OPERATORS)}")
        if names and len(names) < len(condition):
            raise ValueError(f"the filter mixes operators and keys: {short_repr(dict(condition))}")
        for nested in condition.values():
            if not names or isinstance(nested, (list, tuple)):
                _check_condition(nested)
    elif isinstance(condition, (list, tuple)):
        for nested in condition:
            _check_condition(nested)


def _meets(value: Any, condition: Any) -> bool:
    if type(condition) in _SCALARS or not isinstance(condition, (dict, Mapping)) or not condition:
        return _equal(value, condition)
    for key in condition:
        if isinstance(key, str) and key.startswith("$"):
            return all(_compare(value, name, asked) for name, asked in condition.items())
    if not isinstance(value, (dict, Mapping)):
        return False
    return all(_meets(value.get(key), each) for key, each in condition.items())


def conditions_of(condition: Mapping[Any, Any], path: Labels = ()) -> Iterator[Condition]:
    """Yield what a database can compare of a filter: every value that meets the filter meets these."""
    for key, asked in condition.items():
        if not isinstance(key, str) or not _is_of_json(key):
            continue
        if not isinstance(asked, Mapping):
            yield from _narrowed((*path, key), "$eq", asked)
        elif any(isinstance(name, str) and name.startswith("$") for name in asked):
            for name, operand in asked.items():
                yield from _narrowed((*path, key), name, operand)
        else:
            yield from conditions_of(asked, (*path, key))


def _compare(value: Any, name: str, asked: Any) -> bool:
    if name == "$eq":
        return _equal(value, asked)
    if name == "$ne":
        return not _equal(value, asked)
    if (_is_number(value) and _is_number(asked)) or (isinstance(value, str) and isinstance(asked, str)):
        return _ORDERS[name](value, asked)
    return False


def _equal(value: Any, asked: Any) -> bool:
    if isinstance(asked, (list, tuple)):
        same = isinstance(value, (list, tuple)) and len(value) == len(asked)
        return same and all(_meets(mine, theirs) for mine, theirs in zip(value, asked, strict=True))
    if isinstance(value, bool) or isinstance(asked, bool):
        return value is asked
    if isinstance(asked, Mapping):
        same = isinstance(value, Mapping) and value.keys() == asked.keys()
        return same and all(_equal(value[key], each) for key, each in asked.items())
    try:
        return bool(value == asked)
    except Exception:  # noqa: BLE001 - an array has no truth, and the other items of a search do not need it
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _narrowed(path: Labels, name: str, asked: Any) -> Iterator[Condition]:
    if name == "$eq":
        is_text = type(asked) is str and _is_of_json(asked)
        if is_text or type(asked) is bool or (type(asked) is int and abs(asked) < _EXACT):
            yield Condition(path, "=", asked)
        elif type(asked) is float and abs(asked) <= _GREATEST:
            yield Condition(path, ">=", _wider(asked, -1))
            yield Condition(path, "<=", _wider(asked, 1))
    elif name in ("$gt", "$gte"):
        yield from _bounded(path, ">=", asked, -1)
    elif name in ("$lt", "$lte"):
        yield from _bounded(path, "<=", asked, 1)


def _bounded(path: Labels, sign: Literal[">=", "<="], asked: Any, side: int) -> Iterator[Condition]:
    if type(asked) is str and _is_of_json(asked):
        yield Condition(path, sign, asked)
    elif type(asked) in (int, float) and abs(asked) <= _GREATEST:
        yield Condition(path, sign, _wider(asked, side))


def _is_of_json(text: str) -> bool:
    """Return whether a value that is stored as JSON may have this text. Databases take no other."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)


def _wider(asked: float, side: int) -> float:
    return float(asked) + side * max(abs(asked) * _MARGIN, 1e-300)
