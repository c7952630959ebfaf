"""Numbers and single values that msgpack has no type for."""

from decimal import Decimal
from fractions import Fraction
from math import gcd
from types import EllipsisType, NotImplementedType
from typing import Any
from uuid import UUID, SafeUUID

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Kind, only

LARGEST_FRACTION_BITS = 1 << 16
"""The longest fraction. Reducing one takes time that grows with the square of its length, which stored data chooses."""


def _deconstruct_int(value: int) -> tuple[bytes]:
    return (value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True),)


def _reconstruct_int(items: list[Any]) -> int:
    return int.from_bytes(only(items, bytes), "big", signed=True)


def reconstruct_complex(items: list[Any]) -> complex:
    """Return a complex number from its parts, which must be floats: `complex` itself would accept text."""
    real, imaginary = items
    if not type(real) is type(imaginary) is float:
        raise CorruptDataError("the parts of a stored complex number are not floats")
    return complex(real, imaginary)


def _deconstruct_fraction(value: Fraction) -> tuple[int, int]:
    if not type(value.numerator) is type(value.denominator) is int:
        raise SerializationError(
            f"a Fraction of {type(value.numerator).__qualname__}, not of int, cannot be stored; make it of int(...)"
        )
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_FRACTION_BITS:
        raise SerializationError(f"a Fraction of more than {LARGEST_FRACTION_BITS} bits cannot be stored")
    if value.denominator < 1 or gcd(value.numerator, value.denominator) != 1:
        raise SerializationError(
            f"a Fraction whose parts are {value.numerator} and {value.denominator} would come back in lowest terms: "
            "make it with Fraction(numerator, denominator)"
        )
    return (value.numerator, value.denominator)


def _reconstruct_fraction(items: list[Any]) -> Fraction:
    numerator, denominator = items
    if not type(numerator) is type(denominator) is int:
        raise CorruptDataError("the parts of a stored Fraction are not integers")
    if max(numerator.bit_length(), denominator.bit_length()) > LARGEST_FRACTION_BITS:
        raise CorruptDataError("a stored Fraction is too long")
    return Fraction(numerator, denominator)


def _deconstruct_uuid(value: UUID) -> tuple[Any, ...]:
    if value.is_safe is SafeUUID.unknown:
        return (value.bytes,)
    return (value.bytes, value.is_safe.value)


def _reconstruct_uuid(items: list[Any]) -> UUID:
    content, *safe = items
    if type(content) is not bytes or not all(type(each) is int for each in safe):
        raise CorruptDataError("a stored UUID is not valid")
    return UUID(bytes=content, is_safe=SafeUUID(*safe) if safe else SafeUUID.unknown)


KINDS = (
    Kind("i", int, _deconstruct_int, _reconstruct_int),
    Kind("c", complex, lambda value: (value.real, value.imag), reconstruct_complex),
    Kind("x", Decimal, lambda value: (str(value),), lambda items: Decimal(only(items, str))),
    Kind("/", Fraction, _deconstruct_fraction, _reconstruct_fraction),
    Kind("u", UUID, _deconstruct_uuid, _reconstruct_uuid),
    Kind(".", EllipsisType, lambda _: (), lambda _: ...),
    Kind("!", NotImplementedType, lambda _: (), lambda _: NotImplemented),
)
