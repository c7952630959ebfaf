"""`threadmark keys` makes a file that the command and a program read, and never replaces one."""

import json
import stat
import sys
from pathlib import Path

import pytest

import threadmark
from cli.running import in_pipe, json_lines
from threadmark import Keyring


def test_a_new_file_opens_a_database_and_a_newer_key_seals_it_again(tmp_path: Path) -> None:
    keys, database = str(tmp_path / "agents.keys"), f"sqlite:///{tmp_path / 'agents.db'}"
    made = in_pipe("keys", "new", keys, "--name", "first")
    assert (made.code, made.out) == (0, f"made {keys}: the newest key is first\n")
    assert "if you lose the keys, you lose the data" in made.err
    assert stat.S_IMODE(Path(keys).stat().st_mode) == 0o600
    with threadmark.open(database, keyring=Keyring.from_file(keys)) as saver:
        saver.create_thread("one", title="a secret")
    listed = in_pipe("threads", database, "--keyring", keys)
    assert (listed.err, "a secret" in listed.out) == ("", True)
    assert "is sealed: give keyring=, the command --keyring FILE" in in_pipe("threads", database).err
    assert in_pipe("keys", "add", keys).code == 0
    assert in_pipe("reencrypt", database, "--keyring", keys, "--yes").out == "1 row encrypted\n"
    content = json.loads(Path(keys).read_text("utf-8"))
    del content["keys"]["first"]
    Path(keys).write_text(json.dumps(content), "utf-8")
    assert "a secret" in in_pipe("threads", database, "--keyring", keys).out


def test_without_the_package_that_encrypts_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "agents.keys"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cryptography.exceptions", None)
        refused = in_pipe("keys", "new", str(keys))
    assert (refused.code, "pip install 'threadmark[crypto]'" in refused.err, keys.exists()) == (2, True, False)
    assert in_pipe("keys", "new", str(keys)).code == 0


def test_keys_of_one_day_have_names_of_their_own(tmp_path: Path) -> None:
    keys = str(tmp_path / "agents.keys")
    names = [json_lines(in_pipe("keys", action, keys, "--json"))[0]["newest"] for action in ("new", "add", "add")]
    assert names == [names[0], f"{names[0]}-2", f"{names[0]}-3"]


@pytest.mark.parametrize("url", [None, "agents.db"])
def test_a_file_that_is_there_is_not_replaced(tmp_path: Path, url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if url:
        monkeypatch.setenv("THREADMARK_URL", url)
    keys = tmp_path / "agents.keys"
    keys.write_text("something else", "utf-8")
    refused = in_pipe("keys", "new", str(keys))
    assert refused.code == 2
    assert "is there already, and is not replaced" in refused.err
    assert "should be JSON of this form" in in_pipe("keys", "add", str(keys)).err
    assert keys.read_text("utf-8") == "something else"
    assert "cannot be read" in in_pipe("keys", "add", str(tmp_path / "none")).err


@pytest.mark.parametrize("lacking", [{"keys": {"2026": "00"}}, {"digest_secret": "00"}, {"newest": "2025"}])
def test_a_file_that_no_program_could_read_gets_no_key(tmp_path: Path, lacking: dict[str, object]) -> None:
    keys = tmp_path / "agents.keys"
    assert in_pipe("keys", "new", str(keys), "--name", "2026").code == 0
    keys.write_text(json.dumps(json.loads(keys.read_text("utf-8")) | lacking), "utf-8")
    before = keys.read_text("utf-8")
    assert in_pipe("keys", "add", str(keys)).code == 2
    assert keys.read_text("utf-8") == before


def test_a_key_without_a_name_is_refused(tmp_path: Path) -> None:
    assert "1 to 255 bytes" in in_pipe("keys", "new", str(tmp_path / "agents.keys"), "--name", "").err
    assert list(tmp_path.iterdir()) == []
