"""The report of a SQLite saver about its file."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from threadmark_sqlite import SqliteSaver, report


def test_a_report_says_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with SqliteSaver(path) as saver:
        saver.create_thread("one")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE orders (number)")
        found = saver.report()
        assert found == asyncio.run(saver.areport())
        assert (found.sqlite, found.durability, found.warnings) == (sqlite3.sqlite_version, "full", ())
        assert found.format is not None
        assert found.other_tables == ("orders",)
    assert found.bytes == path.stat().st_size
    with SqliteSaver(f"sqlite:///{path}?mode=ro") as reader:
        assert reader.report() == found


def test_a_report_makes_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with SqliteSaver(path) as saver:
        found = saver.report()
    assert (found.format, found.bytes, found.warnings) == (None, None, ())
    assert not path.exists()


def test_a_report_warns_of_what_may_lose_commits_or_wastes_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteSaver(tmp_path / "agents.db", durability="normal") as saver:
        saver.setup()
        (warning,) = saver.report().warnings
        assert "power cut" in warning
    path = tmp_path / "free.db"
    with closing(sqlite3.connect(path)) as connection:  # one that does not give its free pages back by itself
        connection.execute("CREATE TABLE large (bytes)")
        connection.execute("INSERT INTO large VALUES (zeroblob(1000000))")
        connection.commit()
        connection.execute("DROP TABLE large")
        connection.commit()
    monkeypatch.setattr(report, "_MANY_BYTES", 100_000)
    with SqliteSaver(path) as saver:
        saver.setup()
        (warning,) = saver.report().warnings
        assert "VACUUM" in warning
