"""Random damages to every table of a SQLite database: the right value or a clear error, never another."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from damage import (
    LONG_NAME,
    Damage,
    Expected,
    Field,
    check,
    check_counts,
    check_listing,
    check_threads,
    damages,
    describe,
    fill,
)
from length import times
from sqlite_cells import TABLES, cells, inflict, row_key
from threadmark import CorruptDataError, MemorySaver, Saver, SchemaError, States, StoreError
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

ROUNDS = times(30, at_length=2000)

NO_DAMAGE = Damage("none", Field("", "", (), "", 0), 0)


@pytest.fixture(autouse=True)
def mended(database: sqlite3.Connection, expected: Expected) -> Iterator[None]:
    """Whatever a test leaves behind, the next one finds the database whole."""
    assert expected
    whole = database.serialize()
    yield
    database.deserialize(whole)


@pytest.fixture(scope="module")
def saver(database: sqlite3.Connection) -> Saver:
    return SqliteSaver(database, cache_bytes=0)


@pytest.fixture(scope="module")
def expected(saver: Saver) -> Expected:
    found = fill(saver, second_node=LONG_NAME)
    describe(saver)
    return found


@pytest.mark.parametrize("table", TABLES)
def test_damaged_rows_give_the_right_value_or_an_error(
    database: sqlite3.Connection, saver: Saver, expected: Expected, table: str
) -> None:
    fields = list(cells(database, table))
    whole, sums = database.serialize(), saver.stats()
    refused = named = 0
    for damage in damages(fields, ROUNDS, seed=3):
        if inflict(database, damage):
            refused += check(saver, expected, damage)
            check_listing(saver, expected, damage)
            check_threads(saver, damage)
            named += check_counts(saver, sums)
            database.deserialize(whole)
    assert check(saver, expected, NO_DAMAGE) == 0
    assert saver.stats() == sums
    assert named > 0 or table == "threadmark_head"
    assert refused > 0


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_row_is_an_error(database: sqlite3.Connection, saver: Saver, expected: Expected, table: str) -> None:
    whole = database.serialize()
    where = " AND ".join(f"{key} IS ?" for key in row_key(table))
    for row in sorted({field.row for field in cells(database, table)}):
        database.execute(f"DELETE FROM {table} WHERE {where}", row)
        assert check(saver, expected, Damage("delete", Field(table, "", row, "", b""), b"")) > 0
        database.deserialize(whole)
    assert not saver.verify().problems


def test_a_thread_that_lacks_checkpoints_is_not_forked(
    database: sqlite3.Connection, saver: Saver, expected: Expected
) -> None:
    newest = next(found.config for (thread_id, ns, _), found in expected.items() if (thread_id, ns) == ("one", ""))
    lost = "SELECT thread, min(rank) FROM threadmark_checkpoint WHERE ns = 'child:1' GROUP BY thread"
    assert database.execute(f"DELETE FROM threadmark_checkpoint WHERE (thread, rank) IN ({lost})").rowcount == 2
    with pytest.raises(CorruptDataError, match="5 of 6 checkpoints are there"):
        saver.fork(newest, as_thread="new")


def test_the_error_about_damaged_metadata_names_its_location(
    database: sqlite3.Connection, saver: Saver, expected: Expected
) -> None:
    whole = database.serialize()
    database.execute("UPDATE threadmark_checkpoint SET metadata = ?", ('{"run_id":"r" x',))
    (thread_id, *_) = next(iter(expected))
    with pytest.raises(CorruptDataError) as caught:
        saver.prune([thread_id])
    assert "thread" in str(caught.value.location)
    pruned = saver.delete_for_runs(["r"])
    assert pruned.checkpoints == 0
    assert [problem.location[:12] for problem in pruned.problems] == ["thread 'one'", "thread 'two'"]
    database.deserialize(whole)


def test_text_that_is_no_utf_8_names_its_location_and_hides_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        for thread in ("damaged", "whole"):
            config = saver.put(at(thread), checkpoint({"a": "ä"}), {"source": "input"}, {"a": 1})
            saver.put_writes(config, [("ä", 1)], "task")
        with closing(sqlite3.connect(path)) as other, other:
            damage = "UPDATE threadmark_checkpoint SET metadata = CAST(metadata || x'ff' AS TEXT) WHERE thread = 1"
            assert other.execute(damage).rowcount == 1
        for _ in range(2):
            with pytest.raises(CorruptDataError, match="damaged"):
                saver.get_tuple(at("damaged"))
            found = saver.get_tuple(at("whole"))
            assert found is not None
            assert found.checkpoint["channel_values"] == {"a": "ä"}
            assert found.pending_writes == [("task", "ä", 1)]


def test_a_damaged_file_never_gives_a_wrong_value(tmp_path: Path) -> None:
    """Bits anywhere in the file, the database's own structures included: those it may refuse as a whole."""
    path = tmp_path / "damaged.db"
    with SqliteSaver(path) as saver:
        expected = fill(saver)
    whole = path.read_bytes()
    chance = random.Random(11)
    refused = 0
    for _ in range(ROUNDS):
        damaged = bytearray(whole)
        position = chance.randrange(100, len(damaged))
        damaged[position] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with SqliteSaver(path, cache_bytes=0) as saver:
                refused += check(saver, expected, Damage("bit", NO_DAMAGE.field, position)) > 0
        except (CorruptDataError, StoreError, SchemaError):
            refused += 1  # the file as a whole
    assert 0 < refused < ROUNDS


