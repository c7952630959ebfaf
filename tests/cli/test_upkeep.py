"""`migrate`, `export`, `backup`, `reencrypt`, `setup`, `upgrade` and `ddl`: databases as a whole."""

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sqlite_next_format
import threadmark
from cli.databases import STEPS, URLS, answering, config, fill, sizes, values
from cli.langgraphs import PLACES, graph, say, sqlite_place
from postgres.cluster import shared
from threadmark_cli.backup import back_up
from threadmark_cli.exits import DONE, FAILED, MISSING, REFUSED, USAGE, WRONG
from threadmark_cli.main import run
from threadmark_cli.settings import URL_VARIABLE

_KEYS = {"2025": "11" * 32, "2026": "22" * 32}


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A file of ours with two threads."""
    path = tmp_path / "agents.db"
    with threadmark.open(f"sqlite:///{path}") as saver:
        fill(saver)
        fill(saver, "two", 1)
    return path


def _keyring(path: Path, *keys: str) -> Path:
    """A file with keys, of which the last is the newest."""
    content = {"newest": keys[-1], "keys": {key: _KEYS[key] for key in keys}, "digest_secret": "33" * 32}
    path.write_text(json.dumps(content))
    path.chmod(0o600)
    return path


def ends(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """Run a command, which ends with this code. Returns its output: stdout, or stderr if it failed."""
    capsys.readouterr()
    ended = run([*map(str, arguments)])
    printed = capsys.readouterr()
    assert ended == code, printed.err
    assert "Traceback" not in printed.err
    return printed.out if code in (DONE, WRONG) else printed.err


@pytest.mark.parametrize("opened", PLACES, ids=["sqlite", "postgres"])
def test_migrate_and_export_move_there_and_back(
    opened: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    place = opened(folder)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
        count = len(list(theirs.list(None)))
    target = tmp_path / "ours.db"
    before = place.content()
    dry = json.loads(ends(capsys, DONE, "migrate", place.url, target, "--dry-run", "--json"))
    assert (dry["checkpoints"], dry["dry_run"], dry["problems"]) == (count, True, [])
    assert f"{count} checkpoints with" in ends(capsys, DONE, "migrate", place.url, target)
    assert place.content() == before
    assert sizes(f"sqlite:///{target}") == {"one": count}
    monkeypatch.setenv(URL_VARIABLE, str(target))
    assert f"{count} already there" in ends(capsys, DONE, "migrate", place.url)  # into the one that is set
    back = tmp_path / "back.db"
    found = json.loads(ends(capsys, DONE, "export", "--to", back, "--json"))
    assert found["checkpoints"] == count
    with closing(sqlite3.connect(back)) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (count,)


def test_migrate_says_what_it_could_not_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
    place.replace("one", "msgpack", b"\xc1")
    assert "not moved: it cannot be read" in ends(capsys, WRONG, "migrate", place.url, tmp_path / "ours.db")


def test_migrate_says_what_is_wrong_with_its_arguments(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([ours], [ours, "b", "c"], []):
        assert "two databases" in ends(capsys, USAGE, "migrate", *arguments) or not arguments
    assert "Usage: threadmark migrate [OPTIONS] SOURCE [TARGET]\n" in ends(capsys, DONE, "migrate", "--help")
    assert "names no class" in ends(capsys, USAGE, "migrate", ours, "b.db", "--allow", "text")
    assert "no file" in ends(capsys, FAILED, "migrate", ours.parent / "none.db", ours.parent / "new.db")
    assert "no file" in ends(capsys, FAILED, "export", ours.parent / "none.db", "--to", ours.parent / "new.db")
    assert "no checkpoints of langgraph" in ends(capsys, USAGE, "migrate", ours, "b.db", "--from", "langgraph")
    assert f"{STEPS + 1} checkpoints" in ends(
        capsys, DONE, "migrate", ours, ours.parent / "copy.db", "--from", "threadmark"
    )


def test_a_move_shows_how_far_it_has_come_in_a_terminal(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
    ran = answering(["migrate", place.url, str(tmp_path / "ours.db")], answer=b"", after="Moving checkpoints")
    assert ran.code == DONE
    assert "Moving checkpoints" in ran.screen
    assert "0 not moved" in ran.screen.splitlines()[-1]


def test_export_writes_a_thread_as_json_lines(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in ends(capsys, DONE, "export", ours, "one", "two").splitlines()]
    assert [(each["thread"], each["step"]) for each in lines] == [*(("one", step) for step in range(STEPS)), ("two", 0)]
    assert [each["parent"] for each in lines[1:STEPS]] == [each["id"] for each in lines[: STEPS - 1]]
    assert lines[1]["values"] == {"count": 1, "log": ["step 0", "step 1"]}
    assert lines[STEPS - 1]["writes"] == [{"task": "a-task", "channel": "count", "value": 99}]
    assert "no thread 'nobody'" in ends(capsys, MISSING, "export", ours, "one", "nobody")
    assert capsys.readouterr().out == ""
    assert "Name the threads" in ends(capsys, USAGE, "export", ours)
    assert "name none" in ends(capsys, USAGE, "export", ours, "one", "--to", "x.db")
    assert "--dry-run is for --to" in ends(capsys, USAGE, "export", ours, "one", "--dry-run")


def test_export_names_a_damaged_checkpoint_and_goes_on(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute("UPDATE threadmark_checkpoint SET metadata = '{}' WHERE number = 2")
    lines = [json.loads(line) for line in ends(capsys, WRONG, "export", ours, "one").splitlines()]
    assert ["problem" in each for each in lines] == [False, True, *[False] * (STEPS - 2)]


def test_a_damaged_thread_is_named_and_the_others_are_listed_and_pruned(
    ours: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute("UPDATE threadmark_thread SET title = 'another' WHERE thread_id = 'two'")
        connection.execute("UPDATE threadmark_checkpoint SET metadata = 'x' WHERE thread = 2")
    listed = [json.loads(line) for line in ends(capsys, DONE, "threads", ours, "--json").splitlines()]
    assert {each["id"]: bool(each["problems"]) for each in listed} == {"one": False, "two": True}
    assert {each["id"]: each["title"] for each in listed}["two"] is None
    pruned = json.loads(ends(capsys, WRONG, "prune", ours, "--all", "--yes", "--json"))
    assert (pruned["threads"], pruned["checkpoints"]) == (1, STEPS - 1)
    assert ["'two'" in each["location"] for each in pruned["problems"]] == [True]


def test_a_move_may_go_to_a_sealed_database(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keyring, target = _keyring(ours.parent / "keys", "2026"), ours.parent / "sealed.db"
    ends(capsys, DONE, "migrate", ours, target, "--keyring", keyring)
    assert ends(capsys, DONE, "threads", target, "--keyring", keyring).count("\n") == 3
    assert b"step 1" not in target.read_bytes()
    back = json.loads(
        ends(capsys, DONE, "export", target, "--to", ours.parent / "b.db", "--keyring", keyring, "--json")
    )
    assert back["checkpoints"] == STEPS + 1
    assert "leave --owner out" in ends(capsys, USAGE, "migrate", ours, target, "--owner", "lee")


def test_a_backup_is_of_one_moment_while_others_write(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{ours}"
    ours.chmod(0o640)
    stop = threading.Event()

    def write() -> None:
        with threadmark.open(url, durability="normal") as saver:
            number = 0
            while not stop.is_set():
                fill(saver, f"busy{number % 5}", 3)
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports: list[tuple[int, int]] = []
        copies = [ours.parent / f"copy{number}.db" for number in range(3)]
        for copy in copies:
            back_up(ours, copy, lambda *report: reports.append(report))
    finally:
        stop.set()
        writer.join()
    assert reports[-1][0] == reports[-1][1] > 0
    for copy in copies:
        with threadmark.open(f"sqlite:///{copy}?mode=ro") as saver:
            assert saver.verify().problems == []
        assert sizes(f"sqlite:///{copy}").items() >= {"one": STEPS, "two": 1}.items()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o640
    last = json.loads(ends(capsys, DONE, "backup", ours, ours.parent / "last.db", "--json"))
    assert last["bytes"] == (ours.parent / "last.db").stat().st_size
    assert sizes(f"sqlite:///{ours.parent / 'last.db'}") == sizes(url)


def test_a_backup_replaces_nothing_and_leaves_nothing_half_done(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = ours.parent / "taken.db"
    taken.write_text("mine")
    assert "there already" in ends(capsys, REFUSED, "backup", ours, taken)
    assert taken.read_text() == "mine"
    assert "no folder" in ends(capsys, FAILED, "backup", ours, ours.parent / "nowhere" / "copy.db")
    assert "no file" in ends(capsys, FAILED, "backup", ours.parent / "none.db", ours.parent / "copy.db")
    (ours.parent / "text.db").write_text("no database " * 100)
    assert "cannot be copied" in ends(capsys, FAILED, "backup", ours.parent / "text.db", ours.parent / "copy.db")
    before = sorted(ours.parent.iterdir())

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(ours, ours.parent / "copy.db", interrupt)
    assert sorted(ours.parent.iterdir()) == before


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_backup_gets_no_place_next_to_the_log_of_another_database(
    ours: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = ours.parent / "copy.db"
    log = ours.parent / f"copy.db{suffix}"
    log.write_bytes(b"commits of a database that was removed")  # SQLite would read them as those of the copy
    assert f"'{log}' is there, left by another database" in ends(capsys, REFUSED, "backup", ours, copy)
    assert log.exists()
    assert not copy.exists()
    log.unlink()
    ends(capsys, DONE, "backup", ours, copy)


@pytest.mark.parametrize(
    ("url", "tool"), [("postgresql://host/db", "pg_dump"), ("redis://host", "--rdb"), ("memory:", "no file")]
)
def test_other_databases_have_tools_of_their_own(url: str, tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool in ends(capsys, REFUSED, "backup", "--url", url, "copy.db")


def test_reencrypt_seals_and_changes_the_key(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, both = _keyring(ours.parent / "old", "2025"), _keyring(ours.parent / "both", "2025", "2026")
    new = _keyring(ours.parent / "new", "2026")
    assert "no keyring" in ends(capsys, USAGE, "reencrypt", ours)
    assert "--yes" in ends(capsys, REFUSED, "reencrypt", ours, "--keyring", old, "--plain", "seal")
    rows = json.loads(ends(capsys, DONE, "reencrypt", ours, "--keyring", old, "--plain", "seal", "--yes", "--json"))
    assert rows["rows"] > STEPS
    ends(capsys, DONE, "threads", ours, "--keyring", old)
    ends(capsys, MISSING, "reencrypt", ours, "nobody", "--keyring", both)
    assert ends(capsys, DONE, "reencrypt", ours, "--keyring", both).endswith(" rows encrypted\n")
    assert ends(capsys, DONE, "reencrypt", ours, "--keyring", both) == "0 rows encrypted\n"
    assert json.loads(ends(capsys, DONE, "export", ours, "two", "--keyring", new))["values"]["count"] == 0


@pytest.fixture(params=[*URLS])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that has nothing yet."""
    with URLS[request.param](tmp_path) as url:
        yield url


