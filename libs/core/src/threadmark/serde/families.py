"""The families of classes whose values can be stored: the serializer's own, and those that installed packages add.

A package adds families through the entry-point group `threadmark.kinds` (docs/how-to/kinds.md). The entry's name is the
library whose classes they store. An entry is loaded only once the program itself has imported that library, so that
neither importing Threadmark nor reading a stored value imports anything. The families for numpy and pandas, which come
with Threadmark, are found in the same way.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from threadmark.errors import SerializationError
from threadmark.serde.kinds_api import Family
from threadmark.serde.lookup import imported

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "threadmark.kinds"

_OWN = {"numpy": "threadmark.arrays.numpy_kinds:FAMILIES", "pandas": "threadmark.arrays.pandas_kinds:FAMILIES"}
"""Threadmark's own entries. They stand here because a program frozen into one file has no metadata to find them in."""

_CODE = re.compile(r"\([A-Za-z0-9_.-]{1,100}\)")
"""The form of a code that a package may give a family; codes of one character are Threadmark's own."""


def split_code(head: str) -> tuple[str, str]:
    """Split the beginning of a mark. Returns the family's code, and the name of the class."""
    found = _CODE.match(head)
    length = found.end() if found else 1
    return head[:length], head[length:]


class Families:
    """The families of one serializer, in the order in which they are asked whether a class is theirs.

    Those that packages add come between `first` and `last`: after enums and exceptions, and before the families that
    accept a class for its form, such as dataclasses.
    """

    def __init__(self, first: Sequence[Family], last: Sequence[Family]) -> None:
        self._first = first
        self._last = last
        self._imported: list[EntryPoint] = []
        self._by_code: Mapping[str, Family] = _by_code((*first, *last))
        installed_entries()  # reads the metadata of installed packages now, so that no put has to wait for it

    def of_class(self, cls: type) -> Family | None:
        """Return the first family that accepts the class, or None."""
        return next((family for family in self.by_code().values() if family.accepts(cls)), None)

    def may_have_stored(self, family: Family, cls: type) -> bool:
        """Whether a value of the class, as it is now, can have been stored by this family.

        An enum that is also a str is stored as an enum alone. Only a package may come between: values that were stored
        before it was installed stay readable.
        """
        first = self.of_class(cls)
        return family.accepts(cls) and first is not None and (first is family or len(first.code) > 1)

    def by_code(self) -> Mapping[str, Family]:
        """Return every family whose library has been imported, by code and in order."""
        found = [entry for entry in installed_entries() if imported(entry.name)]
        if found != self._imported:
            added = [family for entry in found for family in _loaded(entry)]
            self._by_code = _by_code((*self._first, *added, *self._last))
            self._imported = found
        return self._by_code


@cache
def installed_entries() -> tuple["EntryPoint", ...]:
    """Return Threadmark's own entries, if their folder exists, and those of all installed packages."""
    from importlib.metadata import EntryPoint, entry_points
    from importlib.util import find_spec

    own = (EntryPoint(library, families, GROUP) for library, families in _OWN.items())
    return (*(entry for entry in own if find_spec(entry.module.rpartition(".")[0])), *entry_points(group=GROUP))


@cache
def _loaded(entry: "EntryPoint") -> tuple[Family, ...]:
    """Import the families that an entry names."""
    try:
        families: tuple[Family, ...] = tuple(entry.load())
        for problem in _problems(entry, families):
            raise TypeError(problem)  # noqa: TRY301 - reported like an error of the package itself
    except Exception as error:
        raise SerializationError(
            f"the kinds of value that {entry.value!r} adds for {entry.name} cannot be loaded: {error}; "
            "mend or uninstall the package that has this entry point"
        ) from error
    return families


def _problems(entry: "EntryPoint", families: Sequence[object]) -> Iterator[str]:
    for family in families:
        if isinstance(family, type) or not isinstance(family, Family):
            yield f"{family!r} is not an instance of a family"
        elif entry.value != _OWN.get(entry.name) and not _CODE.fullmatch(family.code):
            yield f"the code {family.code!r} must be a name in parentheses, such as ({entry.name})"


def _by_code(families: Sequence[Family]) -> Mapping[str, Family]:
    found: dict[str, Family] = {}
    for family in families:
        other = found.setdefault(family.code, family)
        if other is not family:
            raise SerializationError(f"{other!r} and {family!r} are families with one code, {family.code!r}")
    return found
