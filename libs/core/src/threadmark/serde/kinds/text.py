"""Values that are a text with a meaning: paths, network addresses, patterns."""

import ipaddress
import re
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Kind, only


def _path(letter: str, cls: type[PurePath]) -> Kind:
    return Kind(letter, cls, lambda value: (str(value),), lambda items: cls(only(items, str)))


def _address(letter: str, cls: Any) -> Kind:
    return Kind(letter, cls, lambda value: (str(value),), lambda items: cls(only(items, str)))


def _take_pattern(value: re.Pattern[Any]) -> tuple[Any, int]:
    if value.flags & re.DEBUG:
        raise SerializationError("a pattern with re.DEBUG cannot be stored: loading it would print")
    return (value.pattern, value.flags)


def _give_pattern(items: list[Any]) -> re.Pattern[Any]:
    pattern, flags = items
    if type(pattern) not in (str, bytes) or type(flags) is not int or flags & re.DEBUG:
        raise CorruptDataError("the flags of a stored pattern are not some")
    return re.compile(pattern, flags)


KINDS = (
    _path("p", PurePosixPath),
    _path("w", PureWindowsPath),
    _path("P", PosixPath),
    _path("W", WindowsPath),
    _address("4", ipaddress.IPv4Address),
    _address("5", ipaddress.IPv4Interface),
    _address("3", ipaddress.IPv4Network),
    _address("6", ipaddress.IPv6Address),
    _address("7", ipaddress.IPv6Interface),
    _address("8", ipaddress.IPv6Network),
    Kind("R", re.Pattern, _take_pattern, _give_pattern),
)
