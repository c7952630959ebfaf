"""Values that are a text with a meaning: paths, network addresses, patterns."""

import ipaddress
import re
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Kind, only


def _spelled(letter: str, cls: Any) -> Kind:
    """A kind that its class reads from the text that `str` gives."""
    return Kind(letter, cls, lambda value: (str(value),), lambda items: cls(only(items, str)))


def _take_pattern(value: re.Pattern[Any]) -> tuple[Any, int]:
    if value.flags & re.DEBUG:
        raise SerializationError("a pattern with re.DEBUG cannot be stored: loading it would print")
    return (value.pattern, value.flags)


def _give_pattern(items: list[Any]) -> re.Pattern[Any]:
    pattern, flags = items
    if type(pattern) not in (str, bytes) or type(flags) is not int or flags & re.DEBUG:
        raise CorruptDataError("a stored pattern is not one")
    return re.compile(pattern, flags)


KINDS = (
    _spelled("p", PurePosixPath),
    _spelled("w", PureWindowsPath),
    _spelled("P", PosixPath),
    _spelled("W", WindowsPath),
    _spelled("4", ipaddress.IPv4Address),
    _spelled("5", ipaddress.IPv4Interface),
    _spelled("3", ipaddress.IPv4Network),
    _spelled("6", ipaddress.IPv6Address),
    _spelled("7", ipaddress.IPv6Interface),
    _spelled("8", ipaddress.IPv6Network),
    Kind("R", re.Pattern, _take_pattern, _give_pattern),
)
