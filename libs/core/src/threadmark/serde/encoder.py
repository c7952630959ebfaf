"""From values to bytes: the packers, which call back for everything that msgpack cannot carry."""

from collections.abc import Callable, Generator, Iterable
from sys import getrefcount
from typing import Any

from threadmark.errors import SerializationError
from threadmark.runtime.compiled import counterpart
from threadmark.serde import wire
from threadmark.serde.buffers import BUFFER_HEADERS, ENDS_IN_SPAN, LONGEST_SPAN, holds_buffer_or_envelope, is_in_span
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.kinds_api import Deconstruct, Shape
from threadmark.serde.wire import INSTANCES, NEVER_ASKED_ABOUT, fast_mark, mark, new_pack

DEEPEST_SETS = 8
"""How deep sets may be nested. Their members are sorted by their encodings, each made by a packer within the running
one, so that without this limit the C stack could overflow."""

_SORTABLE: tuple[frozenset[type], ...] = (frozenset({str}), frozenset({int}), frozenset())
"""The types of a set's members that can be sorted as they are."""

_LOOKS_A_BYTE = 1 / 250
"""Suspicious bytes, for each byte of the encoding, that are examined before it is cheaper to look at all values."""

SCALARS = frozenset({str, int, float, bool, bytes})
"""What is encoded without a search for anything else in it."""

_PATIENCE = 3
"""How many headers back `is_in_span` follows an argument."""


def _for_objects(dispatch: Dispatch) -> tuple[Any, ...]:
    """Return what the compiled packer needs for objects: known writers and a function for others, and so for marks."""
    writers, marks = _Writers(dispatch), _Marks(wire.packed_mark, set())
    return writers.known, writers.new, marks.known, marks.new


@counterpart("packing.pack", _for_objects)
def encode(value: Any, dispatch: Dispatch) -> tuple[bytes, bool]:
    """Encode a value. Returns the bytes, and whether there are marks in them."""
    encoder = Encoder(dispatch, fast_mark)
    try:
        encoded = wire.pack_fast(value, encoder.write) if wire.HAS_FAST else None
    except wire.PackFastError:
        encoded = None
    if encoded is not None:
        is_suspicious = _may_hold_envelope()
        if not is_suspicious and not may_hold_buffer(encoded):
            return encoded, bool(encoder.states)
        if not holds_buffer_or_envelope([value, *encoder.open_states()]):
            if is_suspicious:
                INSTANCES.were_not_found()
            return encoded, bool(encoder.states)
    if encoder.failures:
        raise encoder.failures.pop()
    encoder = Encoder(dispatch, mark)
    try:
        encoded = new_pack(encoder.write, surrogates=True)(value)
    finally:
        # An error's traceback refers to this frame, and would keep the value until the next garbage collection.
        encoder.failures.clear()
    if not holds_buffer_or_envelope([value, *encoder.open_states()]):
        return encoded, bool(encoder.states)
    return new_pack(_shielded(dispatch), surrogates=True)(held(value)), True


def _may_hold_envelope() -> bool:
    """Whether ormsgpack may have been given an envelope of its own (`envelopes`)."""
    references = 0
    for cls in INSTANCES.classes:
        references += getrefcount(cls)
    others = references - len(wire.FAST_MARKS)
    return others != INSTANCES.others and INSTANCES.may_be_more(others)


def may_hold_buffer(encoded: bytes) -> bool:
    """Whether a buffer may have been written (`buffers`)."""
    looks = 8 + int(len(encoded) * _LOOKS_A_BYTE)
    find, is_surely_in_span = encoded.find, ENDS_IN_SPAN.search
    for header, fewest in BUFFER_HEADERS.items():
        end = max(0, len(encoded) - fewest + 1)
        location = find(header, 0, end)
        while location >= 0:
            looks -= 1
            if not looks:
                return True
            # The first search is the beginning of `is_in_span`, without the price of a call.
            if not (
                is_surely_in_span(encoded, location - LONGEST_SPAN, location)
                or is_in_span(encoded, location, _PATIENCE)
            ):
                return True
            location = find(header, location + 1, end)
    return False


class _Writers:
    """The writers of one call. The next call looks them up again, so that a class redefined meanwhile is noticed."""

    def __init__(self, dispatch: Dispatch, order: "_Order | None" = None) -> None:
        self.known: dict[type, Deconstruct] = {}
        self._dispatch = dispatch
        self._order = order

    def new(self, cls: type) -> Deconstruct:
        """Return the writer of a class that occurs for the first time."""
        deconstruct = self._dispatch.writer(cls)
        if cls is set or cls is frozenset:
            self._order = self._order or _Order(self._dispatch)
            deconstruct = _in_order(self._order, *deconstruct(()))
        self.known[cls] = deconstruct
        return deconstruct


