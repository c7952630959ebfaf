"""The shapes shared by everything that knows how to write and read one kind of value.

A value that msgpack cannot carry by itself is written as an array whose first item is a *mark*, an extension
that names the kind and, where there is more than one, the class and its fields. The other items are its
state, and they are ordinary data for the packer: nesting never encodes anything twice, and an edit deep
inside a value changes few bytes. A long mark stands in full once in a value; from then on two bytes, taken
from its hash, refer to it. They depend on nothing but the mark, so that adding or removing objects leaves the
marks of the others as they were.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from threadmark.errors import CorruptDataError
from threadmark.serde.wire import new_pack

REFERENCE_LENGTH = 2


class Shape:
    """What a mark says. Shapes are compared by identity: whoever writes a class's values keeps them.

    The state of an `opaque` shape has nothing in it that a user put there as a value, so nobody need look
    into it.
    """

    __slots__ = ("opaque", "payload", "reference")

    def __init__(self, payload: bytes, *, opaque: bool = False) -> None:
        self.payload = payload
        self.reference = reference_to(payload)
        self.opaque = opaque


def reference_to(payload: bytes) -> bytes:
    """What stands for a mark after its first time; a kind's single letter is shorter as it is."""
    return payload if len(payload) == 1 else blake2b(payload, digest_size=REFERENCE_LENGTH).digest()


# From a value to its shape and state in one list; from the state to the value.
Deconstruct: TypeAlias = Callable[[Any], list[Any]]
Reconstruct: TypeAlias = Callable[[list[Any]], Any]
Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Reader:
    """What a mark in stored bytes turns into: the function for the rest of its array."""

    __slots__ = ("reconstruct",)

    def __init__(self, reconstruct: Reconstruct) -> None:
        self.reconstruct = reconstruct


class Kind(NamedTuple):
    """A kind of value of exactly one class. Its letter is its whole mark."""

    letter: str
    cls: type
    deconstruct: Callable[[Any], Sequence[Any]]
    reconstruct: Reconstruct


class Definer:
    """Makes the shapes of one class: its family's code and its name, then details that only the family reads."""

    def __init__(self, cls: type, head: str) -> None:
        self.cls: Any = cls
        self._head = head

    def shape(self, *details: Any, opaque: bool = False) -> Shape:
        """A shape with these details, which must be data that msgpack carries."""
        return Shape(_pack_mark([self._head, *details]), opaque=opaque)


class StoredClass(NamedTuple):
    """What a mark says about a class: the class as it is today, the details, and how old fields become new ones."""

    cls: Any
    details: list[Any]
    upgrade: Upgrade | None


T = TypeVar("T")


def only(items: list[Any], cls: type[T]) -> T:
    """The one item of a state, which must be of exactly this type.

    Builtin types take much more than what they write: bytearray, for one, takes a number for its length.
    """
    if len(items) != 1 or type(items[0]) is not cls:
        raise CorruptDataError(f"the state of a stored value is not one {cls.__name__}")
    return items[0]


def exactly(items: list[Any], *classes: type) -> list[Any]:
    """The items of a state, which must be of exactly these types: to convert others would run their methods."""
    if [*map(type, items)] != [*classes]:
        raise CorruptDataError(f"the state of a stored value is not {', '.join(cls.__name__ for cls in classes)}")
    return items


@runtime_checkable
class Family(Protocol):
    """A kind of value that many classes have (dataclasses, enums ...), so that the mark names the class.

    `code` stands for the family in stored values and must never change: one character for Threadmark's own families,
    a name in parentheses for those of other packages. `title` is what an error calls the family's values.

    `accepts` decides alone whether a class is really of this family, and `check` whether its values can be built
    without running it. Both are asked at put and again at load: a name in stored data can select one of the classes
    that values were stored of, and never anything else.
    """

    code: str
    title: str

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is of this family."""

    def check(self, cls: type) -> None:  # noqa: ARG002 - families without a doubt take all that they accept
        """Raise SerializationError where a value of the class could not be built again without running its code."""
        return None  # noqa: RET501 - so that it is no abstract method

    def writer(self, define: Definer) -> Deconstruct:
        """How values of the definer's class are taken apart."""

    def reader(self, stored: StoredClass) -> Reconstruct:
        """How values with such a mark are built, without running their `__init__`."""


def _not_in_marks(value: Any) -> Any:
    raise TypeError(f"a mark cannot hold a {type(value).__name__}")


def _pack_mark(content: list[Any]) -> bytes:
    # Marks are small and made once for each shape: text with surrogates may cost what it costs.
    return new_pack(_not_in_marks, surrogates=True)(content)
