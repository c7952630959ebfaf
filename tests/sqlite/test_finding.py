"""A checkpoint and its writes are found with one statement, which sees one snapshot; if they are not, they are asked
for.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from threadmark import Saver
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import Alone, Query


class Counted:
    """A saver on a database in memory, and the statements that it runs."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.saver = SqliteSaver(self.database, cache_bytes=0)

    def put(self, number: int, *, ns: str = "", writes: int = 1) -> dict[str, Any]:
        """Store a checkpoint and its writes, whose values are its number. Returns its config."""
        config = self.saver.put(at("t", ns), {**checkpoint({"a": number}), "id": early_id(number)}, {}, {"a": number})
        for index in range(writes):
            self.saver.put_writes(config, [("a", number)], f"task {index}")
        return config

    def find(self, config: Any) -> tuple[Any, list[Any], list[str]]:
        """Return the value and the writes that were found, and the first words of the statements."""
        statements: list[str] = []
        self.database.set_trace_callback(statements.append)
        found = self.saver.get_tuple(config)
        self.database.set_trace_callback(None)
        words = [statement.split()[0] for statement in statements]
        if found is None:
            return None, [], words
        return found.checkpoint["channel_values"]["a"], [value for *_, value in found.pending_writes or []], words


@pytest.fixture
def counted() -> Iterator[Counted]:
    made = Counted()
    with closing(made.database), made.saver:
        yield made


def test_one_statement_finds_a_checkpoint_with_its_writes(counted: Counted) -> None:
    first, second = counted.put(1), counted.put(2, writes=2)
    counted.put(3, ns="child:1", writes=0)
    assert counted.find(at("t")) == (2, [2, 2], ["SELECT"])
    assert counted.find(second) == (2, [2, 2], ["SELECT"])
    assert counted.find(first) == (1, [1], ["SELECT"])
    assert counted.find(at("t", "child:1")) == (3, [], ["SELECT"])


def test_what_is_not_there_is_not_found_beside_its_writes(counted: Counted) -> None:
    counted.put(1)
    early = at("t", checkpoint_id=early_id(2))
    counted.saver.put_writes(early, [("a", 2)], "task")
    assert counted.find(early)[:2] == (None, [])
    assert counted.find(at("t")) == (1, [1], ["SELECT"])
    assert counted.find(at("nobody"))[0] is None


def test_the_writes_of_another_newest_are_asked_for(counted: Counted) -> None:
    for number in (1, 2, 3):
        counted.put(number)
    counted.database.execute("DELETE FROM threadmark_checkpoint WHERE rank = ?", (early_id(3),))
    counted.database.execute("UPDATE threadmark_head SET checkpoints = 2, newest = ?", (early_id(2),))
    assert counted.find(at("t")) == (2, [2], ["SELECT", "BEGIN", "SELECT", "SELECT", "COMMIT"])
    counted.put(4)
    assert counted.find(at("t")) == (4, [4], ["SELECT"])


@pytest.mark.parametrize("damage", [None, "text", b"16 bytes, others", 5])
def test_an_unknown_or_damaged_name_of_the_newest_hides_no_writes(counted: Counted, damage: object) -> None:
    counted.put(1)
    counted.database.execute("UPDATE threadmark_head SET newest_id = ?", (damage,))
    assert counted.find(at("t"))[:2] == (1, [1])
    assert counted.saver.verify().problems == []


def test_a_checkpoint_whose_id_is_not_its_rank_is_found_with_its_writes(counted: Counted) -> None:
    parent = counted.put(5)
    config = counted.saver.put(
        parent, {**checkpoint({"a": 6}), "id": early_id(2)}, {}, {"a": 6}
    )  # a clock was set back
    counted.saver.put_writes(config, [("a", 6)], "task")
    assert counted.find(at("t")) == (6, [6], ["SELECT"])
    assert counted.find(config) == (6, [6], ["SELECT"])
    name = counted.saver.put(config, {**checkpoint({"a": 7}), "id": "a name"}, {}, {"a": 7})
    counted.saver.put_writes(name, [("a", 7)], "task")
    assert counted.find(at("t")) == (7, [7], ["SELECT"])


def test_removed_checkpoints_leave_no_id_in_their_head(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver, closing(sqlite3.connect(tmp_path / "threads.db")) as reader:
        _stored(saver, 3)
        saver.prune(["t"], strategy="keep_latest")
        assert reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchall() == [(1,)]
        assert reader.execute("SELECT newest_id FROM threadmark_head").fetchall() == [(None,)]


def _stored(saver: Saver, count: int) -> None:
    config: Any = at("t")
    for number in range(count):
        config = saver.put(config, checkpoint({"a": number}), {}, {"a": number})


def test_a_read_that_goes_on_after_another_ones_commit_begins_again(tmp_path: Path) -> None:
    count = "SELECT count(*) FROM threadmark_checkpoint"
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        config = saver.put(at("t"), checkpoint({"a": 0}), {}, {"a": 1})
        runs: list[int] = []

        def read_twice() -> Program[tuple[Any, Any]]:
            runs.append(len(runs))
            first = yield Alone(count)
            if len(runs) == 1:
                other.put(config, checkpoint({"a": 1}), {}, {"a": 2})
            return first, (yield Query(count))

        first, second = saver._driver.run(Transaction(read_twice, writes=False))
    assert first == second == [(2,)]
    assert runs == [0, 1]
