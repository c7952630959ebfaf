"""From values to bytes: the packer, which calls back for everything that msgpack cannot carry."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

from threadmark.errors import SerializationError
from threadmark.runtime.compiled import counterpart
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.kinds_api import Deconstruct, Shape
from threadmark.serde.whole import is_whole
from threadmark.serde.wire import ENTERED, NEVER_ASKED_ABOUT, holds_unasked, mark, new_pack, packed_mark

DEEPEST_SETS = 8
"""How deep sets may be nested. Their members are sorted by their encodings, each made by a packer within the running
one, so that without this limit the C stack could overflow."""

_SORTABLE: tuple[frozenset[type], ...] = (frozenset({str}), frozenset({int}), frozenset())
"""The types of a set's members that can be sorted as they are."""

SCALARS = frozenset({str, int, float, bool, bytes})
"""The types that are encoded without a search for anything else in them."""


def _for_objects(dispatch: Dispatch) -> tuple[Any, ...]:
    """Return the compiled packer's parts for objects: known writers and a function for others, and so for marks."""
    writers, marks = _Writers(dispatch), _Marks(set(), packed_mark)
    return writers.known, writers.new, marks.known, marks.new


@counterpart("packing.pack", _for_objects)
def encode(value: Any, dispatch: Dispatch) -> tuple[bytes, bool]:
    """Encode a value. Returns the bytes, and whether there are marks in them."""
    encoder = Encoder(dispatch)
    try:
        encoded = new_pack(encoder.write)(value)
    except UnicodeEncodeError:  # a lone surrogate; to allow for it makes all text slower
        encoder = Encoder(dispatch)
        encoded = new_pack(encoder.write, surrogates=True)(value)
    typed = bool(encoder.states)
    if holds_unasked([value, *encoder.open_states()]):
        encoded, typed = new_pack(_shielded(dispatch), surrogates=True)(held(value)), True
    # msgpack counts a list before it packs the items. While it asks us about one, another thread may change the list.
    if typed and not is_whole(encoded):
        raise SerializationError("it was changed while it was encoded: encode a copy, or change it afterwards")
    return encoded, typed


class _Writers:
    """The writers of one call. The next call looks them up again, so that a redefined class is noticed."""

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
    """The marks of one call: for each shape its definition at first, and from then on its reference."""

    def __init__(self, opaque: set[int], new_mark: Callable[[bytes], Any] = mark) -> None:
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
    """The memory of one call: the marks it has written, and the objects it handed to the packer.

    Nothing in it refers back to the encoder, so that the values are freed as soon as the call ends.
    """

    def __init__(self, dispatch: Dispatch, order: "_Order | None" = None) -> None:
        self.states: list[list[Any]] = []
        self._opaque: set[int] = set()
        writing = _writing(dispatch, order, self.states, self._opaque)
        next(writing)
        self.write = writing.send
        """The packer's hook: returns a value's mark and state as a list, which the packer packs in its place."""

    def open_states(self) -> list[list[Any]]:
        """Return the states, without their marks, that may hold values of the user's."""
        return [items[1:] for items in self.states if id(items[0]) not in self._opaque]


def _writing(
    dispatch: Dispatch,
    order: "_Order | None",
    states: list[list[Any]],
    opaque: set[int],
) -> Generator[list[Any], Any, None]:
    """Yield the mark and state of each value that is sent.

    This runs once for each object, so it is a generator that looks up known writers and marks in plain dictionaries:
    that takes a tenth less of the whole time than a function that calls methods. For most values, which have no objects
    in them, it is never resumed.
    """
    value = yield []
    writers, marks = _Writers(dispatch, order), _Marks(opaque)
    writer_of, mark_of, keep = writers.known, marks.known, states.append
    while True:
        cls = type(value)
        try:
            deconstruct = writer_of[cls]
        except KeyError:
            deconstruct = None
        # Not in the handler above, or a refusal would appear as the consequence of the KeyError.
        items = (deconstruct or writers.new(cls))(value)
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
        return new_pack(Encoder(self._dispatch, _Order(self._dispatch, self)).write, surrogates=True)(member)


def _in_order(order: _Order, shape: Shape) -> Deconstruct:
    return lambda members: [shape, *order.of(members)]


class Held:
    """Hides from the packer a list or dictionary that it would enter, or a buffer that it would write as bytes."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


def _shielded(dispatch: Dispatch) -> Callable[[Any], Any]:
    """Return a hook for values that the packers would get wrong by themselves: it sees every value, level by level."""
    writers, marks = _Writers(dispatch), _Marks(set())

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
    return Held(value) if type(value) in ENTERED or type(value) in NEVER_ASKED_ABOUT else value
