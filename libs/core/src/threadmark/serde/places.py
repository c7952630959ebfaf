"""Where inside a value something went wrong. The packers do not know, so the way is walked again once it has.

Only failures come here: nothing is slower for it, and neither function changes what the error says.
"""

from typing import Any

from threadmark.errors import PlacedError, SerializationError
from threadmark.serde.plan import Reader, reference_to
from threadmark.serde.plans import Plans, names_in
from threadmark.serde.wire import unpack

# The packers stop at 1,024 levels, the unpacker as well.
DEEPEST = 1024
_LONGEST_PLACE = 200


def where_unstorable(value: Any, plans: Plans) -> SerializationError | PlacedError | None:
    """The error of the first part that has no writer, with its place."""
    ahead: list[tuple[str, int, Any, type | None]] = [("", 0, value, None)]
    while ahead:
        place, depth, part, encoded = ahead.pop()
        if depth > DEEPEST:
            problem = f"nested deeper than {DEEPEST} levels, or containing itself; that cannot be stored"
            if encoded is not None:
                problem += f"; the function that was registered to encode {encoded.__qualname__} made part of it"
            return SerializationError(problem, _shortened(place))
        try:
            parts = _parts(part, plans)
        except PlacedError as error:
            return error.at(place) if place else error
        except Exception as error:  # noqa: BLE001 - a registered class's own function may raise anything
            return SerializationError(f"{type(part).__qualname__} cannot be stored: {error}", place)
        if plans.encodes(type(part)):
            encoded = type(part)
        ahead += [(_joined(place, step), depth + 1, inner, encoded) for step, inner in reversed(parts)]
    return None


def _parts(value: Any, plans: Plans) -> list[tuple[str, Any]]:
    cls = type(value)
    if cls is list:
        return [(f"[{place}]", item) for place, item in enumerate(value)]
    if cls is dict:
        keys = [("{key}", key) for key in value if type(key) is not str]
        return keys + [(f"[{_key(key)}]", item) for key, item in value.items()]
    if cls in plans.carried:
        return []
    shape, *state = plans.writer(cls)(value)
    if shape.opaque:
        return []
    return list(zip(_steps(shape.payload, len(state)), state, strict=True))


def _key(key: object) -> str:
    if type(key) in (str, bytes):
        return repr(key[: _LONGEST_PLACE + 1])  # type: ignore[index]  # both can be cut
    return repr(key) if type(key) in (int, bool, type(None)) else f"a {type(key).__qualname__}"


def _steps(payload: bytes, count: int) -> list[str]:
    names = [f".{name}" for name in names_in(payload)]
    return (names + [f"[{place}]" for place in range(count - len(names))])[:count]


def _joined(place: str, step: str) -> str:
    """One step further, as long as somebody would read it: a place is made for every part that is looked at."""
    return place if len(place) > _LONGEST_PLACE else place + step


def _shortened(place: str) -> str:
    return place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}..."


class _Marked(list[Any]):
    """An array as it stands in the bytes. A dictionary's key can be one, so it must be hashable."""

    def __hash__(self) -> int:  # type: ignore[override]  # that is the point
        return id(self)


class _Mark:
    def __init__(self, code: int, payload: bytes) -> None:
        self.code = code
        self.payload = payload


def where_unreadable(encoded: bytes, plans: Plans) -> str:
    """The place of the first part that its reader rejects; empty where the bytes themselves are broken."""
    try:
        _Reading(plans).read(unpack(encoded, _Marked, _Mark), "")
    except _FoundError as found:
        return _shortened(found.place)
    except Exception:  # noqa: BLE001 - broken in a way that has no place
        return ""
    return ""


class _FoundError(Exception):
    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


class _Reading:
    """Reads like the decoder, slowly, and knows at each step where it is."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._known: dict[bytes, tuple[Reader, list[str]]] = {}

    def read(self, part: Any, place: str) -> Any:
        """The value at a place."""
        if type(part) is dict:
            return {
                self.read(key, _joined(place, "{key}")): self.read(item, _joined(place, f"[{_key(key)}]"))
                for key, item in part.items()
            }
        if type(part) is not _Marked:
            return part
        if not part or type(part[0]) is not _Mark:
            return [self.read(item, _joined(place, f"[{index}]")) for index, item in enumerate(part)]
        try:
            reader, names = self._reader(part[0].payload)
        except Exception as error:
            raise _FoundError(place) from error
        steps = [f".{name}" for name in names] + [f"[{index}]" for index in range(len(part))]
        state = [self.read(item, _joined(place, step)) for item, step in zip(part[1:], steps, strict=False)]
        try:
            return reader.give(state)
        except Exception as error:
            raise _FoundError(place) from error

    def _reader(self, payload: bytes) -> tuple[Reader, list[str]]:
        if payload not in self._known:
            known = self._plans.reader(payload), names_in(payload)
            self._known[payload] = known
            self._known.setdefault(reference_to(payload), known)
        return self._known[payload]