def test_setup_makes_what_a_saver_needs(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert ends(capsys, DONE, "setup", empty).startswith("ready: ")
    with threadmark.open(empty) as saver:
        assert saver.has_tables()
    for layout in (("--partitions", "2"), ("--distribute", "citus")):
        with_layout = ends(capsys, DONE if empty.startswith("postgres") else USAGE, "setup", empty, *layout)
        assert ("ready" in with_layout) == empty.startswith("postgres")


def test_upgrade_has_nothing_to_do_in_the_newest_format(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    ends(capsys, DONE, "setup", empty)
    assert ends(capsys, DONE, "upgrade", empty).startswith("nothing to upgrade: every process writes format 1")
    found = json.loads(ends(capsys, DONE, "upgrade", empty, "--json"))
    assert (found["before"], found["after"]) == (1, 1)


def test_upgrade_asks_before_it_refuses_processes_of_the_earlier_release(
    ours: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_next_format.install(monkeypatch)
    ends(capsys, DONE, "setup", ours)
    doctor = ends(capsys, DONE, "doctor", ours)
    assert "format 2, written as format 1, readable from format 1 on" in doctor
    assert "when no process older than 0.2.0 is left: `threadmark upgrade`" in doctor
    asked = ends(capsys, REFUSED, "upgrade", ours)
    assert "Processes older than 0.2.0 will be refused" in asked
    assert ends(capsys, DONE, "upgrade", ours, "--yes") == (
        "upgraded from format 1 to 2: processes older than 0.2.0 are refused\n"
    )
    assert "format 2, " in ends(capsys, DONE, "doctor", ours)
    monkeypatch.undo()
    assert "upgrade threadmark-sqlite" in ends(capsys, FAILED, "update", ours, "one", "--title", "late")


def test_setup_parts_tables_of_postgres(capsys: pytest.CaptureFixture[str]) -> None:
    url = shared().database("setupparts")
    assert json.loads(ends(capsys, DONE, "setup", url, "--partitions", "3", "-o", "schema=agents", "--json"))["ready"]
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r' AND relname ~ '^threadmark_segment'"
        )
        assert found.fetchone() == (3,)


def test_ddl_prints_what_setup_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, scripted = tmp_path / "made.db", tmp_path / "scripted.db"
    ends(capsys, DONE, "setup", made)
    script = ends(capsys, DONE, "ddl", "sqlite://")
    assert json.loads(ends(capsys, DONE, "ddl", "sqlite://", "--json"))["sql"] == script
    with closing(sqlite3.connect(scripted)) as connection:
        connection.executescript(script)
    assert _schema(made) == _schema(scripted)
    with threadmark.open(f"sqlite:///{scripted}") as saver:
        fill(saver)
        assert saver.verify().problems == []

    url = shared().database("ddl")
    with psycopg.connect(url) as connection:
        connection.execute(ends(capsys, DONE, "ddl", "postgresql://", "-o", "schema=agents").encode())
    with threadmark.open(url, schema="agents") as saver:
        assert saver.has_tables()
        fill(saver)
    assert "CREATE TABLE threadmark_checkpoint" not in ends(capsys, DONE, "ddl", "postgresql://", "--since", "1")
    assert "PARTITION BY" in ends(capsys, DONE, "ddl", "postgresql://", "--partitions", "2")
    assert "since must be" in ends(capsys, USAGE, "ddl", "sqlite://", "--since", "99")
    assert "no tables" in ends(capsys, REFUSED, "ddl", "redis://host")
    assert "create_distributed_table" in ends(capsys, DONE, "ddl", "postgresql://", "--distribute", "citus")
    for layout in (("--partitions", "2"), ("--distribute", "citus")):
        assert "whose tables can be divided" in ends(capsys, USAGE, "ddl", "sqlite://", *layout)


def _schema(path: Path) -> Any:
    """The tables and indexes of a file, each as it was defined, and the file's pragmas."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        pragmas = ("application_id", "user_version", "auto_vacuum", "journal_mode")
        return [(name, sql and " ".join(sql.split())) for name, sql in tables], [
            connection.execute(f"PRAGMA {each}").fetchone() for each in pragmas
        ]


def test_a_missing_file_is_made_by_setup_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["prune", tmp_path / "none.db", "--all", "--yes"], ["fork", tmp_path / "none.db", "one"]):
        assert "there is no file" in ends(capsys, FAILED, *arguments)
    assert list(tmp_path.iterdir()) == []
    assert values(f"sqlite:///{tmp_path / 'none.db'}", "one") is None
    assert config("one")["configurable"]["thread_id"] == "one"