class _Marks:
    """The marks of one call: for each shape its definition where it first occurs, and from then on its reference."""

    def __init__(self, new_mark: Callable[[bytes], Any], opaque: set[int]) -> None:
        self.known: dict[Shape, Any] = {}
        self._new_mark = new_mark
        self._first: dict[bytes, Shape] = {}
        self._opaque = opaque

    def new(self, shape: Shape) -> Any:
        """Return the mark of a shape that occurs for the first time, and put the mark for later ones into `known`."""
        definition = self._new_mark(shape.payload)
        first = self._first.setdefault(shape.reference, shape)
        # If two marks have the same reference, it means the first of them, and the other is written in full every time.
        shared = first.payload == shape.payload
        later = self.known[shape] = self._new_mark(shape.reference) if shared else definition
        # A shape that was forgotten and made again (see `Shapes`) is still the one that was written.
        now = definition if first is shape else later
        if shape.opaque:
            # Both live as long as the states that begin with them, so their ids are not reused.
            self._opaque |= {id(now), id(later)}
        return now


class Encoder:
    """What one call remembers: which marks it has written, and what it handed to the packer.

    Nothing in it refers back to the encoder, so that the values are freed as soon as the call ends.
    """

    def __init__(self, dispatch: Dispatch, new_mark: Callable[[bytes], Any], order: "_Order | None" = None) -> None:
        self.states: list[list[Any]] = []
        self.failures: list[BaseException] = []
        """What `write` raised. ormsgpack reports that it raised, but not what."""
        self._opaque: set[int] = set()
        writing = _writing(dispatch, new_mark, order, self.states, self.failures, self._opaque)
        next(writing)
        self.write = writing.send
        """The packer's hook: returns a value's mark and state as a list, which the packer packs in its place."""

    def open_states(self) -> list[list[Any]]:
        """Return the states, without their marks, that may hold values of the user's."""
        return [items[1:] for items in self.states if id(items[0]) not in self._opaque]


def _writing(
    dispatch: Dispatch,
    new_mark: Callable[[bytes], Any],
    order: "_Order | None",
    states: list[list[Any]],
    failures: list[BaseException],
    opaque: set[int],
) -> Generator[list[Any], Any, None]:
    """Yield the mark and state of each value that is sent.

    This runs once for each object, so it is a generator that looks up known writers and marks in plain dictionaries:
    that takes a tenth less of the whole time than a function that calls methods. For most values, which have no objects
    in them, it is never resumed.
    """
    value = yield []
    writers, marks = _Writers(dispatch, order), _Marks(new_mark, opaque)
    writer_of, mark_of, keep = writers.known, marks.known, states.append
    while True:
        cls = type(value)
        try:
            deconstruct = writer_of[cls]
        except KeyError:
            deconstruct = None
        # Not in the handler above, or a refusal would be shown as the consequence of the KeyError.
        try:
            items = (deconstruct or writers.new(cls))(value)
        except BaseException as error:
            failures.append(error)
            raise
        shape = items[0]
        try:
            items[0] = mark_of[shape]
        except KeyError:
            items[0] = marks.new(shape)
        keep(items)
        value = yield items


class _Order:
    """Puts a set's members into an order that is the same in every process."""

    def __init__(self, dispatch: Dispatch, outer: "_Order | None" = None) -> None:
        self._dispatch = dispatch
        self.depth: int = outer.depth + 1 if outer else 0
        # The sets are kept as well, so that their ids are not reused during the call.
        self.known: dict[int, tuple[Iterable[Any], list[Any]]] = outer.known if outer else {}

    def of(self, members: Iterable[Any]) -> list[Any]:
        """Return the members of a set in order."""
        if frozenset(map(type, members)) in _SORTABLE:
            return sorted(members)
        if id(members) in self.known:
            return self.known[id(members)][1]
        if self.depth == DEEPEST_SETS:
            raise SerializationError(f"sets inside sets cannot be stored deeper than {DEEPEST_SETS} levels")
        # Each member is encoded by itself, so that the order does not depend on marks that occur elsewhere.
        order = sorted(members, key=self._encoded_alone)
        self.known[id(members)] = members, order
        return order

    def _encoded_alone(self, member: Any) -> bytes:
        return new_pack(Encoder(self._dispatch, mark, _Order(self._dispatch, self)).write, surrogates=True)(member)


def _in_order(order: _Order, shape: Shape) -> Deconstruct:
    return lambda members: [shape, *order.of(members)]


class Held:
    """Hides from the packer a list or dictionary that it would enter, or a buffer that it would write as bytes."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


def _shielded(dispatch: Dispatch) -> Callable[[Any], Any]:
    """Return a hook for values that the packers would get wrong by themselves: it sees every value, level by level."""
    writers, marks = _Writers(dispatch), _Marks(mark, set())

    def write(value: Any) -> Any:
        content = value.content if type(value) is Held else value
        cls = type(content)
        if cls is list:
            return [held(item) for item in content]
        if cls is dict:
            return {held(key): held(item) for key, item in content.items()}
        shape, *state = (writers.known.get(cls) or writers.new(cls))(content)
        mark_of_it = marks.known.get(shape) or marks.new(shape)
        return [mark_of_it, *(state if shape.opaque else map(held, state))]

    return write


def held(value: Any) -> Any:
    """Return the value, hidden from the packer if it would not call the hook for it."""
    return Held(value) if type(value) in _ENTERED or type(value) in NEVER_ASKED_ABOUT else value


_ENTERED = frozenset({list, dict})
