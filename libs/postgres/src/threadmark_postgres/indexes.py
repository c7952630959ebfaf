"""Indexes that a step adds to tables in use: `setup()` builds them while others write, and tables are never locked.

They are no part of the step's transaction, because the server builds such an index in several. An index only makes
queries faster, so a database without it is complete, and `report()` warns until it is there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from threadmark.backends import Operation, Program, read
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import indexes
from threadmark_postgres.steps import execute


class Index(NamedTuple):
    """An index of a table that an earlier step created."""

    name: str
    table: str
    columns: str
    """With their brackets, and the condition of a partial index."""

    def statement(self, *, concurrently: bool) -> str:
        """Return the statement that creates it."""
        return indexes.create(self.name, f"tm.{self.table}", self.columns, concurrently=concurrently)


class _Place(NamedTuple):
    """A table or a partition of it, and the state of its index."""

    table: str
    name: str
    """That of the index, with its schema. Of a partition it ends with the partition's number in the catalogue."""
    state: str
    """One of "missing", "building", "invalid" and "valid"."""
    is_partition: bool


def build_missing(schema: str | None, wanted: Sequence[Index]) -> Operation[None]:
    """Build those that are missing, one after the other. Each statement is a transaction, or several."""
    for index in wanted:
        places = yield from read(_places, schema, index)
        for place in places:
            if place.state == "invalid":  # its builder was interrupted
                yield from read(_execute_alone, indexes.drop(place.name))
            if place.state in ("invalid", "missing"):
                name = place.name.rpartition(".")[2]
                yield from read(_execute_alone, indexes.create(name, place.table, index.columns, concurrently=True))
        if any(place.is_partition for place in places):  # takes the partitions' indexes, and builds none
            yield from read(_execute_alone, in_schema(index.statement(concurrently=False), schema))


def missing(schema: str | None, wanted: Sequence[Index]) -> Program[tuple[str, ...]]:
    """Return the names of those that are not there, or not complete."""
    names = []
    for index in wanted:
        places = yield from _places(schema, index)
        if any(place.state != "valid" for place in places):
            names.append(index.name)
    return tuple(names)


def _places(schema: str | None, index: Index) -> Program[list[_Place]]:
    rows = yield from execute(in_schema(indexes.PLACES, schema), (in_schema(f"tm.{index.table}", schema), index.name))
    return [_Place(*row) for row in rows]


def _execute_alone(statement: str) -> Program[None]:
    yield from execute(statement, likely_last=True)
