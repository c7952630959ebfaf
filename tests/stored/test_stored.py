"""Databases that earlier releases wrote stay readable, and can be written on."""

import shutil
from pathlib import Path

import pytest

from damage import fill
from threadmark import MemorySaver
from threadmark_sqlite import SqliteSaver

DATABASES = sorted(Path(__file__).parent.glob("*.sqlite"))


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
def test_an_old_database_reads_as_it_was_written(database: Path, tmp_path: Path) -> None:
    expected = fill(MemorySaver())
    path = tmp_path / database.name
    shutil.copy(database, path)
    with SqliteSaver(path) as saver:
        found = {tuple(item.config["configurable"].values()): item for item in saver.list(None)}
        assert found == expected
        assert saver.verify().problems == []
        newest = next(iter(saver.list(None)))
        saver.put_writes(newest.config, [("late", 1)], "late task")
        assert ("late task", "late", 1) in (next(iter(saver.list(None))).pending_writes or [])


def test_there_is_a_database_of_every_format() -> None:
    assert DATABASES
