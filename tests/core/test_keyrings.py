"""Keyrings that are read from a file or the environment, and the warnings about those that are not."""

import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from threadmark import ConfigError, CorruptDataError, Keyring, SaverProtocol, keyring_file
from threadmark import open as open_saver
from threadmark.sealing import cipher_of
from threadmark_conformance.engine import at, checkpoint

VARIABLE = "THREADMARK_TEST_KEYS"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agents.keys"
    keyring_file.make(path, "2026")
    return path


def put(saver: SaverProtocol, thread: str = "one") -> None:
    saver.put(at(thread), checkpoint({"a": "text " * 50}, {"a": 1}), {"source": "loop"}, {"a": 1})


def inline(name: str = "2026") -> Keyring:
    return Keyring({name: os.urandom(32)}, name, digest_secret=os.urandom(32))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_new_file_is_its_owners_alone_and_is_never_replaced(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(ConfigError, match="is there already, and is not replaced"):
        keyring_file.make(file, "2027")
    assert file.read_bytes() == before


def test_a_key_is_added_as_the_newest_and_the_old_ones_stay(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sealed.db'}"
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        put(saver)
    before = json.loads(file.read_text("utf-8"))
    link = tmp_path / "link"
    link.symlink_to(file)
    keyring_file.add(link, "2027")
    after = json.loads(file.read_text("utf-8"))
    assert after["newest"] == "2027"
    assert after["digest_secret"] == before["digest_secret"]
    assert after["keys"]["2026"] == before["keys"]["2026"]
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if ".db" not in path.name) == ["agents.keys", "link"]
    with pytest.raises(ConfigError, match="has a key '2027' already"):
        keyring_file.add(file, "2027")
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        put(saver, "two")
        assert not saver.verify().problems


@pytest.mark.parametrize("name", ["", "x" * 256, "two\nlines"])
def test_a_name_that_no_key_can_have_is_refused_before_a_file_is_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="the name of a key"):
        keyring_file.make(tmp_path / "keys", name)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_add_a_key_at_once_lose_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes when the first has read the file. Each may seal rows with its key as soon as it has added it."""
    urandom, said = os.urandom, list[str]()

    def second_comes(length: int) -> bytes:
        monkeypatch.setattr(os, "urandom", urandom)
        with pytest.raises(ConfigError, match=r"another process adds a key .*remove '.*agents\.keys\.next'") as refused:
            keyring_file.add(file, "second")
        said.append(str(refused.value))
        return urandom(length)

    monkeypatch.setattr(os, "urandom", second_comes)
    keyring_file.add(file, "first")
    assert len(said) == 1
    keyring_file.add(file, "second")
    assert {"first", "second"} <= keyring_file.parsed(file.read_text(), "it").keys.keys()
    with pytest.raises(ConfigError, match="already"):
        keyring_file.add(file, "second")
    keyring_file.add(file, "third")  # the refusal left nothing behind


def test_a_file_of_keys_has_its_name_on_the_disk_before_a_row_is_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(keyring_file, "sync_folder", lambda folder: synced.append([*map(str, Path(folder).iterdir())]))
    path = tmp_path / "agents.keys"
    keyring_file.make(path, "one")
    keyring_file.add(path, "two")
    assert synced == [[str(path)], [str(path)]]


def test_a_keyring_is_read_from_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=f"the environment variable {VARIABLE} is not set"):
        Keyring.from_env(VARIABLE)
    monkeypatch.setenv(VARIABLE, file.read_text("utf-8"))
    assert cipher_of(Keyring.from_env(VARIABLE)).digest_key == cipher_of(Keyring.from_file(file)).digest_key


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"keys": {"a": "zz"}, "newest": "a", "digest_secret": "00"}', "secret"]
)
def test_what_is_no_keyring_is_refused_and_not_quoted(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="should be JSON of this form") as refused:
        Keyring.from_file(path)
    assert "secret'" not in str(refused.value)
    monkeypatch.setenv(VARIABLE, text or " ")
    with pytest.raises(ConfigError, match="should be JSON of this form"):
        Keyring.from_env(VARIABLE)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.keys' cannot be read: No such file"):
        Keyring.from_file(tmp_path / "none.keys")


def test_a_keyring_that_opens_nothing_is_refused_before_anything_is_stored(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sealed.db'}"
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        put(saver)
    for other in (inline("2026"), inline("another")):
        with open_saver(url, keyring=other) as saver:
            for _ in range(2):
                with pytest.raises(ConfigError, match="does not hold the key that this database is sealed with"):
                    put(saver, "two")
            with pytest.raises(ConfigError, match="does not hold the key"):
                saver.put_writes(at("three", "", "1f1e4c77-0000-6000-8000-000000000000"), [("a", 1)], "task")
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        assert [each.id for each in saver.list_threads().threads] == ["one"]
        assert not saver.verify().problems


@pytest.mark.parametrize("owner", ["ada", "bob"])
@pytest.mark.parametrize("other", [None, inline("2026"), inline("another")], ids=["none", "differs", "another"])
def test_an_owners_view_stores_nothing_with_a_keyring_that_opens_nothing(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, other: Keyring | None, owner: str
) -> None:
    url = f"sqlite:///{tmp_path / 'sealed.db'}"
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        put(saver.for_owner("ada"))
    calls: list[Callable[[SaverProtocol], object]] = [
        lambda view: put(view, "two"),
        lambda view: view.create_thread("two", title="a secret"),
    ]
    for call in calls:
        with open_saver(url, keyring=other) as saver, pytest.raises(ConfigError, match="is sealed"):
            call(saver.for_owner(owner))
    assert warnings(caplog) == []
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        assert [thread.id for thread in saver.list_threads().threads] == ["one"]
        put(saver.for_owner(owner), "two")


@pytest.mark.parametrize("other", [None, inline("2026")], ids=["none", "another"])
def test_what_is_set_of_a_thread_is_stored_neither_in_clear_nor_with_other_keys(
    file: Path, tmp_path: Path, other: Keyring | None
) -> None:
    url = f"sqlite:///{tmp_path / 'sealed.db'}"
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        put(saver)
        before = saver.update_thread("one", title="a secret")
    calls: list[Callable[[SaverProtocol], object]] = [
        lambda saver: saver.create_thread("two", title="a secret"),
        # All four: this is how a damaged row is written again.
        lambda saver: saver.update_thread("one", owner=None, title="new", metadata={}, expires_at=None),
    ]
    for call in calls:
        with open_saver(url, keyring=other) as saver, pytest.raises(ConfigError, match="is sealed"):
            call(saver)
    if other:
        with open_saver(url, keyring=other) as saver, pytest.raises(CorruptDataError, match="not on the keyring"):
            saver.get_thread("one")
    with open_saver(url, keyring=Keyring.from_file(file)) as saver:
        assert saver.get_thread("one") == before
        assert saver.get_thread("two") is None


def test_a_new_database_under_keys_of_nowhere_is_warned_of_once(
    tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = inline()
    for name in ("a", "b"):
        with open_saver(f"sqlite:///{tmp_path / name}.db", keyring=keyring) as saver:
            put(saver)
            put(saver, "two")
    (warning,) = warnings(caplog)
    assert "if its keys are kept nowhere else, everything is lost when the program ends" in warning
    caplog.clear()
    named = Keyring({"a": os.urandom(32)}, "a", digest_secret=os.urandom(32), source="the vault")
    for number, silent in enumerate([Keyring.from_file(file), named]):
        with open_saver(f"sqlite:///{tmp_path / str(number)}.db", keyring=silent) as saver:
            put(saver)
    assert warnings(caplog) == []


def test_a_database_that_is_there_needs_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url, key, secret = f"sqlite:///{tmp_path / 'sealed.db'}", os.urandom(32), os.urandom(32)
    with open_saver(url, keyring=Keyring({"a": key}, "a", digest_secret=secret)) as saver:
        put(saver)
    caplog.clear()
    with open_saver(url, keyring=Keyring({"a": key}, "a", digest_secret=secret)) as saver:
        put(saver, "two")
    assert warnings(caplog) == []
