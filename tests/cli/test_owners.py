"""`--owner`: every command keeps to that owner's threads, or refuses it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import threadmark
from cli.databases import config, fill
from cli.running import in_pipe
from threadmark_cli.exits import USAGE
from threadmark_cli.main import COMMANDS
from threadmark_store import Store

TITLE = "what Ada tells nobody"
TRIED: Mapping[str, Sequence[str]] = {
    "threads": [],
    "log": ["adas"],
    "show": ["adas"],
    "diff": ["adas"],
    "blame": ["adas", "log"],
    "search": ["adas", "step"],
    "items": ["adas", "--delete", "--yes"],
    "effects": ["adas", "--state", "all"],
    "stats": [],
    "verify": ["--repair"],
    "doctor": [],
    "fork": ["adas", "--as", "stolen"],
    "restore": ["adas", "--at", "1"],
    "copy": ["adas", "stolen"],
    "rename": ["adas", "stolen"],
    "update": ["adas", "--set-owner", "eve"],
    "delete": ["adas", "--yes"],
    "prune": ["--all", "--yes"],
    "retention": ["--idle-for", "1s", "--yes"],
    "setup": [],
    "ddl": [],
}
"""The arguments that an attacker would try with each command."""
REFUSES: Mapping[str, Sequence[str]] = {
    "reencrypt": ["--plain", "seal", "--yes", "--keyring", "keys.json"],
    "migrate": ["--dry-run"],
    "export": ["--to"],
    "backup": [],
    "upgrade": ["--yes"],
}
"""Commands that are about the whole database, with their arguments; the copy's name comes behind it."""


def test_each_command_has_been_judged() -> None:
    judged = {*TRIED, *REFUSES, "serve", "keys"}  # the page's own tests have `serve --owner`; `keys` opens no database
    assert judged == COMMANDS.keys()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key = '"' + "ab" * 32 + '"'
    text = f'{{"keys": {{"a": {key}}}, "newest": "a", "digest_secret": {key}}}'
    (tmp_path / "keys.json").write_text(text, encoding="utf-8")
    (tmp_path / "keys.json").chmod(0o600)
    path = tmp_path / "agents.db"
    with threadmark.open(f"sqlite:///{path}") as saver:
        fill(saver.for_owner("ada"), "adas")
        saver.update_thread("adas", title=TITLE)
        fill(saver.for_owner("eve"), "eves", steps=1)
        Store(saver.for_owner("ada")).put(("adas",), "k", {"title": TITLE})
    return path


def state(path: Path) -> object:
    with threadmark.open(f"sqlite:///{path}") as saver:
        items = Store(saver).search(())
        return list(saver.list({"configurable": {"thread_id": "adas"}})), saver.get_thread("adas"), items


@pytest.mark.parametrize("command", TRIED)
def test_a_command_keeps_to_the_threads_of_the_owner(command: str, database: Path) -> None:
    before = state(database)
    for output in ([], ["--json"]):
        ran = in_pipe(command, str(database), *TRIED[command], "--owner", "eve", *output)
        assert ran.code != USAGE, ran.err
        assert TITLE not in ran.out + ran.err
        assert "step 3" not in ran.out + ran.err
        assert "Traceback" not in ran.err
    assert state(database) == before
    with threadmark.open(f"sqlite:///{database}") as saver:
        assert saver.get(config("stolen")) is None


@pytest.mark.parametrize("command", REFUSES)
def test_a_command_of_the_whole_database_refuses_an_owner(command: str, database: Path, tmp_path: Path) -> None:
    before = state(database)
    copy = [] if command in ("reencrypt", "upgrade") else [str(tmp_path / "copy.db")]
    ran = in_pipe(command, str(database), *REFUSES[command], *copy, "--owner", "eve")
    assert ran.code == USAGE
    assert "owner" in ran.err or "'eve'" in ran.err
    assert not (tmp_path / "copy.db").exists()
    assert state(database) == before
