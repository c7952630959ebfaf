"""Single values that msgpack has no type for: numbers, and values stored as text, such as paths and patterns."""

import ipaddress
import re
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import gcd
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
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


def _spelled(letter: str, cls: Any) -> Kind:
    """Return a kind whose class can be called with the text that `str` returns."""
    return Kind(letter, cls, lambda value: (str(value),), lambda items: cls(only(items, str)))


def _path(letter: str, cls: type[PurePath]) -> Kind:
    """Return a kind of path. Before Python 3.12 some have the text of another: Windows's `./b:a` has the text `b:a`."""
    may_be_another = (_ODD_STEPS if issubclass(cls, PurePosixPath) else _ANY).search

    def deconstruct(value: PurePath) -> tuple[str]:
        text = str(value)
        if may_be_another(text) and _steps(cls(text)) != _steps(value):
            raise SerializationError(
                f"this {cls.__name__} cannot be stored: its text, {text!r}, is that of another path"
            )
        return (text,)

    return Kind(letter, cls, deconstruct, _spelled(letter, cls).reconstruct)


# The steps that Posix paths lose when they are read: empty ones, and single dots.
_ODD_STEPS = re.compile(r"//|\./|[/.]\Z")
_ANY = re.compile("")


def _steps(path: PurePath) -> tuple[Any, ...]:
    return path.drive, path.root, path.parts


def _network(letter: str, cls: Any, *samples: str) -> Kind:
    """Return a kind whose instances cache results made from the text, and may have other attributes."""
    remembered = {name for sample in samples for name in vars(cls(sample))}
    for owner in cls.__mro__:
        remembered |= {name for name, member in vars(owner).items() if isinstance(member, cached_property)}

    def deconstruct(value: Any) -> tuple[str]:
        if own := value.__dict__.keys() - remembered:
            names = ", ".join(sorted(map(repr, own)))
            raise SerializationError(f"an {cls.__name__} with attributes of its own ({names}) cannot be stored")
        return (str(value),)

    return Kind(letter, cls, deconstruct, _spelled(letter, cls).reconstruct)


def _deconstruct_pattern(value: re.Pattern[Any]) -> tuple[Any, int]:
    if value.flags & re.DEBUG:
        raise SerializationError("a pattern with re.DEBUG cannot be stored: loading it would print")
    if type(value.pattern) not in (str, bytes):
        raise SerializationError(f"a pattern of a {type(value.pattern).__qualname__}, not of a str, cannot be stored")
    return (value.pattern, value.flags)


def _reconstruct_pattern(items: list[Any]) -> re.Pattern[Any]:
    pattern, flags = items
    if type(pattern) not in (str, bytes) or type(flags) is not int or flags & re.DEBUG:
        raise CorruptDataError("a stored pattern is not valid")
    return re.compile(pattern, flags)


# The smallest networks cache more than others.
_FOURTH = ("0.0.0.0/0", "0.0.0.0/31", "0.0.0.0/32")
_SIXTH = ("::/0", "::/127", "::/128")
KINDS = (
    Kind("i", int, _deconstruct_int, _reconstruct_int),
    Kind("c", complex, lambda value: (value.real, value.imag), reconstruct_complex),
    Kind("x", Decimal, lambda value: (str(value),), lambda items: Decimal(only(items, str))),
    Kind("/", Fraction, _deconstruct_fraction, _reconstruct_fraction),
    Kind("u", UUID, _deconstruct_uuid, _reconstruct_uuid),
    Kind(".", EllipsisType, lambda _: (), lambda _: ...),
    Kind("!", NotImplementedType, lambda _: (), lambda _: NotImplemented),
    _path("p", PurePosixPath),
    _path("w", PureWindowsPath),
    _path("P", PosixPath),
    _path("W", WindowsPath),
    _spelled("4", ipaddress.IPv4Address),
    _network("5", ipaddress.IPv4Interface, *_FOURTH),
    _network("3", ipaddress.IPv4Network, *_FOURTH),
    _spelled("6", ipaddress.IPv6Address),
    _network("7", ipaddress.IPv6Interface, *_SIXTH),
    _network("8", ipaddress.IPv6Network, *_SIXTH),
    Kind("R", re.Pattern, _deconstruct_pattern, _reconstruct_pattern),
)
