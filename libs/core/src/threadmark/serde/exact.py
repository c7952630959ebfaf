"""Whether two values are the same to a program: equal, and of the same types at every depth. True is not 1 here."""

from hashlib import blake2b
from typing import Any

from threadmark.serde.classes import Classes
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.encoder import encode
from threadmark.serde.kinds_api import Deconstruct, Shape
from threadmark.serde.object_view import ObjectView
from threadmark.serde.registry import DEFAULT, Registered

_SHAPE = Shape(b"shown")


class _ExactDispatch(Dispatch):
    """Encodes as any serializer does, and views of objects as well: nothing of this is ever stored."""

    def _new_writer(self, cls: type, registered: Registered | None) -> Deconstruct:
        if cls is ObjectView:
            return lambda parts: [_SHAPE, *parts]
        return super()._new_writer(cls, registered)


_DISPATCH = _ExactDispatch(DEFAULT, Classes(DEFAULT))


def fingerprint(value: Any) -> bytes | None:
    """Return bytes that are equal for values that are the same throughout. None for a value that cannot be encoded."""
    try:
        return blake2b(encode(value, _DISPATCH)[0], digest_size=16).digest()
    except Exception:  # noqa: BLE001 - registered functions may raise anything, and the packers do for deep values
        return None


def exactly_equal(one: Any, other: Any) -> bool:
    """Whether two values are of the same types throughout, and equal; also of classes that cannot say so."""
    try:
        return type(one) is type(other) and encode(one, _DISPATCH) == encode(other, _DISPATCH)
    except Exception:  # noqa: BLE001 - as above
        return says_equal(one, other)


def says_equal(one: Any, other: Any) -> bool:
    """Whether a value says of another that they are equal."""
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - arrays that differ do not say it by False
        return False
