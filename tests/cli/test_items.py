"""`items`, and the items of stores in `verify`, `stats`, `migrate`, `export` and `backup`."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.sqlite import SqliteStore as LangGraphsStore

import threadmark
from cli.databases import URLS, fill
from cli.langgraphs import graph, say, sqlite_place
from cli.running import in_pipe
from threadmark_cli.exits import DONE, MISSING, REFUSED, USAGE, WRONG
from threadmark_cli.main import run
from threadmark_store import SqliteStore, Store

VALUES: dict[tuple[str, ...], dict[str, Any]] = {
    ("users", "ada"): {"diet": {"kind": "vegetarian"}, "at": {"pair": (1, 2)}},
    ("users", "bob"): {"diet": {"kind": "any"}},
    ("notes",): {"n": {"text": "a\x1b[31m"}},
}


def _fill_store(store: Any) -> None:
    for namespace, items in VALUES.items():
        for key, value in items.items():
            store.put(namespace, key, value)


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind with a thread and items."""
    with URLS[request.param](tmp_path) as found:
        with threadmark.open(found) as saver:
            fill(saver)
            _fill_store(Store(saver))
        yield found


@pytest.fixture
def ours(tmp_path: Path) -> str:
    """A file with items."""
    path = str(tmp_path / "ours.db")
    with SqliteStore.from_conn_string(path) as store:
        _fill_store(store)
    return path


def _ends(code: int, *arguments: str) -> str:
    ran = in_pipe(*arguments)
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    return ran.out if code in (DONE, WRONG) else ran.err


def _records(*arguments: str, code: int = DONE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _ends(code, *arguments, "--json").splitlines()]


def test_items_are_listed_shown_counted_and_removed(url: str) -> None:
    listed = _records("items", url)
    assert [(each["namespace"], each["key"]) for each in listed] == [
        (["notes"], "n"),
        (["users", "bob"], "diet"),
        (["users", "ada"], "at"),
        (["users", "ada"], "diet"),
    ]
    assert listed[0]["value"] == {"text": "a\x1b[31m"}
    assert "\x1b" not in _ends(DONE, "items", url)
    assert [each["key"] for each in _records("items", url, "users", "-n", "2")] == ["diet", "at"]
    assert _ends(DONE, "items", url, "--namespaces").splitlines() == ["notes", "users.ada", "users.bob"]
    assert 'kind: "vegetarian"' in _ends(DONE, "items", url, "users.ada", "diet")
    assert "no item 'none' in namespace 'users.ada'" in _ends(MISSING, "items", url, "users.ada", "none")
    assert ", 4 items: all as written" in _ends(DONE, "verify", url, "--decode")
    assert (_records("stats", url)[0]["items"]["items"], _records("stats", url, "one")[0]["items"]) == (4, None)
    assert "would delete namespace 'users': 3 items" in _ends(DONE, "items", url, "users", "--delete", "--dry-run")
    assert "--yes" in _ends(REFUSED, "items", url, "users", "--delete")
    assert "deleted item 'diet'" in _ends(DONE, "items", url, "users.bob", "diet", "--delete", "--yes")
    assert "deleted namespace 'users': 2 items" in _ends(DONE, "items", url, "users", "--delete", "--yes")
    assert "no item in namespace 'users'" in _ends(MISSING, "items", url, "users", "--delete", "--yes")
    assert [each["key"] for each in _records("items", url)] == ["n"]


def test_a_copy_by_backup_and_by_migrate_has_the_items(ours: str, tmp_path: Path) -> None:
    copies = [str(tmp_path / name) for name in ("backup.db", "moved.db")]
    for command, copy in zip(("backup", "migrate"), copies, strict=True):
        _ends(DONE, command, ours, copy)
        assert _records("items", copy) == _records("items", ours)
        assert "4 items: all as written" in _ends(DONE, "verify", copy, "--decode")
    assert "0 items, 4 already there" in _ends(DONE, "migrate", ours, copies[1])


