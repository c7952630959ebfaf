"""Sources and targets that are named by a path or URL: in Python and on the command line."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite

import threadmark
from langgraph_checkpointer.command import reported_problem, run_command
from langgraph_checkpointer.theirs import channels, checkpoint, location, new_database, store, their_sqlite
from threadmark import ConfigError, Keyring, StoreError
from threadmark_langgraph import InMemorySaver, PostgresSaver, SqliteSaver, export, migrate, wrap
from threadmark_sqlite import SqliteSaver as Backend

PLACE = location("one")


def theirs_in(folder: Path) -> Any:
    """Put a thread into theirs.db, of LangGraph's saver; its config."""
    with their_sqlite(folder) as saver:
        return store(saver, PLACE, checkpoint({"m": "theirs"}))


def ours_in(folder: Path) -> Any:
    """Put a thread into ours.db, of our saver; its config."""
    with SqliteSaver(folder / "ours.db") as saver:
        config = store(saver, PLACE, checkpoint({"m": ("ours", 1)}))
        saver.put_writes(config, [("m", 1)], "task b", "path 1")
        saver.put_writes(config, [("m", 2)], "task a", "path 2")
        return config


def of_ours(database: Any, config: Any) -> Any:
    with (PostgresSaver if str(database).startswith("postgres") else SqliteSaver)(database) as saver:
        return channels(saver, config)


@pytest.mark.parametrize("names", [("{}/theirs.db", "{}/new.db"), ("sqlite:///{}/theirs.db", "sqlite:///{}/new.db")])
def test_langgraphs_database_moves_by_name(names: tuple[str, str], tmp_path: Path) -> None:
    config = theirs_in(tmp_path)
    source, target = (name.format(tmp_path) for name in names)
    assert migrate(source, target).checkpoints == 1
    assert of_ours(tmp_path / "new.db", config) == {"m": "theirs"}


def test_a_path_may_have_any_name(tmp_path: Path) -> None:
    config = theirs_in(tmp_path)
    folder = tmp_path / "a%20b ?#c"
    folder.mkdir()
    (tmp_path / "theirs.db").rename(folder / "old.db")
    assert migrate(folder / "old.db", folder / "new.db").checkpoints == 1
    assert of_ours(folder / "new.db", config) == {"m": "theirs"}


def test_a_database_moves_into_itself_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = theirs_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    for target in ("theirs.db", f"sqlite:///{tmp_path}/theirs.db"):
        migrate("theirs.db", target, dry_run=True)
        assert migrate("theirs.db", target).problems == []
    assert of_ours("theirs.db", config) == {"m": "theirs"}
    assert run_command(monkeypatch, "theirs.db", "theirs.db") == 0


def test_a_server_moves_into_itself_by_name(tmp_path: Path) -> None:
    url = new_database(tmp_path)
    with TheirPostgres.from_conn_string(url) as saver:
        saver.setup()
        config = store(saver, PLACE, checkpoint({"m": "theirs"}))
    assert migrate(url, url).checkpoints == 1
    assert migrate(url, url).already_there == 1
    assert of_ours(url, config) == {"m": "theirs"}


def test_ours_moves_from_a_file_to_a_server_and_stays_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, url = ours_in(tmp_path), new_database(tmp_path)
    assert run_command(monkeypatch, f"sqlite:///{tmp_path}/ours.db", url) == 0
    with PostgresSaver(url) as target:
        found = target.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"m": ("ours", 1)}
        assert found.pending_writes == [("task b", "m", 1), ("task a", "m", 2)]
    assert migrate(url, tmp_path / "back.db").checkpoints == 1
    assert of_ours(tmp_path / "back.db", config) == {"m": ("ours", 1)}


def test_plain_rows_move_to_sealed_ones(tmp_path: Path) -> None:
    config = ours_in(tmp_path)
    keyring = Keyring({"a": bytes(32)}, "a", digest_secret=bytes(32))
    with Backend(tmp_path / "ours.db") as source, Backend(tmp_path / "sealed.db", keyring=keyring) as target:
        assert migrate(source, target).checkpoints == 1
        assert channels(wrap(target), config) == {"m": ("ours", 1)}


