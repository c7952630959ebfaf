"""Finding the place of an error inside a value. The packers do not know it, so the value is walked again.

This runs only after a failure, so that it slows nothing down, and it does not change the error's text.
"""

from typing import Any

from threadmark.errors import LocatedError, SerializationError
from threadmark.serde.dispatch import Dispatch, names_in
from threadmark.serde.kinds_api import Reader, reference_to
from threadmark.serde.wire import DEEPEST, ENTERED, unpack

_LONGEST_LOCATION = 200


def where_unstorable(value: Any, dispatch: Dispatch) -> SerializationError | LocatedError | None:
    """Return the error of the first part that cannot be stored, with its location, or None if there is none."""
    ahead: list[tuple[str, int, Any, type | None]] = [("", 0, value, None)]
    while ahead:
        location, depth, part, encoded = ahead.pop()
        if depth > DEEPEST or (depth == DEEPEST and type(part) in ENTERED):
            problem = f"nested deeper than {DEEPEST} levels, or containing itself; that cannot be stored"
            if encoded is not None:
                problem += f"; the function that was registered to encode {encoded.__qualname__} made part of it"
            return SerializationError(problem, _shortened(location))
        try:
            parts = _parts(part, dispatch)
        except LocatedError as error:
            return error.at(location) if location else error
        except Exception as error:  # noqa: BLE001 - a registered class's own function may raise anything
            return SerializationError(f"{type(part).__qualname__} cannot be stored: {error}", location)
        if dispatch.encodes(type(part)):
            encoded = type(part)
        ahead += [(_joined(location, step), depth + 1, inner, encoded) for step, inner in reversed(parts)]
    return None


def _parts(value: Any, dispatch: Dispatch) -> list[tuple[str, Any]]:
    cls = type(value)
    if cls is list:
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if cls is dict:
        keys = [("{key}", key) for key in value if type(key) is not str]
        return keys + [(f"[{_key(key)}]", item) for key, item in value.items()]
    if cls in dispatch.carried:
        return []
    shape, *state = dispatch.writer(cls)(value)
    if shape.opaque:
        return []
    return list(zip(_steps(shape.payload, len(state)), state, strict=True))


def _key(key: object) -> str:
    if type(key) in (str, bytes):
        return repr(key[: _LONGEST_LOCATION + 1])  # type: ignore[index]  # both can be cut
    return repr(key) if type(key) in (int, bool, type(None)) else f"a {type(key).__qualname__}"


def _steps(payload: bytes, count: int) -> list[str]:
    names = [f".{name}" for name in names_in(payload)]
    return (names + [f"[{index}]" for index in range(count - len(names))])[:count]


def _joined(location: str, step: str) -> str:
    """Add a step to a location, unless it is too long to be read: one is made for every part that is looked at."""
    return location if len(location) > _LONGEST_LOCATION else location + step


def _shortened(location: str) -> str:
    return location if len(location) <= _LONGEST_LOCATION else f"{location[:_LONGEST_LOCATION]}..."


class _Marked(list[Any]):
    """An array as it was written. It may be a dictionary's key, so it must be hashable."""

    def __hash__(self) -> int:  # type: ignore[override]  # a list is not hashable, this is
        return id(self)


class _Mark:
    def __init__(self, code: int, payload: bytes) -> None:
        self.code = code
        self.payload = payload


def where_unreadable(encoded: bytes, dispatch: Dispatch) -> str:
    """Return the location of the first part that its reader rejects, or "" if the bytes themselves are broken."""
    try:
        _Reading(dispatch).read(unpack(encoded, _Marked, _Mark), "")
    except _FoundError as found:
        return _shortened(found.location)
    except Exception:  # noqa: BLE001 - bytes broken in a way that has no location
        return ""
    return ""


class _FoundError(Exception):
    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class _Reading:
    """Reads like the decoder, but slowly, and knows the location at each step."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._known: dict[bytes, tuple[Reader, list[str]]] = {}

    def read(self, part: Any, location: str) -> Any:
        """Return the value at a location."""
        if type(part) is dict:
            return {
                self.read(key, _joined(location, "{key}")): self.read(item, _joined(location, f"[{_key(key)}]"))
                for key, item in part.items()
            }
        if type(part) is not _Marked:
            return part
        if not part or type(part[0]) is not _Mark:
            return [self.read(item, _joined(location, f"[{index}]")) for index, item in enumerate(part)]
        try:
            reader, names = self._reader(part[0].payload)
        except Exception as error:
            raise _FoundError(location) from error
        steps = [f".{name}" for name in names] + [f"[{index}]" for index in range(len(part))]
        state = [self.read(item, _joined(location, step)) for item, step in zip(part[1:], steps, strict=False)]
        try:
            return reader.reconstruct(state)
        except Exception as error:
            raise _FoundError(location) from error

    def _reader(self, payload: bytes) -> tuple[Reader, list[str]]:
        if payload not in self._known:
            known = self._dispatch.reader(payload), names_in(payload)
            self._known[payload] = known
            self._known.setdefault(reference_to(payload), known)
        return self._known[payload]
