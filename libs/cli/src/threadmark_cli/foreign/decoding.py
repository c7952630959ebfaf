"""Values that LangGraph's serializer stored, without importing or calling anything that a row names.

LangGraph rebuilds objects by the module and the name that are stored with them, which runs code that the data chose.
Here the builtin kinds that it writes come from a fixed table, and an object of any other class is an `ObjectView`: its
name and its fields. A value that cannot be read at all, such as a pickle or an encrypted one, is an `ObjectView` of its
bytes.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import PosixPath, WindowsPath
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack

from threadmark.types import ObjectView

DEEPEST = 100
"""How deep objects may be nested in each other: each level is a call of the unpacker."""

LONGEST_NAME = 500


class Decoder:
    """Decodes the rows of one thread, which repeat the same objects again and again: each is taken apart once.

    So a value may share parts with another one. They are to be stored, not to be changed.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], Any] = {}
        self._held = 0

    def value(self, kind: str | None, data: bytes | None) -> Any:
        """Return the value of a row, whatever it holds; this never raises.

        Args:
            kind: LangGraph's name for the format of the row.
            data: The bytes of the row.
        """
        read = self._formats.get(kind or "null")
        if read is None:
            return _unread(
                kind or "", data, _WHY.get(kind or "", "LangGraph's serializer has no such format by itself")
            )
        try:
            return read(self, data or b"")
        except (Exception, RecursionError) as error:  # noqa: BLE001 - damaged bytes of any kind are shown
            return _unread(kind or "", data, f"{type(error).__name__}: {error}")

    def _msgpack(self, data: bytes, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise ValueError(f"objects are nested deeper than {DEEPEST} levels")
        return msgpack.unpackb(
            data,
            ext_hook=partial(self._extension, depth),
            object_pairs_hook=_mapping,
            strict_map_key=False,
            unicode_errors="surrogatepass",
        )

    def _extension(self, depth: int, code: int, data: bytes) -> Any:
        key = (code, data)
        if key in self._known:
            return self._known[key]
        value = _object(code, self._msgpack(data, depth + 1))
        self._held += len(data)
        if self._held > _MOST_HELD:
            self._known, self._held = {}, len(data)
        self._known[key] = value
        return value

    _formats: ClassVar[Mapping[str, Callable[["Decoder", bytes], Any]]] = {
        "null": lambda *_: None,
        "bytes": lambda _, data: bytes(data),
        "bytearray": lambda _, data: bytearray(data),
        "msgpack": _msgpack,
        "json": lambda _, data: json.loads(data, object_hook=_json_object),
    }


_MOST_HELD = 64 * 1024 * 1024
"""Bytes of objects that are remembered. Decoded, they take several times as much."""


def _unread(kind: str, data: bytes | None, reason: str) -> ObjectView:
    return ObjectView(f"unread:{kind}"[:LONGEST_NAME], {"reason": reason, "data": data})


_WHY = {"pickle": "to read a pickle can run any code, so it is left as it is"}


def _object(code: int, content: Any) -> Any:
    """The value of an extension."""
    if code == _DELTA_SNAPSHOT:
        return ObjectView("langgraph.checkpoint.serde.types:_DeltaSnapshot", {"value": content})
    match code, content:
        case 0 | 3, [str(module), str(name), argument, *_]:
            return _made(module, name, [argument], {})
        case 1, [str(module), str(name), list(arguments), *_]:
            return _made(module, name, arguments, {})
        case 2 | 4 | 5, [str(module), str(name), dict(fields), *_]:
            return _made(module, name, [], fields)
        case 6, [dtype, shape, order, items]:
            return ObjectView("numpy:ndarray", {"dtype": dtype, "shape": shape, "order": order, "data": items})
    return ObjectView("msgpack:Ext", {"code": code, "content": content})


_DELTA_SNAPSHOT = 7


def _mapping(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {_key(key): value for key, value in pairs}


def _key(key: Any) -> Any:
    """The key of a mapping; one that Python takes for none, such as a list, as its text."""
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key


def _json_object(found: dict[str, Any]) -> Any:
    """An object of the format that LangGraph wrote before msgpack, and of LangChain's own; else the mapping itself."""
    match found:
        case {"lc": int(), "type": str(), "id": [*path, str(name)]} if all(type(each) is str for each in path):
            arguments, fields = found.get("args"), found.get("kwargs")
            return _made(
                ".".join(path),
                name,
                arguments if isinstance(arguments, list) else [],
                fields if isinstance(fields, dict) else {},
            )
    return found


def _made(module: str, name: str, arguments: list[Any], fields: Mapping[Any, Any]) -> Any:
    """The value of a builtin kind, or the view of any other."""
    make = _PLAIN.get((module, name))
    if make is not None:
        try:
            return make(*arguments, **fields)
        except (Exception, RecursionError):  # noqa: BLE001, S110 - unfit arguments are shown as they stand
            pass
    names = _FIELDS.get((module, name), ())
    numbered = {
        names[index] if index < len(names) else str(index): argument for index, argument in enumerate(arguments)
    }
    return ObjectView(
        f"{module}:{name}"[:LONGEST_NAME], {**numbered, **{str(key): each for key, each in fields.items()}}
    )


def _moment(first: Any, *others: Any) -> datetime:
    return datetime.fromisoformat(first) if isinstance(first, str) else datetime(first, *others)  # noqa: DTZ001 - may be


_PLAIN: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "deque"): deque,
    ("datetime", "datetime"): _moment,
    ("datetime", "date"): date,
    ("datetime", "time"): time,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("zoneinfo", "ZoneInfo"): ZoneInfo,
    ("uuid", "UUID"): UUID,
    ("decimal", "Decimal"): Decimal,
    # One of the other system cannot be made here, and becomes a view of its parts.
    ("pathlib", "PosixPath"): PosixPath,
    ("pathlib", "WindowsPath"): WindowsPath,
    **{
        ("ipaddress", kind.__name__): kind
        for kind in (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)
    },
}
"""The builtin kinds that LangGraph writes. To make one runs nothing but Python's own code."""

_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("langgraph.types", "Send"): ("node", "arg"),
    ("langgraph.constants", "Send"): ("node", "arg"),
    ("re", "compile"): ("pattern", "flags"),
}
"""The name for arguments without names."""