def test_a_thread_that_no_listing_finds_is_named(database: sqlite3.Connection, saver: Saver) -> None:
    saver.create_thread("empty")
    database.execute("DELETE FROM threadmark_head WHERE thread_id = 'empty'")
    (problem,) = saver.verify().problems
    assert problem.problem == "1 threads are in no listing: their rows are missing here"


@pytest.mark.parametrize(
    "damage", ["DELETE FROM threadmark_checkpoint", "UPDATE threadmark_thread SET thread = thread + 1000000"]
)
def test_a_part_of_a_thread_whose_checkpoints_are_all_missing_is_a_problem(
    database: sqlite3.Connection, saver: Saver, damage: str
) -> None:
    States(saver).save("said", {"a": 1})
    saver.create_thread("empty")
    database.execute(damage)
    infos = {info.id: info for info in saver.list_threads(extract={"part": "a"}, limit=100).threads}
    assert (infos["empty"].extracted, infos["empty"].problems) == ({"part": None}, [])
    assert infos["said"].extracted == {}
    (problem,) = infos["said"].problems
    assert "newest checkpoint is missing" in problem.problem


def test_a_thread_whose_time_is_no_number_is_listed_at_its_minute(database: sqlite3.Connection, saver: Saver) -> None:
    States(saver).save("said", 1)
    whole = saver.get_thread("said")
    database.execute("UPDATE threadmark_head SET updated_at = x'00' WHERE thread_id = 'said'")
    said = saver.get_thread("said")
    assert said is not None
    assert whole is not None
    assert said.updated_at == whole.updated_at.replace(second=0, microsecond=0)
    assert said in saver.list_threads(limit=100).threads
    assert ("damaged", "1 threads are listed at a wrong time") in [
        (kind, what) for kind, _, what in saver.verify().problems
    ]


def test_a_thread_whose_creation_is_no_number_is_listed_as_damaged(database: sqlite3.Connection, saver: Saver) -> None:
    saver.create_thread("made")
    database.execute("UPDATE threadmark_thread SET created_at = 'x' WHERE thread_id = 'made'")
    (made,) = [info for info in saver.list_threads(limit=100).threads if info.id == "made"]
    assert made.problems == [("damaged", "thread 'made'", "a stored time is no number")]
    with pytest.raises(CorruptDataError, match="'made': a stored time is no number"):
        saver.get_thread("made")


def test_what_an_earlier_release_left_of_a_deleted_thread_is_gone_when_it_begins_again(
    database: sqlite3.Connection, saver: Saver
) -> None:
    saver.create_thread("deleted")
    saver.delete_thread("deleted")
    database.execute(
        "UPDATE threadmark_thread SET owner = 'ada', title = 'x', folded_title = 'x', metadata = '{\"a\": 1}', "
        "checksum = x'00' WHERE thread_id = 'deleted'"
    )
    saver.create_thread("deleted")
    found = saver.get_thread("deleted")
    assert found is not None
    assert (found.owner, found.title, found.metadata) == (None, None, {})


def test_a_segment_whose_key_is_no_key_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver, closing(sqlite3.connect(path)) as connection:
        config = at("thread")
        for number, letter in enumerate("xyz"):
            config = saver.put(config, checkpoint({"a": letter * 3000}, {"a": number}), {}, {"a": number})
        with connection:
            connection.execute("UPDATE threadmark_segment SET key = 'text' WHERE number = 1")
        saver.prune(["thread"])
        found = saver.get_tuple(at("thread"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": "z" * 3000}


def test_the_harness_would_notice_a_wrong_value() -> None:
    """A saver that answers with something else must not pass: the check is tried on one that does."""
    other = MemorySaver()
    wrong = fill(other)
    key = next(iter(wrong))
    wrong[key].checkpoint["channel_values"]["turn"] = "changed"
    with pytest.raises(AssertionError):
        check(other, wrong, NO_DAMAGE)
