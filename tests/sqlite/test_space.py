"""Space: the file shrinks after a removal, and a reader that goes on meanwhile sees what it saw."""

import os
from pathlib import Path

import pytest

from sqlite_file import looking_at
from threadmark.conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver


def _filled(saver: SqliteSaver, thread: str, steps: int = 20) -> None:
    config = at(thread)
    for number in range(1, steps + 1):
        made = checkpoint({"a": os.urandom(50_000)}, {"a": number})
        config = saver.put(config, made, {"run_id": thread}, {"a": number})


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


@pytest.mark.parametrize("how", ["delete", "prune", "runs", "strategy"])
def test_the_file_shrinks_after_a_removal(how: str, tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db", durability="normal") as saver:
        _filled(saver, "kept", 1)
        _filled(saver, "gone")
        full = _size(tmp_path)
        if how == "delete":
            saver.delete_thread("gone")
        elif how == "prune":
            saver.prune(["gone"])
        elif how == "runs":
            saver.delete_for_runs(["gone"])
        else:
            saver.prune(["gone"], strategy="delete")
        assert _size(tmp_path) < full / 4
        assert saver.get(at("kept")) is not None
    with looking_at(tmp_path / "threads.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_a_reader_in_the_way_only_delays_the_shrinking(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path, durability="normal", timeout=0.2) as saver, looking_at(path) as reader:
        _filled(saver, "one")
        _filled(saver, "two")
        full = _size(tmp_path)
        reader.execute("BEGIN")
        count = reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone()
        saver.delete_thread("one")
        assert reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchone() == count
        reader.execute("ROLLBACK")
        saver.delete_thread("two")
        assert _size(tmp_path) < full / 4


def test_a_deleted_thread_leaves_one_row_that_remembers_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        _filled(saver, "gone", 2)
        saver.delete_thread("gone")
    with looking_at(path) as connection:
        for table, count in (("thread", 1), ("checkpoint", 0), ("write", 0), ("segment", 0)):
            assert connection.execute(f"SELECT count(*) FROM threadmark_{table}").fetchone() == (count,)
