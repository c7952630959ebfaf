"""Values that are stored as text: paths, network addresses, patterns."""

import ipaddress
import re
from functools import cached_property
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Kind, only


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
    """Return a kind whose instances cache what was worked out from the text, and may have other attributes."""
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
