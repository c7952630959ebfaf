"""Damaged rows: a read gives what was put, or an error that names the place, and never something else."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from postgres.steps import play, thread
from threadmark import CheckpointTuple, CorruptDataError
from threadmark_postgres import PostgresSaver

_COLUMNS = {
    "segment": ["key", "data"],
    "checkpoint": ["header", "checksum"],
    "write": ["task_id", "value", "checksum"],
}
_TEXTS = {
    "checkpoint": ["rank", "parent", "metadata"],
    "write": ["task_path", "channel"],
}


@pytest.fixture
def stored(url: str) -> list[CheckpointTuple]:
    with PostgresSaver(url) as saver:
        play(saver, "one", 5, 60)
        saver.put_writes(thread("one", next(saver.list(thread("one"))).checkpoint["id"]), [("count", 7)], "t", "path")
        return list(saver.list(thread("one")))


def rows(tables: psycopg.Connection, table: str, column: str) -> list[tuple[str, Any]]:
    found = tables.execute(f"SELECT ctid::text, {column} FROM threadmark_{table} WHERE {column} IS NOT NULL".encode())
    return [(place, bytes(value) if isinstance(value, bytes) else value) for place, value in found]


def set_column(tables: psycopg.Connection, table: str, column: str, place: str, value: object) -> str:
    """Overwrite one value; where the row is now."""
    changed = tables.execute(
        f"UPDATE threadmark_{table} SET {column} = %s WHERE ctid = %s::tid RETURNING ctid::text".encode(),
        (value, place),
    )
    return str(next(changed)[0])


def readings(url: str) -> Iterator[tuple[str, CheckpointTuple | CorruptDataError | None]]:
    """Every checkpoint as a saver that remembers nothing reads it: the newest, then each by its id."""
    with PostgresSaver(url) as saver:
        for checkpoint_id in [None, *_ids(url)]:
            try:
                yield checkpoint_id or "", saver.get_tuple(thread("one", checkpoint_id))
            except CorruptDataError as error:
                yield checkpoint_id or "", error


def _ids(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT coalesce(id, rank) FROM threadmark_checkpoint")]


def check(url: str, stored: list[CheckpointTuple]) -> int:
    """How many readings said that something is damaged; no reading may be wrong."""
    expected = {item.checkpoint["id"]: item for item in stored}
    damaged = 0
    for checkpoint_id, found in readings(url):
        if isinstance(found, CorruptDataError):
            damaged += 1
            assert "thread 'one'" in str(found)
        elif found is not None:
            right = expected[found.checkpoint["id"]] if checkpoint_id == "" else expected[checkpoint_id]
            assert found == right
    return damaged


def test_what_is_whole_is_read(url: str, stored: list[CheckpointTuple]) -> None:
    assert check(url, stored) == 0


@pytest.mark.parametrize(("table", "column"), [(table, name) for table, names in _COLUMNS.items() for name in names])
def test_flipped_bits_are_found(
    url: str, tables: psycopg.Connection, stored: list[CheckpointTuple], table: str, column: str
) -> None:
    randomness = random.Random(f"{table}.{column}")
    found = 0
    for place, value in randomness.sample(rows(tables, table, column), 3):
        flipped = bytearray(value)
        bit = randomness.randrange(8 * len(flipped))
        flipped[bit // 8] ^= 1 << bit % 8
        damaged_place = set_column(tables, table, column, place, bytes(flipped))
        found += check(url, stored) > 0
        set_column(tables, table, column, damaged_place, value)
        assert check(url, stored) == 0
    assert found == 3


@pytest.mark.parametrize(("table", "column"), [(table, name) for table, names in _TEXTS.items() for name in names])
def test_changed_text_is_found(
    url: str, tables: psycopg.Connection, stored: list[CheckpointTuple], table: str, column: str
) -> None:
    for place, value in rows(tables, table, column)[:2]:
        damaged_place = set_column(tables, table, column, place, f"{value}x")
        assert check_renamed(url, stored, renames=column == "rank") > 0
        set_column(tables, table, column, damaged_place, value)
    assert check(url, stored) == 0


def check_renamed(url: str, stored: list[CheckpointTuple], *, renames: bool) -> int:
    """Like `check`, where a changed key may make a row another one: that one must not be readable."""
    if not renames:
        return check(url, stored)
    known = {item.checkpoint["id"] for item in stored}
    damaged = [found for name, found in readings(url) if name not in {"", *known}]
    assert all(isinstance(found, CorruptDataError) for found in damaged)
    return len(damaged)


@pytest.mark.parametrize("cut", [0, 1, 13])
@pytest.mark.parametrize(("table", "column"), [("segment", "data"), ("checkpoint", "header"), ("write", "value")])
def test_cut_off_bytes_are_found(
    url: str, tables: psycopg.Connection, stored: list[CheckpointTuple], table: str, column: str, cut: int
) -> None:
    for place, value in rows(tables, table, column)[:3]:
        damaged_place = set_column(tables, table, column, place, value[:cut])
        assert check(url, stored) > 0
        set_column(tables, table, column, damaged_place, value)
    assert check(url, stored) == 0


def test_a_segment_that_is_gone_is_found(url: str, tables: psycopg.Connection, stored: list[CheckpointTuple]) -> None:
    for place, _ in rows(tables, "segment", "data"):
        tables.execute("CREATE TABLE kept AS SELECT * FROM threadmark_segment WHERE ctid = %s::tid", (place,))
        tables.execute("DELETE FROM threadmark_segment WHERE ctid = %s::tid", (place,))
        assert check(url, stored) > 0
        tables.execute("INSERT INTO threadmark_segment SELECT * FROM kept")
        tables.execute("DROP TABLE kept")
    assert check(url, stored) == 0


@pytest.mark.parametrize("statement", ["DELETE FROM threadmark_head", "UPDATE threadmark_head SET needs = '{}'"])
def test_what_is_at_hand_for_the_newest_checkpoint_is_not_relied_on(
    url: str, tables: psycopg.Connection, stored: list[CheckpointTuple], statement: str
) -> None:
    tables.execute(statement.encode())
    assert check(url, stored) == 0


def test_damage_is_never_copied(url: str, tables: psycopg.Connection, stored: list[CheckpointTuple]) -> None:
    assert stored
    tables.execute("UPDATE threadmark_checkpoint SET metadata = '{}'")
    with PostgresSaver(url) as saver:
        with pytest.raises(CorruptDataError, match="thread 'one'"):
            saver.copy_thread("one", "two")
        assert saver.get(thread("two")) is None