def test_items_of_langgraphs_store_come_and_go_with_its_threads(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    place = sqlite_place(folder)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
    path = place.url.removeprefix("sqlite:///")
    with LangGraphsStore.from_conn_string(path) as store:
        store.put(("users",), "a", {"n": 1})
    before = place.content()
    target, back = str(tmp_path / "new.db"), str(tmp_path / "back.db")
    assert _records("migrate", path, target, "--dry-run")[0]["items"][0]["items"] == 1
    assert not Path(target).exists()
    moved = _records("migrate", path, target)[0]
    assert (moved["threads"], moved["items"]) == (1, [{"items": 1, "already_there": 0, "newer": 0, "problems": []}])
    assert place.content() == before
    assert _records("migrate", path, path, "--from", "langgraph")[0]["items"][0]["items"] == 1  # into the same file
    assert [each["key"] for each in _records("items", path)] == ["a"]
    for how in (["--dry-run"], []):
        assert _records("export", target, "--to", back, *how)[0]["items"][0]["items"] == 1
    with closing(sqlite3.connect(back)) as file:
        assert file.execute("SELECT prefix, key FROM store").fetchall() == [("users", "a")]


def test_what_became_of_threads_is_told_if_their_items_cannot_move(tmp_path: Path) -> None:
    keyring = threadmark.Keyring({"k": bytes(32)}, "k", digest_secret=bytes(32), source="the test")
    with threadmark.open(f"sqlite:///{tmp_path / 'sealed.db'}") as saver:
        fill(saver)
    with threadmark.open(f"sqlite:///{tmp_path / 'sealed.db'}", keyring=keyring) as saver:
        _fill_store(Store(saver))
    ran = in_pipe("migrate", str(tmp_path / "sealed.db"), str(tmp_path / "new.db"))
    assert "is sealed: give keyring=" in ran.err
    assert "checkpoints with" in ran.out


def test_a_file_with_items_alone_moves_and_a_value_beyond_json_stays(ours: str, tmp_path: Path) -> None:
    theirs, new = str(tmp_path / "theirs.db"), str(tmp_path / "new.db")
    assert "it has types that JSON has not" in _ends(WRONG, "export", ours, "--to", theirs).replace("its value", "it")
    with LangGraphsStore.from_conn_string(str(tmp_path / "alone.db")) as store:
        store.setup()
        _fill_store(store)
    assert "4 items, 0 already there, 0 problems" in _ends(DONE, "migrate", str(tmp_path / "alone.db"), new)


def test_damage_is_shown_and_ends_with_1(ours: str) -> None:
    with closing(sqlite3.connect(ours)) as file, file:
        file.execute("UPDATE threadmark_store_item SET checksum = 0 WHERE key = 'n'")
    assert [each["location"] for each in _records("verify", ours, code=WRONG)] == ["item 'n' of namespace 'notes'"]
    assert "its check do not belong together" in _ends(WRONG, "items", ours)
    assert "problem" in _records("items", ours, "notes", "n", code=WRONG)[0]


def test_an_owner_sees_and_removes_own_items(tmp_path: Path) -> None:
    path = str(tmp_path / "owned.db")
    with threadmark.open(f"sqlite:///{path}") as saver:
        for owner in ("ada", "eve"):
            Store(saver.for_owner(owner)).put(("notes", owner), "k", {"n": 1})
    own = ["--owner", "eve"]
    assert [each["owner"] for each in _records("items", path, *own)] == ["eve"]
    assert _ends(DONE, "items", path, "--namespaces", *own) == "notes.eve\n"
    assert "no item" in _ends(MISSING, "items", path, "notes.ada", "k", *own)
    assert "1 item: all" in _ends(DONE, "verify", path, *own)
    assert _records("items", path, "notes", "--delete", "--yes", *own)[0]["items"] == 1
    assert [each["owner"] for each in _records("items", path)] == ["ada"]


def test_wrong_arguments_and_databases_are_refused(ours: str, tmp_path: Path) -> None:
    assert "for --delete" in _ends(USAGE, "items", ours, "--dry-run")
    assert "Name the NAMESPACE" in _ends(USAGE, "items", ours, "--delete")
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
    assert "`threadmark migrate` copies its items" in _ends(REFUSED, "items", place.url)


def test_without_the_package_the_command_says_so(ours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "threadmark_store"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "threadmark_store", None)
    assert "pip install 'threadmark[store]'" in _ends(USAGE, "items", ours)
    for command in ("verify", "stats"):
        ran = in_pipe(command, ours)
        assert (ran.code, "items are left out" in ran.err) == (DONE, True)
    assert run(["--help"]) == DONE
