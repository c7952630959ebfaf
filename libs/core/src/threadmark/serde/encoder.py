"""Values to bytes: the packers, which ask here for everything that msgpack cannot carry."""

from collections.abc import Callable, Iterable
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.buffers import holds_stowaway, may_hold_buffer
from threadmark.serde.plan import Shape, Take
from threadmark.serde.plans import Plans
from threadmark.serde.wire import NEVER_ASKED_ABOUT, NeedsSlowWayError, fast_mark, mark, new_pack, pack_fast

# Sets are sorted by the encodings of their members, each by a packer of its own inside the running one: this
# bound keeps the C stack small where every other bound would multiply.
DEEPEST_SETS = 8
_SORTABLE: tuple[frozenset[type], ...] = (frozenset({str}), frozenset({int}), frozenset())


def encode(value: Any, plans: Plans) -> tuple[bytes, bool]:
    """The bytes, and whether there are marks in them."""
    encoder = Encoder(plans, fast_mark)
    try:
        encoded = pack_fast(value, encoder.write)
    except NeedsSlowWayError:
        pass
    else:
        if not may_hold_buffer(encoded) or not holds_stowaway([value, *encoder.open_states()]):
            return encoded, bool(encoder.states)
    encoder = Encoder(plans, mark)
    encoded = new_pack(encoder.write, surrogates=True)(value)
    if not holds_stowaway([value, *encoder.open_states()]):
        return encoded, bool(encoder.states)
    shield = Shield(plans)
    return new_pack(shield.write, surrogates=True)(shield.held(value)), True


class _Writers(dict[type, Take]):
    """The writers of one call; the next call looks again, so that a class redefined meanwhile is noticed."""

    def __init__(self, find: Callable[[type], Take]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, cls: type) -> Take:
        take = self[cls] = self._find(cls)
        return take


class Encoder:
    """What one call has to remember: which marks it has written, and what it handed to the packer."""

    def __init__(self, plans: Plans, new_mark: Callable[[bytes], Any], depth: int = 0) -> None:
        self.states: list[list[Any]] = []
        self._plans = plans
        self._new_mark = new_mark
        self._depth = depth
        self._writers = _Writers(self._writer)
        self._marks: dict[Shape, Any] = {}
        self._references: dict[bytes, Shape] = {}
        self._opaque: set[int] = set()
        self._orders: dict[int, list[Any]] = {}

    def write(self, value: Any) -> list[Any]:
        """A value's mark and state, which is all there is to it for the packer."""
        items = self._writers[type(value)](value)
        shape = items[0]
        items[0] = self._marks.get(shape) or self._define(shape)
        self.states.append(items)
        return items

    def open_states(self) -> list[list[Any]]:
        """The states that have values of the user's in them."""
        return [items for items in self.states if not self.is_opaque(items)]

    def is_opaque(self, items: list[Any]) -> bool:
        """Whether these are the items of an opaque shape."""
        return id(items[0]) in self._opaque

    def _define(self, shape: Shape) -> Any:
        """The mark for a shape's first time in this value; what stands for it later is remembered."""
        definition = later = self._new_mark(shape.payload)
        first = self._references.setdefault(shape.reference, shape)
        # Two marks may share a reference: the first one has it, the other is written in full every time.
        if first.payload == shape.payload:
            later = self._new_mark(shape.reference)
        self._marks[shape] = later
        if shape.opaque:
            # Both live as long as the states that begin with them: the ids stay their own.
            self._opaque |= {id(definition), id(later)}
        # A shape that was forgotten and made again (see `Shapes`) is still the one that was written.
        return definition if first is shape or later is definition else later

    def _writer(self, cls: type) -> Take:
        take = self._plans.writer(cls)
        if cls is set or cls is frozenset:
            return lambda members: [take(())[0], *self._ordered(members)]
        return take

    def _ordered(self, members: Iterable[Any]) -> list[Any]:
        """A set's members in an order that is the same in every process."""
        if frozenset(map(type, members)) in _SORTABLE:
            return sorted(members)
        order = self._orders.get(id(members))
        if order is None:
            if self._depth == DEEPEST_SETS:
                raise SerializationError(f"sets inside sets cannot be stored deeper than {DEEPEST_SETS} levels")
            # Each member is encoded by itself, so that its place does not depend on marks defined elsewhere.
            order = sorted(members, key=self._encoded_alone)
            # The set is kept alive by the value being encoded, so its id stays its own during this call.
            self._orders[id(members)] = order
        return order

    def _encoded_alone(self, member: Any) -> bytes:
        alone = Encoder(self._plans, mark, self._depth + 1)
        alone._orders = self._orders
        return new_pack(alone.write, surrogates=True)(member)


class Held:
    """What the packer must not see by itself: a list or dictionary that it would enter, a buffer it would
    write.
    """

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


class Shield(Encoder):
    """Writes what the packers would get wrong if it were let; it sees every value, one level at a time."""

    def __init__(self, plans: Plans) -> None:
        super().__init__(plans, mark)

    def write(self, value: Any) -> Any:
        """Like `Encoder.write`, with everything below held back from the packer."""
        content = value.content if type(value) is Held else value
        if type(content) is list:
            return [self.held(item) for item in content]
        if type(content) is dict:
            return {self.held(key): self.held(item) for key, item in content.items()}
        items = super().write(content)
        return items if self.is_opaque(items) else [items[0], *map(self.held, items[1:])]

    def held(self, value: Any) -> Any:
        """What the packer may have in place of a value."""
        return Held(value) if type(value) in _HELD_BACK else value


_HELD_BACK = NEVER_ASKED_ABOUT | {list, dict}
