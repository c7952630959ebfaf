"""The interface between the serializer and the modules that each write and read some kinds of value.

A value that msgpack cannot carry by itself is written as an array whose first item is a *mark*: an extension that names
the kind and, for a kind of many classes, the class and its fields. The other items are the value's state, which is
ordinary data for the packer, so nothing is encoded twice however deep it is nested, and an edit deep inside a value
changes few bytes. A long mark is written in full once in a value; from then on two bytes of its hash refer to it. They
depend on nothing but the mark, so adding or removing objects leaves the marks of the others as they are.
"""

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from threadmark.errors import CorruptDataError
from threadmark.serde.wire import new_pack

REFERENCE_LENGTH = 2
"""The length of a reference to a long mark, in bytes."""


class Shape:
    """The content of a mark. Shapes are compared by identity: a class's writer keeps those that it has made.

    The state of an `opaque` shape holds no values of the user's, so it need not be searched for any. `key`
    determines the shape among those of its class, if it is one of several (`Shapes`).
    """

    __slots__ = ("key", "opaque", "payload", "reference")

    def __init__(self, payload: bytes, *, opaque: bool = False) -> None:
        self.payload = payload
        self.reference = reference_to(payload)
        self.opaque = opaque
        self.key: Any = None


def reference_to(payload: bytes) -> bytes:
    """Return the reference to a mark after its first use: a hash, or the mark itself if it is a single letter."""
    return payload if len(payload) == 1 else blake2b(payload, digest_size=REFERENCE_LENGTH).digest()


Deconstruct: TypeAlias = Callable[[Any], list[Any]]
"""Takes a value, returns a list of its shape and its state."""

Reconstruct: TypeAlias = Callable[[list[Any]], Any]
"""Takes a state, returns the value."""

Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes the fields as they were stored, returns those that the class has now."""


class Reader:
    """The result of decoding a stored mark: the function that reads the rest of its array."""

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
    """Makes the shapes of one class: the family's code, the class's name, then details that only the family reads."""

    def __init__(self, cls: type, head: str) -> None:
        self.cls: Any = cls
        self._head = head

    def shape(self, *details: Any, opaque: bool = False) -> Shape:
        """Return a shape with these details, which must be data that msgpack carries."""
        return Shape(_pack_mark([self._head, *details]), opaque=opaque)


class StoredClass(NamedTuple):
    """A stored mark's statement about a class: the class of today, the details, and an upgrade function or None."""

    cls: Any
    details: list[Any]
    upgrade: Upgrade | None


T = TypeVar("T")


def only(items: list[Any], cls: type[T]) -> T:
    """Return the only item of a state, which must be of exactly this type.

    Builtin types accept more than was written: bytearray, for example, takes a number for its length.
    """
    if len(items) != 1 or type(items[0]) is not cls:
        raise CorruptDataError(f"the state of a stored value is not one {cls.__name__}")
    return items[0]


def exactly(items: list[Any], *classes: type) -> list[Any]:
    """Return the items of a state, which must be of exactly these types: converting others would run their methods."""
    if [*map(type, items)] != [*classes]:
        raise CorruptDataError(f"the state of a stored value is not {', '.join(cls.__name__ for cls in classes)}")
    return items


@runtime_checkable
class Family(Protocol):
    """A kind of value that many classes have (dataclasses, enums ...), so that the mark names the class.

    `code` stands for the family in stored values and must never change: one character for Threadmark's own families,
    a name in parentheses for those of other packages. `title` is an error's name for the family's values.

    Only `accepts` decides whether a class is of this family, and only `check` whether its values can be built without
    running its code. Both are called at put and again at load, so that a name in stored data can select a class whose
    values could have been stored, and nothing else.
    """

    code: str
    title: str

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is of this family."""

    def check(self, cls: type) -> None:  # noqa: ARG002 - most families take every class that they accept
        """Raise SerializationError if a value of the class could not be built again without running its code."""
        return None  # noqa: RET501 - so that it is not an abstract method

    def writer(self, define: Definer) -> Deconstruct:
        """Return the function that takes values of the definer's class apart."""

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Return the function that builds values with this mark, without running their `__init__`."""


def _not_in_marks(value: Any) -> Any:
    raise TypeError(f"a mark cannot hold a {type(value).__name__}")


def _pack_mark(content: list[Any]) -> bytes:
    # Marks are small and made once for each shape, so surrogates may take their time.
    return new_pack(_not_in_marks, surrogates=True)(content)


_Key = TypeVar("_Key", bound=Hashable)
_MOST_SHAPES = 1000
"""How many shapes of one class are remembered."""


class Shapes(dict[_Key, Shape]):
    """Shapes by their keys. If they become too many, all are forgotten."""

    def __init__(self, make: Callable[[_Key], Shape]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> Shape:
        shape = self._make(key)
        shape.key = key
        if len(self) >= _MOST_SHAPES:
            self.clear()
        self[key] = shape
        return shape
