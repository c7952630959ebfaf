"""States on a file: damage to them, the statements of a save, and the worth of a ping."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from threadmark import CorruptDataError, Sessions, States
from threadmark.ids import new_id
from threadmark.types import SessionCheckpoint, SessionMetadata, StateInfo
from threadmark_sqlite import SqliteSaver


def _states(saver: SqliteSaver, saves: int) -> Sequence[StateInfo]:
    states = States(saver)
    for number in range(saves):
        states.save("thread", {"n": number, "text": f"{number} " * 200})
    return states.history("thread").states


def test_nothing_is_saved_after_a_state_that_is_missing(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        newest, *_ = _states(saver, 3)
    connection = sqlite3.connect(tmp_path / "x.db")
    assert connection.execute("DELETE FROM threadmark_checkpoint WHERE rank = ?", (newest.id,)).rowcount == 1
    connection.commit()
    connection.close()
    with SqliteSaver(tmp_path / "x.db") as saver:
        states = States(saver)
        about = SessionMetadata(session_id="thread", checkpoint_id=new_id())
        for call in (
            lambda: states.save("thread", 1),
            lambda: Sessions(saver).save(SessionCheckpoint(about, 1)),
            lambda: states.load("thread"),
            lambda: states.exists("thread"),
            lambda: states.exists("thread", newest.id),
            lambda: states.history("thread"),
            states.list,
            lambda: states.delete("thread", newest.id),
        ):
            with pytest.raises(CorruptDataError, match=r"checkpoints? (is|are)|missing"):
                call()
        assert saver.list_checkpoint_refs()[0].id < newest.id
        assert len(saver.list_checkpoint_refs()) == 2


def test_only_the_state_that_is_damaged_cannot_be_loaded(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        newest, middle, oldest = _states(saver, 3)
    connection = sqlite3.connect(tmp_path / "x.db")
    changed = "UPDATE threadmark_checkpoint SET header = header || x'00' WHERE rank = ?"
    assert connection.execute(changed, (middle.id,)).rowcount == 1
    connection.commit()
    connection.close()
    with SqliteSaver(tmp_path / "x.db") as saver:
        states = States(saver)
        with pytest.raises(CorruptDataError, match=middle.id):
            states.load("thread", middle.id)
        assert [states.load("thread", info.id)["n"] for info in (newest, oldest)] == [2, 0]
        assert [info.id for info in states.history("thread").states] == [newest.id, middle.id, oldest.id]


def test_a_history_tells_of_a_state_that_is_missing_from_it(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        newest, middle, _ = _states(saver, 3)
    connection = sqlite3.connect(tmp_path / "x.db")
    assert connection.execute("DELETE FROM threadmark_checkpoint WHERE rank = ?", (middle.id,)).rowcount == 1
    connection.commit()
    connection.close()
    with SqliteSaver(tmp_path / "x.db") as saver:
        page = States(saver).history("thread", limit=1)
        assert [info.id for info in page.states] == [newest.id]
        with pytest.raises(CorruptDataError, match="2 of 3 checkpoints are there"):
            States(saver).history("thread", limit=1, cursor=page.cursor)


def test_a_ping_makes_no_file(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "x.db") as saver:
        assert States(saver).ping() is True
        assert not (tmp_path / "x.db").exists()


def test_a_ping_of_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "a folder").mkdir()
    with SqliteSaver(tmp_path / "a folder") as saver:
        assert States(saver).ping() is False
