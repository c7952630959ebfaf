"""Numbers and single values that msgpack has no type for."""

from decimal import Decimal
from fractions import Fraction
from types import EllipsisType, NotImplementedType
from typing import Any
from uuid import UUID, SafeUUID

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Kind, only

# Reducing a fraction takes time that grows with the square of its length; stored data must not choose hours.
LARGEST_FRACTION_BITS = 1 << 16


def _take_int(value: int) -> tuple[bytes]:
    return (value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True),)


def _give_int(items: list[Any]) -> int:
    return int.from_bytes(only(items, bytes), "big", signed=True)


def give_complex(items: list[Any]) -> complex:
    """A complex number from its parts; one of them may be text to `complex` itself."""
    real, imaginary = items
    if not type(real) is type(imaginary) is float:
        raise CorruptDataError("the parts of a stored complex number are not floats")
    return complex(real, imaginary)


def _take_fraction(value: Fraction) -> tuple[int, int]:
    if not type(value.numerator) is type(value.denominator) is int:
        raise SerializationError(
            f"a Fraction of {type(value.numerator).__qualname__}, not of int, cannot be stored; make it of int(...)"
        )
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_FRACTION_BITS:
        raise SerializationError(f"a Fraction of more than {LARGEST_FRACTION_BITS} bits cannot be stored")
    return (value.numerator, value.denominator)


def _give_fraction(items: list[Any]) -> Fraction:
    numerator, denominator = items
    if not type(numerator) is type(denominator) is int:
        raise CorruptDataError("the parts of a stored Fraction are not integers")
    if max(numerator.bit_length(), denominator.bit_length()) > LARGEST_FRACTION_BITS:
        raise CorruptDataError("a stored Fraction is too long")
    return Fraction(numerator, denominator)


def _take_uuid(value: UUID) -> tuple[Any, ...]:
    if value.is_safe is SafeUUID.unknown:
        return (value.bytes,)
    return (value.bytes, value.is_safe.value)


def _give_uuid(items: list[Any]) -> UUID:
    content, *safe = items
    if type(content) is not bytes or not all(type(each) is int for each in safe):
        raise CorruptDataError("a stored UUID is not one")
    return UUID(bytes=content, is_safe=SafeUUID(*safe) if safe else SafeUUID.unknown)


KINDS = (
    Kind("i", int, _take_int, _give_int),
    Kind("c", complex, lambda value: (value.real, value.imag), give_complex),
    Kind("x", Decimal, lambda value: (str(value),), lambda items: Decimal(only(items, str))),
    Kind("/", Fraction, _take_fraction, _give_fraction),
    Kind("u", UUID, _take_uuid, _give_uuid),
    Kind(".", EllipsisType, lambda _: (), lambda _: ...),
    Kind("!", NotImplementedType, lambda _: (), lambda _: NotImplemented),
)
