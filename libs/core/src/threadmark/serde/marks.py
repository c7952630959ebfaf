"""The marks in an encoded value up to the end of a part of it: what the references in the part stand for.

A class's mark stands in full where it first occurs in a value, and as a reference of two bytes from then on
(docs/format-values.md). A part that is decoded by itself may refer to marks anywhere before it, so they are looked for
from the front, and no further than they must be: nearly always the first items of a list have them all.
"""

from collections.abc import Iterator
from typing import Any

import msgpack

from threadmark.errors import CorruptDataError
from threadmark.serde.kinds_api import REFERENCE_LENGTH, reference_to
from threadmark.serde.wire import MARK_CODE


class Marks:
    """The marks of what was passed on the way to a part, and of the part itself, in the order of the bytes."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._passed: list[tuple[int, int] | bytes] = []
        self._is_complete = False
        self._looked_at = 0
        self._running: Iterator[bytes] = iter(())
        self._full: dict[bytes, bytes] = {}

    def pass_mark(self, payload: bytes) -> None:
        """Note the mark of an object that the way leads into."""
        if not self._is_complete:
            self._passed.append(payload)

    def pass_over(self, start: int, stop: int) -> None:
        """Note whole objects that were skipped one after the other, and so are complete."""
        if stop > start and not self._is_complete:
            self._passed.append((start, stop))

    def complete(self) -> None:
        """Note no more: any part of what was passed may follow now."""
        self._is_complete = True

    def full(self, payload: bytes) -> bytes:
        """Return the mark that a payload stands for: itself, unless it refers to another one."""
        if len(payload) != REFERENCE_LENGTH:
            return payload
        while payload not in self._full:
            found = next(self._running, None)
            if found is not None:
                self._full.setdefault(reference_to(found), found)
            elif self._looked_at < len(self._passed):
                self._running = self._marks_in(self._passed[self._looked_at])
                self._looked_at += 1
            else:
                raise CorruptDataError("a reference stands for no mark before it")
        return self._full[payload]

    def _marks_in(self, passed: tuple[int, int] | bytes) -> Iterator[bytes]:
        """Yield the marks in what was passed, in order. Nothing is made of anything else."""
        if isinstance(passed, bytes):
            yield from _if_full(passed)
            return
        found: list[bytes] = []
        start, stop = passed
        unpacker = msgpack.Unpacker(
            raw=True,  # text is not decoded
            list_hook=_nothing,
            object_pairs_hook=_nothing,
            ext_hook=lambda code, payload: found.append(payload) if code == MARK_CODE else None,
            max_buffer_size=stop - start,
            strict_map_key=False,
        )
        unpacker.feed(memoryview(self._encoded)[start:stop])
        for _ in unpacker:
            for payload in found:
                yield from _if_full(payload)
            found.clear()


def mark_of(extension: Any) -> bytes:
    """Return the payload of a mark. Raises CorruptDataError for anything else."""
    if type(extension) is not msgpack.ExtType or extension.code != MARK_CODE:
        raise CorruptDataError("an extension is not one that this serializer writes")
    payload: bytes = extension.data
    return payload


def _if_full(payload: bytes) -> Iterator[bytes]:
    if len(payload) > REFERENCE_LENGTH:
        yield payload


def _nothing(_: object) -> None:
    """Stand for an array or a map whose content does not matter."""
