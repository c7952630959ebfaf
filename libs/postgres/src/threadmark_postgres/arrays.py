"""Parameters of statements in the form that the server's own programs read.

psycopg would look at every item of an array to find its type, write most items as quoted text, and choose another type
of array from call to call, each of which the server plans separately. Here the class gives the type. Every statement
declares the types of its parameters, so they are sent without one.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, ClassVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.postgres import types
from psycopg.pq import Format

_HEAD = Struct("!iiIii")
_EMPTY = Struct("!iiI")
_LENGTH = Struct("!i")
_NUMBER = Struct("!q")
_FLAG = Struct("?")
_REAL = 4
"""Bytes of a number of type real."""
_NULL = _LENGTH.pack(-1)


class _Array(list[Any]):
    """An array that knows the type of its items."""

    __slots__ = ()
    element: ClassVar[int]
    array: ClassVar[int]

    def packed(self, encoding: str = "utf-8") -> bytes:
        """Return the array in the server's binary form."""
        if not self:
            return _EMPTY.pack(0, 0, self.element)
        items = self.items(encoding)
        parts = [_HEAD.pack(1, None in items, self.element, len(items), 1)]
        for item in items:
            if item is None:
                parts.append(_NULL)
            else:
                parts += (_LENGTH.pack(len(item)), item)
        return b"".join(parts)

    def items(self, encoding: str) -> Sequence[bytes | None]:  # noqa: ARG002 - only text has one
        """Return each item in its binary form."""
        return self


class Texts(_Array):
    """A parameter of type text[]."""

    __slots__ = ()
    element, array = types["text"].oid, types["text"].array_oid

    def items(self, encoding: str) -> Sequence[bytes | None]:
        """Return each text in the encoding of the connection."""
        return [None if item is None else item.encode(encoding) for item in self]


class Blobs(_Array):
    """A parameter of type bytea[]."""

    __slots__ = ()
    element, array = types["bytea"].oid, types["bytea"].array_oid


class Numbers(_Array):
    """A parameter of type bigint[]."""

    __slots__ = ()
    element, array = types["int8"].oid, types["int8"].array_oid

    def items(self, encoding: str) -> Sequence[bytes | None]:  # noqa: ARG002 - only text has one
        """Return each number in eight bytes."""
        return [None if item is None else _NUMBER.pack(item) for item in self]


class Reals(bytes):
    """A parameter of type real[], of little-endian floats."""

    __slots__ = ()
    element, array = types["float4"].oid, types["float4"].array_oid

    def packed(self) -> bytes:
        """Return the array in the server's binary form: each number with its length before it."""
        count = len(self) // _REAL
        if not count:
            return _EMPTY.pack(0, 0, self.element)
        items = bytearray(2 * _REAL * count)
        items[_REAL - 1 :: 2 * _REAL] = bytes([_REAL]) * count
        for place in range(_REAL):
            items[_REAL + place :: 2 * _REAL] = self[_REAL - 1 - place :: _REAL]
        return _HEAD.pack(1, 0, self.element, count, 1) + items


def reals_in(sent: bytes) -> bytes:
    """Return little-endian floats of those that the server has sent."""
    data = bytearray(len(sent))
    for place in range(_REAL):
        data[place::_REAL] = sent[_REAL - 1 - place :: _REAL]
    return bytes(data)


def register_dumpers(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Let a connection accept the arrays of this module."""
    for kind, dumper in _DUMPERS:
        connection.adapters.register_dumper(kind, dumper)


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        encoding = "utf-8"
        if self.connection is not None and (named := self.connection.info.encoding) != "ascii":
            encoding = named
        return obj.packed(encoding)


class _BlobsDumper(_ArrayDumper):
    oid = Blobs.array


class _TextsDumper(_ArrayDumper):
    oid = Texts.array


class _NumbersDumper(_ArrayDumper):
    oid = Numbers.array


class _RealsDumper(Dumper):
    format = Format.BINARY
    oid = Reals.array

    def dump(self, obj: Reals) -> bytes:
        return obj.packed()


_DUMPERS = ((Texts, _TextsDumper), (Blobs, _BlobsDumper), (Numbers, _NumbersDumper), (Reals, _RealsDumper))


_PACK: dict[type[Any], Callable[[Any], bytes]] = {
    str: str.encode,
    **dict.fromkeys((bytes, bytearray, memoryview), bytes),
    int: _NUMBER.pack,
    bool: _FLAG.pack,
    **dict.fromkeys((Texts, Blobs, Numbers), _Array.packed),
    Reals: Reals.packed,
}


def packed(params: Sequence[Any]) -> list[bytes | None]:
    """Return parameters in their binary form, for a connection that has text in UTF-8."""
    try:
        return [None if param is None else _PACK[type(param)](param) for param in params]
    except KeyError:
        return [None if param is None else _pack_of(param)(param) for param in params]


def _pack_of(param: Any) -> Callable[[Any], bytes]:
    """Return the function for a parameter of any class, such as an enumeration of texts of the application."""
    return next(pack for kind, pack in _PACK.items() if isinstance(param, kind))