def test_a_source_with_both_kinds_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = theirs_in(tmp_path)
    both = str(tmp_path / "theirs.db")
    migrate(both, both)
    with SqliteSaver(both) as saver:
        newer = store(saver, config, checkpoint({"m": "newer"}, 2))
    new = str(tmp_path / "new.db")
    with pytest.raises(ConfigError, match="LangGraph's saver and of Threadmark's"):
        migrate(both, new)
    assert run_command(monkeypatch, both, new) == 2
    assert "--from langgraph or --from threadmark" in reported_problem(capsys)
    assert run_command(monkeypatch, both, new, "--from", "langgraph") == 0
    capsys.readouterr()
    assert of_ours(new, PLACE) == {"m": "theirs"}
    assert run_command(monkeypatch, both, new, "--from", "threadmark") == 0
    capsys.readouterr()
    assert of_ours(new, newer) == {"m": "newer"}
    assert run_command(monkeypatch, new, str(tmp_path / "more.db"), "--from", "langgraph") == 2
    assert "holds no checkpoints of langgraph" in reported_problem(capsys)


def test_export_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, url = ours_in(tmp_path), new_database(tmp_path)
    ours, theirs = str(tmp_path / "ours.db"), str(tmp_path / "back.db")
    there = set(tmp_path.iterdir())
    assert run_command(monkeypatch, ours, theirs, "--export", "--dry-run") == 0
    assert set(tmp_path.iterdir()) == there
    assert run_command(monkeypatch, f"sqlite:///{ours}", theirs, "--export") == 0
    assert export(ours, url).checkpoints == 1
    with TheirSqlite.from_conn_string(theirs) as file, TheirPostgres.from_conn_string(url) as server:
        assert [channels(saver, config) for saver in (file, server)] == [{"m": ["ours", 1]}] * 2
    assert export(ours, ours).checkpoints == 1
    with TheirSqlite.from_conn_string(ours) as file:
        assert channels(file, config) == {"m": ["ours", 1]}


def test_a_database_that_only_threadmark_has_is_a_source_by_its_url(tmp_path: Path) -> None:
    pair = f"replicated:?primary=sqlite:///{tmp_path / 'one.db'}&secondary=sqlite:///{tmp_path / 'other.db'}"
    with threadmark.open(pair) as saver:
        config = store(wrap(saver), location("one"), checkpoint({"m": ["ours", 1]}))
    assert migrate(pair, tmp_path / "moved.db").checkpoints == 1
    assert export(pair, tmp_path / "back.db").checkpoints == 1
    with threadmark.open(f"sqlite:///{tmp_path / 'moved.db'}") as moved:
        assert channels(wrap(moved), config) == {"m": ["ours", 1]}


@pytest.mark.parametrize(
    ("source", "target", "options", "problem"),
    [
        ("ours.db", "theirs.db", [], "is it the wrong way round? The way back is threadmark_langgraph.export"),
        ("missing.db", "theirs.db", [], "'theirs.db' has LangGraph's checkpoints, and the source comes first"),
        ("empty.db", "theirs.db", [], "'theirs.db' has LangGraph's checkpoints, and the source comes first"),
        ("theirs.db", "ours.db", ["--export"], "Threadmark's database comes first"),
        ("missing.db", "theirs.db", ["--export"], "there is no file 'missing.db'"),
        ("ours.db", "redis://name:secret@host", ["--export"], "LangGraph has no saver for redis:..."),
        ("redis://name:secret@127.0.0.1:1", "ours.db", [], "Redis 127.0.0.1:1 could not be reached"),
        ("missing.db", "new.db", ["--from", "langgraph"], "there is no file 'missing.db'"),
        ("ours.db", "new.db", ["--from", "langgraph"], "holds no checkpoints of langgraph"),
    ],
)
def test_names_the_wrong_way_round_are_told_so(
    source: str,
    target: str,
    options: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs_in(tmp_path)
    ours_in(tmp_path)
    (tmp_path / "empty.db").touch()
    monkeypatch.chdir(tmp_path)
    there = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run_command(monkeypatch, source, target, *options) == 2
    told = reported_problem(capsys)
    assert problem in told
    assert "secret" not in told
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_savers_the_wrong_way_round_are_told_so() -> None:
    ours, theirs = InMemorySaver(), TheirMemory()
    with pytest.raises(ConfigError, match=r"give that saver second; the way back is threadmark_langgraph\.export"):
        migrate(ours, theirs)  # type: ignore[arg-type]  # the point of this test
    with pytest.raises(ConfigError, match=r"the other way is threadmark_langgraph\.migrate"):
        export(theirs, ours)  # type: ignore[arg-type]  # the same
    with pytest.raises(ConfigError, match=r"to another Threadmark saver it is threadmark_langgraph\.migrate"):
        export(ours, InMemorySaver())


def test_a_database_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    theirs_in(tmp_path)
    with sqlite3.connect(tmp_path / "theirs.db", isolation_level=None) as locked:
        locked.execute("PRAGMA locking_mode = EXCLUSIVE")
        locked.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"theirs\.db' cannot be read: database is locked"):
            migrate(tmp_path / "theirs.db", InMemorySaver())
    locked.close()
