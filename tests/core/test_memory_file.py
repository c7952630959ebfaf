"""A memory saver with a file: the state of the last sync is there when another one is made with the file."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import threadmark
from children import child, finished
from damage import describe, fill
from length import ALL, times
from thread_stores import THREADS, check_agreement
from threadmark import (
    ClosedError,
    ConfigError,
    CorruptDataError,
    Keyring,
    LeaseLostError,
    MemorySaver,
    PersistentDict,
    Saver,
    SchemaError,
    StoreError,
    TransientStoreError,
)
from threadmark.memory.store import MemoryStore
from threadmark.memory.tables import Tables
from threadmark.persistent.kept_memory import KeptDriver
from threadmark_conformance import CASES, Case, Opener, run_case
from threadmark_conformance.engine import at, checkpoint


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.mem"


def everything(tables: Tables | None) -> dict[str | None, Any]:
    """All that tables hold, in its order, but of a lease only the part that outlives the process."""
    assert tables is not None
    threads: dict[str | None, Any] = {
        name: (
            {**thread.state, "lease": thread.lease.row._replace(left=0)},
            thread.deleted_up_to,
            list(thread.checkpoints.items()),
            list(thread.writes.items()),
            list(thread.segments.items()),
            list(thread.outbox.items()),
        )
        for name, thread in tables.threads.items()
    }
    return {None: tables.pair, **threads}


class Reopening(KeptDriver):
    """Compares, when it is closed, its contents with those that another one finds in the file."""

    def close(self) -> None:
        if (held := self._tables) is None:
            return
        file = self._storage.path
        super().close()
        again = KeptDriver(file)
        assert everything(again._tables) == everything(held)
        again.close()


@contextmanager
def kept(folder: Path, **fixed: Any) -> Iterator[Opener]:
    """Dictionaries that are kept in a file; savers on them share the driver."""
    driver = Reopening(folder / "agents.mem")

    def open_saver(**options: Any) -> Saver:
        return Saver(MemoryStore(), driver, **fixed, **options)

    yield open_saver
    driver.close()


@pytest.mark.parametrize("case", CASES if ALL else CASES[::5], ids=str)
def test_whatever_a_case_of_the_suite_stores_is_there_again(case: Case, tmp_path: Path) -> None:
    run_case(case, kept, "blocking", tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_to_threads_is_there_again(seed: int, tmp_path: Path) -> None:
    assert len(THREADS) > 2
    check_agreement(kept, tmp_path, seed, times(300, at_length=3000))


def _keyring() -> Keyring:
    return Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_saver_goes_on_where_the_last_one_was_closed(path: Path, *, sealed: bool) -> None:
    options: dict[str, Any] = {"keyring": _keyring()} if sealed else {}
    with MemorySaver(file=path, **options) as saver:
        expected = fill(saver)
        describe(saver)
        saver.delete_thread("one")
        threads = saver.list_threads().threads
        listed = list(saver.list(None))
    with MemorySaver(file=path, **options) as again:
        assert again.list_threads().threads == threads
        assert list(again.list(None)) == listed
        assert len(listed) == len(expected) / 2
        assert again.verify(decode=True).problems == []
        config = again.put(listed[0].config, checkpoint({"turn": 9}), {}, {"turn": 9})
        again.sync()
    assert [each.name for each in path.parent.iterdir()] == ["agents.mem"]
    assert ("Straße".encode() in path.read_bytes()) != sealed
    with threadmark.open("memory:", file=path, **options) as last:
        assert last.get_tuple(config) is not None


def test_what_was_put_since_the_last_sync_is_not_in_the_file(path: Path) -> None:
    with MemorySaver(file=path) as saver:
        saver.put(at("stored"), checkpoint(), {}, {})
        saver.sync()
        saver.put(at("later"), checkpoint(), {}, {})
        copied = path.with_name("copy.mem")
        copied.write_bytes(path.read_bytes())
        with MemorySaver(file=copied) as other:
            assert [thread.id for thread in other.list_threads().threads] == ["stored"]
    with MemorySaver(file=path) as saver:
        assert saver.count_threads() == 2


def test_a_lease_is_over_and_its_token_is_not_given_again(path: Path) -> None:
    with MemorySaver(file=path) as saver:
        lease = saver.lease("thread", ttl=3600)
        with lease:
            first = lease.token
            saver.put(lease.config, checkpoint(), {}, {})
            saver.sync()
            copied = path.with_name("copy.mem")  # as if the process had been killed here
            copied.write_bytes(path.read_bytes())
    with MemorySaver(file=copied) as again, again.lease("thread", on_busy="reject") as second:
        assert second.token > first
        with pytest.raises(LeaseLostError):
            again.put({"configurable": {**lease.config["configurable"]}}, checkpoint(), {}, {})


def test_asyncio_closes_it_as_well(path: Path) -> None:
    async def main() -> None:
        async with MemorySaver(file=path) as saver:
            await saver.aput(at("thread"), checkpoint(), {}, {})
            await asyncio.to_thread(saver.sync)
            await saver.aput(at("other"), checkpoint(), {}, {})

    asyncio.run(main())
    with MemorySaver(file=path) as saver:
        assert saver.count_threads() == 2


def test_what_other_threads_have_put_when_it_is_closed_is_in_the_file(path: Path) -> None:
    done: list[str] = []

    def put_until_closed(name: int) -> None:
        with suppress(ClosedError):
            for number in range(100_000):
                saver.put(at(f"{name} {number}"), checkpoint(), {}, {})
                done.append(f"{name} {number}")

    for _ in range(times(3, at_length=50)):
        done.clear()
        path.unlink(missing_ok=True)
        saver = MemorySaver(file=path)
        threads = [threading.Thread(target=put_until_closed, args=(name,)) for name in range(3)]
        for each in threads:
            each.start()
        while len(done) < 20:
            saver.sync()
        saver.close()
        for each in threads:
            each.join()
        with MemorySaver(file=path) as again:
            assert again.count_threads() == len(done)


def test_a_saver_that_cannot_be_stored_stays_open(path: Path) -> None:
    with MemorySaver(file=path) as saver:
        saver.put(at("thread"), checkpoint(), {}, {})
        saver.sync()
        saver.put(at("other"), checkpoint(), {}, {})
        aside = path.rename(path.with_name("aside.mem"))
        for call in (saver.sync, saver.close):
            with pytest.raises(StoreError, match="is not the file that was opened"):
                call()
            assert saver.count_threads() == 2
        aside.rename(path)
    with MemorySaver(file=path) as again:
        assert again.count_threads() == 2


def test_the_child_of_a_fork_goes_on_with_a_copy_that_is_stored_nowhere(path: Path) -> None:
    program = """
