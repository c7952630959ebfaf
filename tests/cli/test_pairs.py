"""Commands on a pair of databases, or on a database behind a cache, which one URL names."""

from pathlib import Path
from urllib.parse import quote

import pytest

import threadmark
from cli.running import in_pipe, json_lines
from replication.lines import put
from threadmark.replication import ReplicatedSaver
from threadmark_cli.settings import is_url
from threadmark_sqlite import SqliteSaver


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """The URL of two SQLite files with a thread."""
    url = _url(tmp_path)
    with threadmark.open(url) as saver:
        assert isinstance(saver, ReplicatedSaver)
        for number in (1, 2):
            put(saver, number)
    return url


def _url(folder: Path, *names: str) -> str:
    first, second = (quote(f"sqlite:///{folder}/{name}.db", safe="") for name in names or ("one", "two"))
    return f"replicated:?primary={first}&secondary={second}"


READING = ["threads", "log thread", "show thread", "verify", "stats", "doctor", "export thread"]


@pytest.mark.parametrize("command", READING)
def test_a_pair_is_read_by_its_url(command: str, pair: str) -> None:
    name, *rest = command.split()
    ran = in_pipe(name, pair, *rest)
    assert (ran.code, ran.err) == (0, "")
    assert in_pipe("--url", pair, name, *rest).code == 0


def test_a_pair_is_changed_in_both_databases(pair: str, tmp_path: Path) -> None:
    assert in_pipe("delete", pair, "thread", "--yes").code == 0
    for name in ("one", "two"):
        with SqliteSaver(tmp_path / f"{name}.db") as saver:
            assert saver.list_threads().threads == []


def test_doctor_reports_on_each_database_and_takes_none_for_langgraphs(pair: str, tmp_path: Path) -> None:
    cached = f"cached:?saver={quote(f'sqlite:///{tmp_path}/one.db', safe='')}&cache=memory:"
    for url, files in ((pair, ["one.db", "two.db"]), (cached, ["one.db"])):
        findings = json_lines(in_pipe("doctor", url, "--json"))
        reports = [str(each["finding"]) for each in findings if each["check"] == "database"]
        assert [text.partition(": ")[0].rpartition("/")[2] for text in reports] == files
        assert "LangGraph" not in str(findings)


@pytest.mark.parametrize("command", ["threads", "delete"])
def test_a_database_of_a_pair_that_is_missing_is_not_made(command: str, pair: str, tmp_path: Path) -> None:
    (tmp_path / "two.db").unlink()
    ran = in_pipe(command, pair, *(["thread", "--yes"] if command == "delete" else []))
    assert ran.code == 5
    assert f"there is no file '{tmp_path}/two.db'" in ran.err
    assert not (tmp_path / "two.db").exists()


def test_a_pair_without_tables_gets_none_by_reading(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.db").touch()
    ran = in_pipe("threads", _url(tmp_path))
    assert (ran.code, (tmp_path / "one.db").stat().st_size) == (5, 0)
    assert f"sqlite:///{tmp_path}/one.db has no tables of Threadmark: `threadmark setup` makes them" in ran.err
    assert in_pipe("setup", _url(tmp_path)).code == 0
    assert in_pipe("threads", _url(tmp_path)).code == 0


@pytest.mark.parametrize("command", [["ddl"], ["backup", "copy.db"]])
def test_what_is_about_one_database_says_so(command: list[str], pair: str) -> None:
    ran = in_pipe("--url", pair, *command)
    assert ran.code == 4
    assert "name one database" in ran.err


def test_a_url_of_a_saver_is_no_path() -> None:
    for url in ("memory:", "cached:?saver=memory:&cache=memory:", "replicated:?primary=a&secondary=b", "odd://x"):
        assert is_url(url)
    for path in ("agents.db", "/data/agents.db", r"C:\data\agents.db", "at 10:30.db"):
        assert not is_url(path)


def test_no_password_of_a_pair_is_shown() -> None:
    sides = [quote(f"postgresql://me:hunter2@localhost:1/{name}", safe="") for name in "ab"]
    ran = in_pipe("threads", f"replicated:?primary={sides[0]}&secondary={sides[1]}")
    assert ran.code == 5
    assert "hunter2" not in ran.out + ran.err
