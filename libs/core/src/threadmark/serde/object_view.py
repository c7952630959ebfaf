"""`ObjectView` shows an object by name and fields if its class is not available."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple
from uuid import UUID

CONTENT: Final = "0"
"""The name of an object's content as a builtin type: the items of a subclass of list."""

_HASHED: frozenset[type] = frozenset(
    {str, bytes, bytearray, int, float, bool, complex, type(None), Decimal, Fraction, UUID, date, datetime, timedelta}
)
"""The types whose hash agrees with equality, across all of them."""

_DEEPEST_HASHED = 8
"""Deeper levels tell few objects apart, and would be hashed again for every level above it."""

_LONGEST_BYTES = 32
"""The most bytes that the text of an object shows. Longer ones, such as an array's, are replaced by their number."""

SECRET_FIELD = "_secret_value"  # noqa: S105 - the name of a field
"""The field in which pydantic keeps a secret that must not appear in logs."""


class ObjectView(NamedTuple):
    """An object read from its stored form alone. No code of its class was run, and no class was imported.

    You can compare it, and use it as a key or a member of a set like the object, but you cannot put it.
    """

    name: str
    """The name of its class, with the module: `app.state:Plan`."""
    fields: dict[str, Any]
    """The stored fields by name. Items without names are numbered: "0", "1" ..."""

    def __repr__(self) -> str:
        fields = ", ".join(_described(name, value) for name, value in self.fields.items())
        return f"{self.name.partition(':')[2] or self.name}({fields})"

    def __hash__(self) -> int:
        return _hash(self, 0)


def _described(name: str, value: Any) -> str:
    if name == SECRET_FIELD:
        text = "'**********'"
    elif type(value) is bytes and len(value) > _LONGEST_BYTES:
        text = f"<{len(value)} bytes>"
    else:
        text = repr(value)
    return text if name.isdigit() else f"{name}={text}"


def _hash(value: Any, depth: int) -> int:
    """Return one number for all equal values, also for types without a hash."""
    kind = type(value)
    if depth > _DEEPEST_HASHED:
        return 0
    if kind is ObjectView:
        name, fields = value
        return hash((name, frozenset((field, _hash(item, depth + 1)) for field, item in fields.items())))
    if kind is list or kind is tuple:
        return hash(tuple(_hash(item, depth + 1) for item in value))
    if kind is set or kind is frozenset:
        return hash(frozenset(_hash(item, depth + 1) for item in value))
    try:
        return hash(bytes(value) if kind is bytearray else value) if kind in _HASHED else 0
    except TypeError:  # a signaling NaN
        return 0