import os, sys
from threadmark import ClosedError, MemorySaver
from threadmark_conformance.engine import at, checkpoint
with MemorySaver(file=sys.argv[1]) as saver:
    saver.put(at("thread"), checkpoint(), {}, {})
    if os.fork() == 0:
        saver.put(at("of the child"), checkpoint(), {}, {})
        assert saver.count_threads() == 2
        try:
            saver.sync()
        except ClosedError:
            saver.close()
            sys.exit()
    assert os.wait()[1] == 0
"""
    finished(child(program, path))
    with MemorySaver(file=path) as again:
        assert [thread.id for thread in again.list_threads().threads] == ["thread"]


def test_clones_and_views_of_a_saver_store_everything(path: Path) -> None:
    saver = MemorySaver(file=path)
    saver.for_owner("ada").put(at("thread"), checkpoint(), {}, {})
    saver.for_owner("ada").sync()
    saver.with_serde(threadmark.Serde()).close()
    with pytest.raises(ClosedError):
        saver.sync()
    with pytest.raises(ClosedError):
        saver.get(at("thread"))
    with MemorySaver(file=path) as again:
        assert [thread.owner for thread in again.list_threads().threads] == ["ada"]


def test_one_that_was_not_closed_is_stored_when_it_is_dropped_and_when_the_program_ends(path: Path) -> None:
    MemorySaver(file=path).put(at("dropped"), checkpoint(), {}, {})
    gc.collect()
    program = (
        "import sys\nfrom threadmark import MemorySaver\nfrom threadmark_conformance.engine import at, checkpoint\n"
        "saver = MemorySaver(file=sys.argv[1])\nsaver.put(at('at exit'), checkpoint(), {}, {})\n"
    )
    assert finished(child(program, path)) == ""
    with MemorySaver(file=path) as saver:
        assert {thread.id for thread in saver.list_threads().threads} == {"dropped", "at exit"}


def test_a_saver_without_a_file_has_nothing_to_sync_to() -> None:
    with MemorySaver() as saver, pytest.raises(ConfigError, match=r"MemorySaver\(file=\.\.\.\)"):
        saver.sync()


def test_the_file_of_a_saver_is_no_dictionary_and_the_other_way_round(path: Path) -> None:
    MemorySaver(file=path).close()
    with pytest.raises(SchemaError, match="does not hold a dictionary, but a memory saver"):
        PersistentDict(path)
    with PersistentDict[str, int](path.with_name("cache.db")) as opened:
        opened["a"] = 1
    with pytest.raises(SchemaError, match="does not hold a memory saver, but a dictionary"):
        MemorySaver(file=path.with_name("cache.db"))


def test_only_one_saver_has_a_file(path: Path) -> None:
    with MemorySaver(file=path), pytest.raises(TransientStoreError, match="open for writing already"):
        MemorySaver(file=path)


def test_a_saver_with_invalid_options_makes_no_file(path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown option 'cachebytes'"):
        MemorySaver(file=path, cachebytes=1)  # type: ignore[call-arg]  # that is the point
    with pytest.raises(ConfigError, match="ttl must be"):
        MemorySaver(file=path, ttl=0)
    assert list(path.parent.iterdir()) == []


def test_damage_is_named_with_the_thread(path: Path) -> None:
    with MemorySaver(file=path) as saver:
        fill(saver)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE entry SET value = substr(value, 2)")
        connection.commit()
    with pytest.raises(CorruptDataError, match=r"agents\.mem' -> entry 1, key 'one': it is not as it was written"):
        MemorySaver(file=path)


def test_a_saver_shows_its_file(path: Path) -> None:
    with MemorySaver(file=path) as saver:
        assert repr(saver) == f"<MemorySaver on the memory of this process, kept in '{path}'>"
