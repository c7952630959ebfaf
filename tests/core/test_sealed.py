"""Encryption at rest: nothing of a value is readable, nothing foreign is accepted, and keys can be replaced."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from threadmark import ConfigError, CorruptDataError, MemorySaver, new_id
from threadmark.sealing import Keyring
from threadmark_sqlite import SqliteSaver

OLD, NEW, SECRET = os.urandom(32), os.urandom(32), os.urandom(32)
THREAD: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
WORDS = "Words that must not be seen in the file. "
TABLES = ("threadmark_segment", "threadmark_checkpoint", "threadmark_write")


def ring(*names: str) -> Keyring:
    keys = {"old": OLD, "new": NEW}
    return Keyring({name: keys[name] for name in names}, names[-1], digest_secret=SECRET)


def fill(saver: SqliteSaver) -> dict[str, Any]:
    config: Any = THREAD
    for step in range(5):
        values = {"text": WORDS * 40 * (step + 1), "short": WORDS, "n": step}
        checkpoint: Any = {
            "v": 4,
            "id": new_id(),
            "ts": "2026-11-20T00:00:00+00:00",
            "channel_values": values,
            "channel_versions": dict.fromkeys(values, step + 1),
            "versions_seen": {},
        }
        config = saver.put(config, checkpoint, {"step": step, "note": WORDS}, dict.fromkeys(values, step + 1))
        saver.put_writes(config, [("text", WORDS * 30), ("short", WORDS)], f"task {step}")
    return values


def read(path: Path, keyring: Keyring | None, **options: Any) -> Any:
    with SqliteSaver(path, keyring=keyring, **options) as saver:
        found = saver.get(THREAD)
        return found and found["channel_values"]


@pytest.mark.parametrize("seal_metadata", [True, False], ids=["metadata sealed", "metadata open"])
def test_nothing_of_a_value_is_readable_in_the_file(tmp_path: Path, seal_metadata: bool) -> None:  # noqa: FBT001 - a parameter of the test
    path = tmp_path / "sealed.db"
    with SqliteSaver(path, keyring=ring("old"), seal_metadata=seal_metadata) as saver:
        values = fill(saver)
        assert [found.metadata["step"] for found in saver.list(THREAD, filter={"note": WORDS, "step": 2})] == [2]
        assert saver.verify().problems == []
    stored = path.read_bytes()
    assert (WORDS[:12].encode() in stored) is not seal_metadata
    with SqliteSaver(tmp_path / "open.db") as saver:
        fill(saver)
    assert WORDS[:12].encode() in (tmp_path / "open.db").read_bytes()
    assert read(path, ring("old"), seal_metadata=seal_metadata) == values


def test_segments_have_names_that_tell_nothing_of_their_bytes(tmp_path: Path) -> None:
    names = []
    for file, keyring in (("open.db", None), ("sealed.db", ring("old"))):
        with SqliteSaver(tmp_path / file, keyring=keyring) as saver:
            fill(saver)
        with closing(sqlite3.connect(tmp_path / file)) as database:
            names.append({key for (key,) in database.execute("SELECT key FROM threadmark_segment")})
    assert not names[0] & names[1]


def test_a_wrong_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with SqliteSaver(path, keyring=ring("old")) as saver:
        fill(saver)
    for keyring in (ring("new"), Keyring({"old": NEW}, "old", digest_secret=SECRET), None):
        with pytest.raises(CorruptDataError, match="thread 'thread'"):
            read(path, keyring)


def test_plain_rows_are_refused_where_rows_are_sealed(tmp_path: Path) -> None:
    path = tmp_path / "open.db"
    with SqliteSaver(path) as saver:
        fill(saver)
    with pytest.raises(CorruptDataError, match="sealed with a key that is not on the keyring"):
        read(path, ring("old"))


def test_rows_that_were_exchanged_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with SqliteSaver(path, keyring=ring("old")) as saver:
        fill(saver)
        last = next(iter(saver.list(THREAD))).config
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for table, body in zip(TABLES, ("data", "header", "value"), strict=True):
            (first, second), *_ = database.execute(
                f"SELECT a.{body}, b.{body} FROM {table} AS a, {table} AS b WHERE a.{body} <> b.{body}"
            )
            database.execute("BEGIN")
            for there, here in ((first, b"kept"), (second, first), (b"kept", second)):
                database.execute(f"UPDATE {table} SET {body} = ? WHERE {body} = ?", (here, there))
            database.execute("COMMIT")
            with SqliteSaver(path, keyring=ring("old")) as saver:
                assert any(problem.kind == "damaged" for problem in saver.verify().problems), table
            database.execute("BEGIN")
            for there, here in ((first, b"kept"), (second, first), (b"kept", second)):
                database.execute(f"UPDATE {table} SET {body} = ? WHERE {body} = ?", (here, there))
            database.execute("COMMIT")
    with SqliteSaver(path, keyring=ring("old")) as saver:
        assert saver.get(last) is not None
        assert saver.verify().problems == []


def test_rotation_reads_the_old_writes_the_new_and_reencrypts_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with SqliteSaver(path, keyring=ring("old")) as saver:
        fill(saver)
    with SqliteSaver(path, keyring=ring("old", "new")) as saver:
        before = list(saver.list(THREAD))
        saver.put_writes(before[0].config, [("late", 1)], "late task")
        before = list(saver.list(THREAD))
        rows = saver.verify()
        assert saver.reencrypt() >= rows.checkpoints + rows.writes - 1
        assert saver.reencrypt() == 0
        assert list(saver.list(THREAD)) == before
    with SqliteSaver(path, keyring=ring("new")) as saver:
        assert list(saver.list(THREAD)) == before
        assert saver.verify().problems == []


def test_a_copied_thread_opens_under_its_own_name(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "sealed.db", keyring=ring("old")) as saver:
        values = fill(saver)
        saver.copy_thread("thread", "copy")
        saver.delete_thread("thread")
        found = saver.get({"configurable": {"thread_id": "copy"}})
        assert found is not None
        assert found["channel_values"] == values
        assert saver.verify().problems == []


def test_reencrypting_without_a_keyring_says_so() -> None:
    with pytest.raises(ConfigError, match="keyring"):
        MemorySaver().reencrypt()
