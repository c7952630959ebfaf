"""The questions that a backend answers about the vectors of items, as programs of the saver's own driver."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from threadmark.backends import Program
from threadmark.sealing import row_name
from threadmark_store.contract import RowsOfItems
from threadmark_store.shapes import Cursor, ItemKey, ItemRow, Scope

CHOICE = -1
"""The number of a row without a vector: its `field` has the fields that the item's put named, as JSON."""

SEALED_MODEL = ", sealed)"
"""The end of the name of a model whose vectors are sealed."""

_DIMS = re.compile(rf"\((\d+)(?:{re.escape(SEALED_MODEL)}|\))$")


def model_name(name: object, dims: int, *, is_sealed: bool) -> str:
    """Return the name under which the vectors of a model are stored and compared."""
    return f"{name} ({dims}{SEALED_MODEL if is_sealed else ')'}"


def dims_of(model: str) -> int | None:
    """Return the dimensions in a name that `model_name` made, None for any other name."""
    found = _DIMS.search(model)
    return int(found[1]) if found else None


class Vector(NamedTuple):
    """A vector of an item."""

    field: str
    """The path to the text in the value."""
    number: int
    """Which of the texts at this path, from 0, or `CHOICE`."""
    data: bytes
    """Little-endian 32-bit floats of length 1, empty for a choice. Sealed if the store has a keyring."""


class VectorRow(NamedTuple):
    """A vector as it is stored."""

    key: ItemKey
    vector: Vector
    model: str
    """The model and its dimensions, empty for a choice: only vectors of one model are compared."""
    check: int
    """That of the item whose value had the text."""
    owner: str | None = None


Scanned = tuple[str, str, str, int, bytes, int]
"""A vector as a page has it: namespace, key, field, number, data and check. There are many, so they get no shape, and
texts are as in their columns."""


Compared = tuple[str, str, int, float]
"""A vector that the database has compared: namespace, key, check and score, texts as in their columns."""


class Nearest(NamedTuple):
    """The best of the vectors that a database compares."""

    compared: list[Compared]
    """The best one first."""
    has_others: bool
    """Whether `VectorStore.page` may have vectors that the database does not compare."""


class VectorCounts(NamedTuple):
    """How many vectors a scope has."""

    of_model: int
    of_others: int


class VectorStore(RowsOfItems[VectorRow], Protocol):
    """The vectors of one database."""

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        """Return the next vectors of a model in a namespace, those below it and of an owner, in any order.

        The cursor is None at the beginning and at the end. Vectors that the database compares are left out.
        """

    def engine(self) -> Program[str]:
        """Return what compares vectors: numpy, or an extension of the database."""

    def nearest(self, scope: Scope, model: str, query: bytes, limit: int | None) -> Program[Nearest]:
        """Return the best of the vectors that the database compares, at most this many."""

    def is_complete(self) -> Program[bool]:
        """Return whether `create` has nothing to add to the table, which is there."""

    def adopt(self, cursor: Cursor | None) -> Program[Cursor | None]:
        """Let the database compare the next vectors that numpy compares so far. The cursor is that of `page`."""

    def text(self, column: str) -> str:
        """Return the text of a column of a page."""

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        """Return how many vectors of a namespace, of those below it and of an owner are of a model, and of others."""


class ComparedByNumpy:
    """The vectors of a database that compares none."""

    def engine(self) -> Program[str]:
        yield from ()
        return "numpy"

    def nearest(self, scope: Scope, model: str, query: bytes, limit: int | None) -> Program[Nearest]:
        yield from ()
        return Nearest([], True)

    def is_complete(self) -> Program[bool]:
        yield from ()
        return True

    def adopt(self, cursor: Cursor | None) -> Program[Cursor | None]:
        yield from ()
        return None


def vector_name(key: ItemKey, vector: Vector) -> bytes:
    """Return the name that a sealed vector is bound to."""
    return row_name("store_vector", *key, vector.field, vector.number)


class VectorTable(NamedTuple):
    """The vectors of a store, and how it uses them."""

    store: VectorStore
    model: str = ""
    """The model of its queries, empty if it has none: then it only removes the vectors of items that it changes."""
    opened: Callable[[ItemKey, Vector], bytes] | None = None
    """Returns the data of an item's vector without its seal, unless they have none."""

    def rows_of(self, item: ItemRow, vectors: Iterable[Vector]) -> list[VectorRow]:
        """Return the rows of an item's vectors."""
        return [
            VectorRow(item.key, vector, "" if vector.number == CHOICE else self.model, item.check, item.owner)
            for vector in vectors
        ]
