"""Looking for a text, whatever its case: in the strings of a value, and first in those bytes of it that are new."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from threadmark.errors import ConfigError
from threadmark.rope import layout
from threadmark.saver.paths import key_text, name_text, parse_path
from threadmark.serde.shown import CONTENT, Shown
from threadmark.serde.steps import Key
from threadmark.stored import Stored

_CONTEXT = 40
"""How many characters are shown on either side of a match."""

_EDGE = 64
"""So many characters of the end of a piece tell whether more of them may be in a long text that is looked for."""

_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
_UNCASED = 0x1F000
"""From here on characters have no case."""


class Hit(NamedTuple):
    """A text that was found, and what stands around it."""

    path: str
    before: str
    text: str
    after: str


class Needle:
    """A text that is looked for."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        # Text with lone surrogates is not found in bytes.
        self._is_in_bytes = not any("\ud800" <= character <= "\udfff" for character in text)
        self._encoded = encoded = (
            [character.encode() for character in _written_as(self._folded)] if self._is_in_bytes else []
        )
        self._heads = tuple({each[:at] for each in encoded for at in range(1, len(each))})
        self._tails = tuple({each[at:] for each in encoded for at in range(1, len(each))})

    def hits(self, path: str, value: Any) -> Iterator[Hit]:
        """Yield the strings and the keys of dictionaries that contain the text, in order."""
        for place, text in _strings(path, value):
            yield from self._hit(place, text)

    def key_hits(self, path: str) -> Iterator[Hit]:
        """Yield the key that a path ends with, if it is one and contains the text."""
        with suppress(ConfigError):  # too long to be a path
            steps = parse_path(path).steps
            if steps and isinstance(steps[-1], Key):
                yield from self._hit(path, steps[-1].text)

    def _hit(self, path: str, text: str) -> Iterator[Hit]:
        if span := self._span(text):
            start, stop = span
            yield Hit(path, text[max(0, start - _CONTEXT) : start], text[start:stop], text[stop : stop + _CONTEXT])

    def may_be_in(self, piece: bytes) -> bool:
        """Whether it may be in these bytes of an encoded value, or begin or end in them."""
        if not self._is_in_bytes:
            return True
        # Text stands in them as UTF-8, and nothing before or after it can become a part of its characters.
        text, wanted = piece.decode("utf-8", "replace").casefold(), self._folded
        if wanted in text or text in wanted:
            return True
        # A character may be cut into pieces.
        if piece.startswith(self._tails) or piece.endswith(self._heads) or any(piece in each for each in self._encoded):
            return True
        if text[:_EDGE] in wanted or text[-_EDGE:] in wanted:
            return True
        few = range(1, min(len(wanted), _EDGE))
        return any(text.endswith(wanted[:at]) or text.startswith(wanted[-at:]) for at in few)

    def _span(self, text: str) -> tuple[int, int] | None:
        """Return where it stands in a text. Folding may change the number of characters."""
        folded = text.casefold()
        start = folded.find(self._folded)
        if start < 0:
            return None
        stop = start + len(self._folded)
        if len(folded) == len(text):
            return start, stop
        owners = [index for index, character in enumerate(text) for _ in character.casefold()]
        return owners[start], owners[stop - 1] + 1


def _written_as(folded: str) -> set[str]:
    """Return the characters that a text may have which is this one when it is folded."""
    return {*folded}.union(*(_unfolded().get(character, ()) for character in {*folded}))


@cache
def _unfolded() -> Mapping[str, set[str]]:
    """By character, those in whose folded form it is."""
    found: dict[str, set[str]] = {}
    for character in map(chr, (*range(0x80, _FIRST_SURROGATE), *range(_LAST_SURROGATE + 1, _UNCASED))):
        for part in character.casefold():
            found.setdefault(part, set()).add(character)
    return found


def _strings(path: str, value: Any) -> Iterator[tuple[str, str]]:
    ahead: deque[tuple[str, Any]] = deque([(path, value)])
    while ahead:
        place, part = ahead.popleft()
        inner: list[tuple[str, Any]] = []
        if isinstance(part, str):
            yield place, str(part)
        elif type(part) is Shown:
            inner = [
                (place + ("" if name == CONTENT else name_text(name) or ""), item) for name, item in part.fields.items()
            ]
        elif isinstance(part, Mapping):
            for key, item in part.items():
                step = key_text(key) if type(key) is str else ""
                inner += [(place + step, key), (place + step, item)]
        elif isinstance(part, (list, tuple, deque)):
            inner = [(f"{place}[{index}]", item) for index, item in enumerate(part)]
        elif isinstance(part, (set, frozenset)):
            inner = [(place, item) for item in sorted(part, key=repr)]
        ahead.extendleft(reversed(inner))


class Fresh(NamedTuple):
    """What a stored value has that another one has not."""

    slices: dict[bytes, list[tuple[int, int, int]]]
    """By segment, its size, and where each new piece begins and ends in it."""
    literals: list[bytes]
    """New pieces that stand in the manifest itself, or are all of the value."""
    is_joined: bool
    """Whether pieces of the other one stand side by side that did not: a text may have come about there."""


def fresh(value: Stored, other: Stored | None) -> Fresh:
    """Return what a value has that the other one has not, by their manifests, without reading either."""
    if not value.digest:
        return Fresh({}, [value.packed], is_joined=False)
    there = _pieces(other) if other is not None and other.digest else {}
    manifest, found, end = layout(value.packed), Fresh({}, [], is_joined=False), 0
    joined = False
    for index, start, length in manifest.parts:
        key = manifest.keys[index] if index >= 0 else b""
        at = _found(there.get(key, ()), start, length) if key else None
        if at is None:
            if key:
                found.slices.setdefault(key, []).append((manifest.sizes[index], start, start + length))
            else:
                found.literals.append(manifest.packed[start : start + length])
            end = -1
            continue
        joined |= end not in (-1, at)
        end = at + length
    return found._replace(is_joined=joined)


def _pieces(value: Stored) -> dict[bytes, list[tuple[int, int, int]]]:
    """By segment, where each piece begins and ends in it, and where it stands in the value."""
    manifest, position = layout(value.packed), 0
    found: dict[bytes, list[tuple[int, int, int]]] = {}
    for index, start, length in manifest.parts:
        if index >= 0:
            found.setdefault(manifest.keys[index], []).append((start, start + length, position))
        position += length
    return found


def _found(pieces: Any, start: int, length: int) -> int | None:
    for begins, ends, position in pieces:
        if begins <= start and start + length <= ends:
            return int(position + start - begins)
    return None
