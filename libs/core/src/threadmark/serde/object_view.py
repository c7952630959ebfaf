"""Objects as they are shown where their classes are not there: by name and fields."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple
from uuid import UUID

CONTENT: Final = "0"
"""The name of what an object holds as a builtin type does: the items of a subclass of list."""

_HASHED: frozenset[type] = frozenset(
    {str, bytes, bytearray, int, float, bool, complex, type(None), Decimal, Fraction, UUID, date, datetime, timedelta}
)
"""The types that hash as equality has it, whichever of them equal each other."""

_DEEPEST_HASHED = 8
"""What lies deeper tells few objects apart, and would be hashed again for every level above it."""

_LONGEST_BYTES = 32
"""The most bytes that the text of an object shows; of more, such as an array's, it says how many they are."""

SECRET_FIELD = "_secret_value"  # noqa: S105 - the name of a field
"""The field in which pydantic keeps what must not be seen in logs."""


class ObjectView(NamedTuple):
    """An object of which only the stored form was read. No code of its class was run, and none was imported.

    It can be compared, and be a key or the member of a set as the object could, but it cannot be put.
    """

    name: str
    """Of its class, with the module: `app.state:Plan`."""
    fields: dict[str, Any]
    """What was stored of it, by name; what has no names is numbered: "0", "1" ..."""

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
    """Return the same number for all that are equal, also where they are of types that have no hash."""
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
