"""The shape shared by everything that knows how to write and read one kind of value.

A value that msgpack cannot carry by itself is written as an array whose first item is a *mark* (a msgpack
extension that names the kind, and the class where there is more than one) and whose other items are its state.
The state is ordinary data for the packer, so nesting never encodes anything twice, and an edit deep inside a
value changes few bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from threadmark.serde.wire import mark

Take: TypeAlias = Callable[[Any], Sequence[Any]]
Give: TypeAlias = Callable[[list[Any]], Any]
Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How values of one class are written and read: `take` gives the state, `give` builds the value from it."""

    cls: type
    mark: Any
    take: Take
    give: Give
    unordered: bool = False


class Kind(NamedTuple):
    """A kind of value that exactly one class has; its letter is its whole name in the data."""

    letter: str
    cls: type
    take: Take
    give: Give
    unordered: bool = False

    def plan(self) -> Plan:
        """The plan for the one class."""
        return Plan(self.cls, mark(self.letter), self.take, self.give, self.unordered)


class Family(Protocol):
    """A kind of value that many classes have (dataclasses, enums ...), so that the data names the class.

    `accepts` decides alone whether a class is really of this family, at put and again at load: a name in stored
    data can select one of the family's classes, and never anything else.
    """

    letter: str
    title: str

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is of this family."""

    def plan(self, cls: type, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """How values of `cls` are taken apart and built, without running their `__init__`."""
