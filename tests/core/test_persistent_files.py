"""The accidents of a persistent dictionary: its file is foreign, damaged, gone or full, or its process is killed."""

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from children import child, finished
from length import times
from signals.strikes import Interruptions, Step
from threadmark import (
    CorruptDataError,
    PersistentDict,
    SchemaError,
    StoreError,
    ThreadmarkError,
    TransientStoreError,
)

FILLED: dict[Any, Any] = {"a": [1, 2], ("b", 1): {"nested": "text" * 20}, "c": None, "d": b"bytes", "last": 5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def fill(path: Path) -> None:
    """Make a file that has seen some syncs."""
    with PersistentDict[Any, Any](path) as opened:
        opened["gone"] = "soon"
        opened.update(FILLED)
        opened.sync()
        del opened["gone"]


def foreign(path: Path, *statements: str) -> None:
    """Make a foreign database."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def damaged(path: Path) -> None:
    """Make one whose list of tables is damaged."""
    foreign(path, "CREATE TABLE theirs (x)")
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 50 + path.read_bytes()[150:])


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a text": lambda path: path.write_text("these are notes. " * 500),
    "a short text": lambda path: path.write_text("notes"),
    "a database": lambda path: foreign(path, "CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)"),
    "a damaged database": damaged,
    "a database with our tables' names": lambda path: foreign(
        path, "CREATE TABLE entry (position, key, value, digest)"
    ),
    "a database with an application id": lambda path: foreign(path, "PRAGMA application_id = 77", "CREATE TABLE t (x)"),
    "a database with a log": lambda path: foreign(path, "PRAGMA journal_mode = WAL", "CREATE TABLE theirs (x)"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_and_never_written_to(kind: str, path: Path) -> None:
    FOREIGN[kind](path)
    before = path.read_bytes()
    for flag in ("r", "w", "c", "n"):
        with pytest.raises(
            (SchemaError, CorruptDataError), match=r"cache\.db.* (application|never a dictionary|no dictionary in it)"
        ):
            PersistentDict(path, flag)
        assert path.read_bytes() == before
        assert [each.name for each in path.parent.iterdir()] == ["cache.db"]


def test_what_the_log_of_a_foreign_program_that_was_killed_holds_stays_there(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA application_id = 77")
        connection.execute("PRAGMA wal_checkpoint")
        connection.execute("CREATE TABLE theirs (x)")
        other = path.with_name("copy.db")
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{other}{end}")
    files = {each: each.read_bytes() for each in path.parent.iterdir() if each.name.startswith("copy")}
    with pytest.raises(SchemaError, match="another application"):
        PersistentDict(other)
    assert {each: each.read_bytes() for each in path.parent.iterdir() if each.name.startswith("copy")} == files


def test_a_later_format_and_another_kind_are_refused(path: Path) -> None:
    fill(path)
    foreign(path, "PRAGMA user_version = 2")
    with pytest.raises(SchemaError, match="has format 2, and this release knows format 1: upgrade threadmark"):
        PersistentDict(path)
    foreign(path, "PRAGMA user_version = 1", "UPDATE contents SET kind = 'memory saver'")
    with pytest.raises(SchemaError, match="does not hold a dictionary, but a memory saver"):
        PersistentDict(path)


@pytest.mark.parametrize("flag", ["r", "w"])
def test_a_file_that_must_be_there_is_not_made(flag: Any, path: Path) -> None:
    with pytest.raises(StoreError, match=r"cache\.db' does not exist: flag 'c' makes it"):
        PersistentDict(path, flag)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("flag", ["w", "c", "n"])
def test_an_empty_file_becomes_a_dictionary(flag: Any, path: Path) -> None:
    path.touch()
    with pytest.raises(SchemaError, match="has no dictionary in it"):
        PersistentDict(path, "r")
    with PersistentDict[str, int](path, flag) as opened:
        opened["a"] = 1
    assert PersistentDict(path, "r") == {"a": 1}


@pytest.mark.parametrize("flag", ["r", "w", "c", "n"])
def test_a_folder_and_a_missing_folder_are_refused(flag: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a folder"):
        PersistentDict(tmp_path, flag)
    with pytest.raises(StoreError, match=r"there is no folder '.*nowhere'"):
        PersistentDict(tmp_path / "nowhere" / "cache.db", flag)
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_odd_characters_is_a_name(tmp_path: Path) -> None:
    for name in ("a b?mode=ro#x%41.db", "Straße.db", os.fsdecode(b"\xff.db")):
        with PersistentDict[str, int](tmp_path / name) as opened:
            opened["a"] = 1
        assert PersistentDict(tmp_path / name, "r") == {"a": 1}


_WITHOUT_PERMISSION = """
import os, sqlite3, sys
from threadmark import PersistentDict, StoreError
if os.geteuid() == 0:
    os.setuid(65534)  # a superuser may write to any file
path = sys.argv[1]
print(PersistentDict(path, "r"))
for flag in "wcn":
    try:
        PersistentDict(path, flag)
    except StoreError as error:
        print(error)
try:
    PersistentDict(path + ".new")
except StoreError as error:
    print(error)
"""


def test_a_file_without_write_permission_is_read(path: Path) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cache.db"
        fill(path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            read, *refused, made = finished(child(_WITHOUT_PERMISSION, path)).splitlines()
        finally:
            path.parent.chmod(0o700)
    assert read == repr(FILLED)
    assert len(refused) == 3
    assert all("may not be written to: open it with flag 'r'" in each for each in refused)
    assert "cannot be claimed for writing: its folder" in made


_FULL = """
import os, resource, sys
from threadmark import PersistentDict, StoreError
kept = PersistentDict(sys.argv[1])
kept["a"] = 1
kept.sync()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
kept["a"], kept["large"] = 2, os.urandom(1_000_000)
for call in (kept.sync, kept.sync, kept.close):
    try:
        call()
    except StoreError as error:
        print(type(error).__name__, PersistentDict(sys.argv[1], "r"))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
kept.sync()
assert PersistentDict(sys.argv[1], "r") == kept
"""


def test_a_full_disk_is_an_error_and_the_next_sync_stores_everything(path: Path) -> None:
    assert finished(child(_FULL, path)).splitlines() == ["StoreError {'a': 1}"] * 3
    assert PersistentDict[str, Any](path, "r")["a"] == 2


def test_a_file_that_somebody_else_has_locked_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadmark.persistent.connection._TIMEOUT", 0.05)
    monkeypatch.setattr("threadmark.persistent.connection.connect.__defaults__", (0.05,))
    with PersistentDict[str, int](path) as opened, closing(sqlite3.connect(path, isolation_level=None)) as other:
        opened["a"] = 1
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TransientStoreError, match="has been locked by another process"):
            opened.sync()
        with pytest.raises(TransientStoreError, match="has been locked by another process"):
            PersistentDict(path, "r")
        other.execute("ROLLBACK")
        opened.sync()
        assert PersistentDict(path, "r") == {"a": 1}


def test_a_file_that_was_replaced_or_removed_is_not_stored_in(path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["a"] = 1
        opened.sync()
        aside = path.with_name("aside.db")
        path.rename(aside)
        opened["a"] = 2
        with pytest.raises(StoreError, match="is not the file that was opened"):
            opened.sync()
        assert not path.exists()
        with PersistentDict[str, int](path.with_name("other.db")) as other:
            other["other"] = 1
        shutil.copy(path.with_name("other.db"), path)
        with pytest.raises(StoreError, match="is not the file that was opened"):
            opened.sync()
        assert PersistentDict(path, "r") == {"other": 1}
        aside.replace(path)
        opened.sync()
        assert PersistentDict(path, "r") == {"a": 2}


_FORK = """
import os, sys
from threadmark import ClosedError, MemorySaver, PersistentDict, TransientStoreError
path = sys.argv[1]
kept = PersistentDict(path)
kept["a"] = 1
kept.sync()
kept["a"] = 2
if (pid := os.fork()) == 0:
    assert kept == {"a": 2}
    try:
        kept.sync()
    except ClosedError as error:
        print(error, flush=True)
    kept.close()
    assert PersistentDict(path, "r") == {"a": 1}
    try:
        PersistentDict(path)
    except TransientStoreError:
        print("refused", flush=True)
    sys.exit()  # with what is done at exit
assert os.waitpid(pid, 0)[1] == 0
assert PersistentDict(path, "r") == {"a": 1}
kept.sync()
if (pid := os.fork()) == 0:
    sys.stdin.readline()
    kept = None  # it is dropped here while somebody else has the file
    os._exit(0)
kept.close()
kept = PersistentDict(path)
sys.stdout.flush()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_the_child_of_a_fork_reads_its_copy_and_leaves_the_file_to_the_parent(path: Path) -> None:
    said, refused = finished(child(_FORK, path)).splitlines()
    assert "belongs to the process that opened it" in said
    assert refused == "refused"
    assert PersistentDict(path, "r") == {"a": 2}


_FORKS_DURING_SYNCS = """
import os, sys, threading
import warnings; warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say of a fork beside threads
from threadmark import PersistentDict
kept = PersistentDict(sys.argv[1])
stop = threading.Event()
def work():
    number = 0
    while not stop.is_set():
        number += 1
        kept[number % 100] = [number] * 100
        kept.sync()
thread = threading.Thread(target=work)
thread.start()
for _ in range(int(sys.argv[2])):
    if (pid := os.fork()) == 0:
        del kept
        import gc; gc.collect()
        sys.exit()
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
kept.sync()
assert PersistentDict(sys.argv[1], "r") == kept
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_a_fork_while_another_thread_stores_does_no_harm(path: Path) -> None:
    finished(child(_FORKS_DURING_SYNCS, path, times(10, at_length=150)))


def test_a_flipped_bit_anywhere_gives_an_error_or_what_was_stored(path: Path) -> None:
    fill(path)
    sound = path.read_bytes()
    chance = random.Random(16)
    refused = 0
    for place in range(0, len(sound), times(23, at_length=1)):
        data = bytearray(sound)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            found = PersistentDict[Any, Any](path, "r")
        except ThreadmarkError:
            refused += 1
        else:
            assert list(found.items()) == list(FILLED.items()), place
    assert refused > 0


def test_a_damaged_schema_that_sqlite_quotes_is_an_error(path: Path) -> None:
    fill(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"CREATE TABLE entry") + len("CREATE ")] = 0xEE  # no UTF-8, and so is the message of SQLite
    path.write_bytes(data)
    with pytest.raises(CorruptDataError, match="the file is damaged"):
        PersistentDict[Any, Any](path, "r")


DAMAGES = {
    "a value": ("UPDATE entry SET value = zeroblob(3) WHERE position = 2", r"key 'a': it is not as it was written"),
    "a key": ("UPDATE entry SET key = x'00' WHERE position = 2", r"entry 2.*: it is not as it was written"),
    "a value of another key": (
        "UPDATE entry SET value = (SELECT value FROM entry WHERE position = 3) WHERE position = 2",
        r"key 'a': it is not as it was written",
    ),
    "a value of another type": ("UPDATE entry SET value = 'text' WHERE position = 2", "key 'a'"),
    "a number": ("UPDATE entry SET value = 5 WHERE position = 2", "key 'a'"),
    "an order": ("UPDATE entry SET position = 99 WHERE position = 2", "entry 99, key 'a'"),
    "a missing entry": ("DELETE FROM entry WHERE position = 2", "entries are missing"),
    "no entry at all": ("DELETE FROM entry", "entries are missing"),
    "no contents": ("DELETE FROM contents", "does not say what it contains"),
    "a table": ("DROP TABLE entry", "the file is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(damage: str, path: Path) -> None:
    fill(path)
    statement, message = DAMAGES[damage]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    before = path.read_bytes()
    for flag in ("r", "c"):
        with pytest.raises(CorruptDataError, match=message):
            PersistentDict(path, flag)
        assert path.read_bytes() == before
        assert [each.name for each in path.parent.iterdir()] == ["cache.db"]


def test_an_entry_of_an_earlier_sync_is_noticed(path: Path) -> None:
    with PersistentDict[str, int](path) as opened:
        opened["a"], opened["b"] = 1, 1
        opened.sync()
        with closing(sqlite3.connect(path)) as connection:
            old = connection.execute("SELECT * FROM entry WHERE position = 1").fetchone()
        opened["a"] = 2
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", old)
        connection.commit()
    with pytest.raises(CorruptDataError, match="are not those that were stored last"):
        PersistentDict(path)


def test_an_interrupt_at_any_instruction_of_a_sync_leaves_one_that_works(path: Path) -> None:
    """The file has the contents before or after it, and the next sync stores the contents of that time."""
    interruptions = Interruptions(KeyboardInterrupt)
    chance = random.Random(3)
    opened = PersistentDict[Any, Any](path)
    stored: list[dict[Any, Any]] = [{}]
    number, stride = 1, times(17, at_length=1)
    try:
        while True:
            step = Step(number)
            opened[chance.randrange(5)] = number
            opened.pop(chance.randrange(5), None)
            returned, _ = interruptions.during(opened.sync, step)
            found = dict(PersistentDict[Any, Any](path, "r"))
            now = dict(opened)
            assert list(found.items()) == list((now if returned else found).items())
            assert found in (stored[-1], now)
            stored.append(found)
            if number % 3 == 0:
                opened.pop(chance.randrange(5), None)
                opened.sync()
                stored.append(dict(opened))
                assert list(PersistentDict(path, "r").items()) == list(opened.items())
            if not step.reached:
                break
            number += stride
    finally:
        opened.close()
    assert number > 500


_VICTIM = """
import os, random, sys
from threadmark import PersistentDict

def changed(contents, number):
    chance = random.Random(number)
    for _ in range(chance.randrange(1, 30)):
        contents[chance.randrange(200)] = chance.randbytes(chance.choice((10, 300, 20_000)))
    for _ in range(chance.randrange(20)):
        contents.pop(chance.randrange(200), None)

path, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
for line in sys.stdin:  # each is a round: a child that stores until it is killed
    stored = int(line)
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        kept = PersistentDict(path)
        while True:
            stored += 1
            changed(kept, stored)
            kept.sync()
            os.write(writing, stored.to_bytes(8, "big"))
    os.close(writing)
    done = b""
    for _ in range(chance.randrange(1, 6)):
        done = os.read(reading, 8)
    import select
    select.select([], [], [], chance.uniform(0, chance.choice((0.004, 0.04))))
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    while more := os.read(reading, 8):
        done = more
    print(int.from_bytes(done, "big"), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_a_process_that_is_killed_leaves_the_contents_of_its_last_sync_or_of_the_one_that_was_running(
    path: Path,
) -> None:
    scope: dict[str, Any] = {}
    exec(_VICTIM.partition("path, seed")[0], scope)  # noqa: S102 - the same changes are made here
    process = child(_VICTIM, path, 5)
    model: dict[int, bytes] = {}
    stored, rounds = 0, times(15, at_length=300)
    assert process.stdin
    assert process.stdout
    for number in range(rounds):
        process.stdin.write(f"{stored}\n")
        process.stdin.flush()
        done = int(process.stdout.readline())
        while stored < done:
            stored += 1
            scope["changed"](model, stored)
        # The next caller brings the file to order, a reader as well.
        found = list(PersistentDict[int, bytes](path, "r" if number % 2 else "w").items())
        if found != list(model.items()):
            stored += 1
            scope["changed"](model, stored)
        assert found == list(model.items())
    assert stored >= rounds
    finished(process)


def test_a_process_that_was_killed_holds_nobody_up(path: Path) -> None:
    process = child(
        "import sys\nfrom threadmark import PersistentDict\nkept = PersistentDict(sys.argv[1])\nprint(flush=True)\n"
        "sys.stdin.read()",
        path,
    )
    assert process.stdout
    process.stdout.readline()
    with pytest.raises(TransientStoreError):
        PersistentDict(path)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    PersistentDict(path).close()
    assert [each.name for each in path.parent.iterdir()] == ["cache.db"]


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    """Restore the handler that `Interruptions` sets."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)
