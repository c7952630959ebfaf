"""Values to bytes: msgpack's C packer, which asks here for everything it does not know."""

from collections.abc import Iterable
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.buffers import holds_buffer, may_hold_buffer
from threadmark.serde.plan import Plan
from threadmark.serde.plans import Plans
from threadmark.serde.wire import mark, new_pack

# Sets are sorted by the encodings of their members, each a packer of its own inside the running one: this bound
# keeps the C stack small where every other bound would multiply.
DEEPEST_SETS = 8
_SORTABLE = (frozenset({str}), frozenset({int}))
_BYTEARRAY = mark("b")


class Encoder:
    """One packer and what it has to remember during one call; not for two threads at once."""

    def __init__(self, plans: Plans) -> None:
        self._find_plan = plans.of_class
        self._known: dict[type, Plan] = {}
        self._states: list[list[Any]] = []
        self._orders: dict[int, list[Any]] = {}
        self._depth = 0
        self._pack = new_pack(self._write)

    def encode(self, value: Any) -> tuple[bytes, bool]:
        """The bytes, and whether any of it needed more than msgpack."""
        try:
            try:
                encoded = self._pack(value)
            except UnicodeEncodeError:
                self._states.clear()
                encoded = new_pack(self._write, surrogates=True)(value)
            if may_hold_buffer(encoded) and holds_buffer([value, *self._states]):
                return new_pack(self._write_shielded, surrogates=True)(_shield(value)), True
            return encoded, bool(self._states)
        finally:
            self._known.clear()
            self._states.clear()
            self._orders.clear()

    def _write(self, value: Any) -> list[Any]:
        cls = type(value)
        plan = self._known.get(cls)
        if plan is None:
            plan = self._known[cls] = self._find_plan(cls)
        state = self._ordered(value) if plan.unordered else plan.take(value)
        items = [plan.mark, *state]
        self._states.append(items)
        return items

    def _write_shielded(self, value: Any) -> Any:
        return _shield(value.content if type(value) is _Shielded else self._write(value))

    def _ordered(self, members: Iterable[Any]) -> list[Any]:
        """A set's members in an order that is the same in every process."""
        if frozenset(map(type, members)) in _SORTABLE:
            return sorted(members)
        known = self._orders.get(id(members))
        if known is not None:
            return known
        if self._depth == DEEPEST_SETS:
            raise SerializationError(f"sets inside sets cannot be stored deeper than {DEEPEST_SETS} levels")
        self._depth += 1
        try:
            order = sorted(members, key=new_pack(self._write, surrogates=True))
        finally:
            self._depth -= 1
        # The set is kept alive by the value being encoded, so its id stays its own for this call.
        self._orders[id(members)] = order
        return order


class _Shielded:
    """A list or dictionary that the packer must not enter by itself, because it may hold a buffer."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


def _shield(value: Any) -> Any:
    """One level of a value, with its buffers marked and the levels below held back."""
    if type(value) is list:
        return [_shielded(item) for item in value]
    if type(value) is dict:
        # A key may be a memoryview, which is refused here.
        return {_shielded(key): _shielded(item) for key, item in value.items()}
    return _shielded(value)


def _shielded(value: Any) -> Any:
    cls = type(value)
    if cls is bytearray:
        return [_BYTEARRAY, bytes(value)]
    if cls is memoryview:
        raise SerializationError("a memoryview cannot be stored, it is a window on another object; store bytes(view)")
    return _Shielded(value) if cls is list or cls is dict else value
