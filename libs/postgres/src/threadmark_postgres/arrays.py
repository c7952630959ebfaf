"""Arrays as parameters of statements, in the form that the server's own programs read.

psycopg would look at every item to find out what the array holds, write most of them as text with quotes, and take
another type for the array from call to call, each of which the server plans anew. Here the class says it.
"""

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import Any, ClassVar, Self

import psycopg
from psycopg.adapt import Dumper
from psycopg.postgres import types
from psycopg.pq import Format

_HEAD = Struct("!iiIii")
_EMPTY = Struct("!iiI")
_LENGTH = Struct("!i")
_NUMBER = Struct("!iq")
_NULL = _LENGTH.pack(-1)
_ONE_NULL = [None]


class Texts(list[str | None]):
    """A parameter of type text[]."""


class Blobs(list[bytes | None]):
    """A parameter of type bytea[]."""


class Numbers(list[int | None]):
    """A parameter of type bigint[]."""


class ChangeNumbers(Numbers):
    """For each item of the other arrays, the number of the change that it belongs to, counted from 1."""


class BatchParams(tuple[Texts | Blobs | Numbers, ...]):
    """The parameters of a statement that adds: those of one change, or several joined to be added together."""

    __slots__ = ()

    @property
    def thread(self) -> object:
        """The thread of the change, or of the first of several."""
        return self[0][0]

    @classmethod
    def joined(cls, batch_params: Sequence[Self]) -> Self:
        """The changes of all parameters, each of which holds one."""
        return cls(_joined(arrays) for arrays in zip(*batch_params, strict=True))


def size_of(params: Sequence[Any]) -> int:
    """About how many bytes are sent, metadata included, which may be as large as any value."""
    size = 0
    for param in params:
        if isinstance(param, (str, bytes)):
            size += len(param)
        elif isinstance(param, (Texts, Blobs)):
            size += sum([len(item) for item in param if item is not None])
    return size


def register_dumpers(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Let a connection accept the arrays of this module."""
    for kind, dumper in _DUMPERS:
        connection.adapters.register_dumper(kind, dumper)


def _joined(arrays: Sequence[Any]) -> Any:
    kind = type(arrays[0])
    if kind is ChangeNumbers:
        return ChangeNumbers(number for number, array in enumerate(arrays, 1) for _ in array)
    return kind(chain.from_iterable(arrays))


class _ArrayDumper(Dumper):
    format = Format.BINARY
    element: ClassVar[int]

    def dump(self, obj: Sequence[Any]) -> bytes:
        if obj == _ONE_NULL:  # as most columns of a change are that few changes need
            return _HEAD.pack(1, True, self.element, 1, 1) + _NULL
        if not obj:
            return _EMPTY.pack(0, 0, self.element)
        return _HEAD.pack(1, None in obj, self.element, len(obj), 1) + b"".join(self.items(obj))

    def items(self, obj: Sequence[Any]) -> list[bytes]:
        """Return the items, each with its length before it."""
        return [_NULL if item is None else _LENGTH.pack(len(item)) + item for item in obj]


class _BlobsDumper(_ArrayDumper):
    element, oid = types["bytea"].oid, types["bytea"].array_oid


class _TextsDumper(_ArrayDumper):
    element, oid = types["text"].oid, types["text"].array_oid

    def items(self, obj: Sequence[str | None]) -> list[bytes]:
        encoding = "utf-8"
        if self.connection is not None and (named := self.connection.info.encoding) != "ascii":
            encoding = named
        return super().items([None if item is None else item.encode(encoding) for item in obj])


class _NumbersDumper(_ArrayDumper):
    element, oid = types["int8"].oid, types["int8"].array_oid

    def items(self, obj: Sequence[int | None]) -> list[bytes]:
        return [_NULL if item is None else _NUMBER.pack(8, item) for item in obj]


_DUMPERS = ((Texts, _TextsDumper), (Blobs, _BlobsDumper), (Numbers, _NumbersDumper), (ChangeNumbers, _NumbersDumper))
