"""Encryption at rest: nothing of a value is readable, nothing foreign is accepted, and keys can be replaced."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from threadmark import ConfigError, CorruptDataError, MemorySaver, Saver, ThreadmarkError, new_id
from threadmark.format.digests import NOT_OPENED
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Program, Transaction
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
    for keyring in (ring("new"), Keyring({"old": NEW}, "old", digest_secret=SECRET)):
        with pytest.raises(CorruptDataError, match="thread 'thread'"):
            read(path, keyring)


def test_plain_rows_are_refused_where_rows_are_sealed(tmp_path: Path) -> None:
    path = tmp_path / "open.db"
    with SqliteSaver(path) as saver:
        fill(saver)
    with pytest.raises(CorruptDataError, match=r"is not sealed: reencrypt\(plain='seal'\) seals"):
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


def test_reencrypting_without_a_keyring_says_so() -> None:
    with pytest.raises(ConfigError, match="keyring"):
        MemorySaver().reencrypt()


def stored_parts(saver: Saver) -> list[Any]:
    """Everything that a saver lists of the thread."""
    return list(saver.list(THREAD))


def sealed_database(path: Path) -> Any:
    """Make a database with a keyring; the config of its newest checkpoint."""
    with SqliteSaver(path, keyring=ring("old")) as saver:
        fill(saver)
        return next(iter(saver.list(THREAD))).config


CALLS: dict[str, Callable[[Saver, Any], object]] = {
    "get": lambda saver, _: saver.get(THREAD),
    "get of a new thread": lambda saver, _: saver.get({"configurable": {"thread_id": "new"}}),
    "list": lambda saver, _: list(saver.list(THREAD)),
    "put": lambda saver, newest: saver.put(newest, made({"n": 1}), {}, {"n": 1}),
    "put in a new thread": lambda saver, _: saver.put(
        {"configurable": {"thread_id": "new", "checkpoint_ns": ""}}, made({"n": 1}), {}, {"n": 1}
    ),
    "put_writes": lambda saver, newest: saver.put_writes(newest, [("n", 1)], "task"),
    "prune": lambda saver, _: saver.prune(["thread"]),
}


def made(values: dict[str, Any]) -> Any:
    """A checkpoint with these values."""
    versions = dict.fromkeys(values, 1)
    return {"v": 4, "id": new_id(), "channel_values": values, "channel_versions": versions, "versions_seen": {}}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_saver_without_the_keyring_says_so_and_stores_nothing(tmp_path: Path, call: Callable[..., object]) -> None:
    newest = sealed_database(tmp_path / "sealed.db")
    with SqliteSaver(tmp_path / "sealed.db") as saver, pytest.raises(ThreadmarkError, match="sealed: give keyring="):
        call(saver, newest)
    with SqliteSaver(tmp_path / "sealed.db", keyring=ring("old")) as saver:
        found = saver.verify()
        assert (found.threads, found.checkpoints, found.problems) == (1, 5, [])


def test_a_saver_without_a_keyring_that_has_loaded_a_checkpoint_looks_at_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[MemoryStore] = []
    sample = MemoryStore.sample

    def counted(store: MemoryStore) -> Program[tuple[bytes, bytes] | None]:
        looks.append(store)
        return sample(store)

    monkeypatch.setattr(MemoryStore, "sample", counted)
    driver = MemoryDriver()
    newest = Saver(MemoryStore(), driver).put(THREAD, made({"a": 1}), {}, {"a": 1})
    assert len(looks) == 1
    saver = Saver(MemoryStore(), driver)
    assert saver.get(newest) is not None
    saver.put(newest, made({"a": 2}), {}, {"a": 1})
    assert len(looks) == 1


@pytest.mark.parametrize("call", ["get", "list", "put", "put in a new thread", "put_writes"])
def test_a_wrong_digest_secret_is_noticed_before_anything_is_stored(tmp_path: Path, call: str) -> None:
    newest = sealed_database(tmp_path / "sealed.db")
    wrong = Keyring({"old": OLD}, "old", digest_secret=os.urandom(32))
    with SqliteSaver(tmp_path / "sealed.db", keyring=wrong) as saver:
        for _ in range(2):
            with pytest.raises(ConfigError, match="digest_secret is not the one"):
                CALLS[call](saver, newest)
    with SqliteSaver(tmp_path / "sealed.db", keyring=ring("old")) as saver:
        assert saver.verify().checkpoints == 5


def test_what_was_stored_without_a_keyring_is_sealed_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "open.db"
    with SqliteSaver(path) as saver:
        values = fill(saver)
        saver.copy_thread("thread", "other")
        before = stored_parts(saver)
    with SqliteSaver(path, keyring=ring("old")) as saver:
        with pytest.raises(CorruptDataError, match=r"not sealed.*reencrypt\(plain='seal'\)"):
            saver.reencrypt()
        saver.put({"configurable": {"thread_id": "late", "checkpoint_ns": ""}}, made({"n": WORDS * 9}), {}, {"n": 1})
        assert saver.reencrypt("thread", plain="seal") > 0
        assert stored_parts(saver) == before
        assert saver.reencrypt(plain="seal") > 0
        assert saver.reencrypt(plain="seal") == saver.reencrypt() == 0
        assert saver.verify().problems == []
        saver.put(before[0].config, made({**values, "text": WORDS * 300}), {}, {"text": 2})
    with SqliteSaver(path, keyring=ring("old", "new")) as saver:
        assert stored_parts(saver)[1:] == before
        assert saver.reencrypt() > 0
    with SqliteSaver(path, keyring=ring("new")) as saver:
        assert stored_parts(saver)[1:] == before
        assert saver.verify().problems == []
    with closing(sqlite3.connect(path)) as database:
        for table, column in zip(TABLES, ("data", "header", "value"), strict=True):
            assert all(WORDS[:12].encode() not in row for (row,) in database.execute(f"SELECT {column} FROM {table}"))
        assert all(WORDS[:12] not in row for (row,) in database.execute("SELECT metadata FROM threadmark_checkpoint"))


def test_a_damaged_row_is_still_damaged_after_it_was_sealed(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "open.db") as saver:
        fill(saver)
    with closing(sqlite3.connect(tmp_path / "open.db", isolation_level=None)) as damage:
        damage.execute("UPDATE threadmark_checkpoint SET header = header || x'00' WHERE number = 3")
    with SqliteSaver(tmp_path / "open.db", keyring=ring("old")) as saver:
        assert saver.reencrypt(plain="seal") > 0
        assert [each.problem for each in saver.verify().problems] == ["the checkpoint's row is not as it was written"]


def test_whoever_has_no_key_gives_nobody_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "sealed.db"
    with SqliteSaver(path, keyring=ring("old")) as saver:
        fill(saver.for_owner("ada"))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE threadmark_thread SET owner = 'eve'")
    with SqliteSaver(path, keyring=ring("old")) as saver:
        eve = saver.for_owner("eve")
        attempts: list[Callable[[], object]] = [
            lambda: eve.get(THREAD),
            lambda: list(eve.list(THREAD)),
            lambda: eve.get_thread("thread"),
            lambda: eve.copy_thread("thread", "stolen"),
            lambda: fill(eve),
            lambda: eve.delete_thread("thread"),
        ]
        for attempt in attempts:
            with pytest.raises(CorruptDataError, match="owner, title, metadata or expiry is not as it was written"):
                attempt()
        assert saver.for_owner("ada").get(THREAD) is None
        assert len(list(saver.list(THREAD))) == 5


def test_the_sealed_row_of_a_thread_opens_in_no_other_one() -> None:
    saver = MemorySaver(keyring=ring("new"))
    for name in ("one", "other"):
        saver.create_thread(name, title=name)
    sealed = saver._context.store
    one, other = (saver._driver.run(Transaction(saver._store.thread, (name,))) for name in ("one", "other"))
    assert one is not None
    assert other is not None
    exchanged = other.row._replace(check=one.row.check)
    saver._driver.run(Transaction(saver._store.set_thread, (exchanged,), writes=True))
    found = saver._driver.run(Transaction(sealed.thread, ("other",)))
    assert found is not None
    assert found.row.check == NOT_OPENED
    assert found.row.title is None


@pytest.mark.parametrize("plain", ["", "sealed", None, True])
def test_what_becomes_of_plain_rows_is_one_of_two_words(plain: Any) -> None:
    with MemorySaver(keyring=ring("old")) as saver, pytest.raises(ConfigError, match="'refuse' or 'seal'"):
        saver.reencrypt(plain=plain)


@pytest.mark.parametrize("options", [{"keyring": {"old": OLD}}, {"keyring": ring("old"), "seal_metadata": 1}])
def test_options_of_a_wrong_type_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match=r"keyring must be a threadmark\.Keyring|seal_metadata must be True or False"):
        MemorySaver(**options)
