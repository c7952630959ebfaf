"""Databases that earlier releases wrote stay readable, and can be written on."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from damage import fill
from stored.make import ABOUT
from threadmark import MemorySaver, Saver
from threadmark.program import Program, Transaction
from threadmark.store import Outline, Store
from threadmark.thread_store import LeaseRow, ThreadCounts, ThreadRow, ThreadScope
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.migrations import CURRENT

FIRST_WITH_ABOUT = 3
DATABASES = sorted(Path(__file__).parent.glob("*.sqlite"))

T = TypeVar("T")


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
def test_an_old_database_reads_as_it_was_written(database: Path, tmp_path: Path) -> None:
    expected = fill(MemorySaver())
    path = tmp_path / database.name
    shutil.copy(database, path)
    with SqliteSaver(path) as saver:
        found = {tuple(item.config["configurable"].values()): item for item in saver.list(None)}
        assert found == expected
        assert saver.verify().problems == []
        newest = next(iter(saver.list(None)))
        saver.put_writes(newest.config, [("late", 1)], "late task")
        assert ("late task", "late", 1) in (next(iter(saver.list(None))).pending_writes or [])


def _run(saver: Saver, program: Callable[[Store], Program[T]]) -> T:
    return saver._driver.run(Transaction(partial(program, saver._context.store), writes=True))


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
def test_the_threads_of_an_old_database_are_listed(database: Path, tmp_path: Path) -> None:
    path = tmp_path / database.name
    shutil.copy(database, path)
    with SqliteSaver(path) as saver:
        versions = {"turn": 1}
        for thread_id, ns in (("subgraph only", "child:1"), ("new", "")):
            saver.put(at(thread_id, ns), checkpoint(dict(versions)), {}, versions)
        listed = _run(saver, lambda store: store.thread_page(ThreadScope(), None, 0, 10))
        assert [outline.row.thread_id for outline in listed] == ["new", "subgraph only", "two", "one"]
        for thread, updated_at in listed[2:]:
            found = _run(saver, partial(_newest, thread.thread_id))
            assert updated_at == found.created_at
            (counts,) = _run(saver, partial(_counts, thread.thread_id))
            size = saver.stats(thread.thread_id).bytes_stored
            assert counts == (thread.thread_id, 12, 2, size, found.id, False, False, False)


@pytest.mark.parametrize("database", DATABASES, ids=lambda path: path.stem)
def test_what_is_set_of_an_old_thread_comes_back(database: Path, tmp_path: Path) -> None:
    path = tmp_path / database.name
    shutil.copy(database, path)
    with SqliteSaver(path) as saver:
        found = _run(saver, lambda store: store.thread("one"))
        lease = _run(saver, lambda store: store.lease("one"))
    assert found is not None
    assert lease is not None
    if int(database.stem.partition("-")[2]) < FIRST_WITH_ABOUT:
        assert found.row == ThreadRow("one", found.row.created_at)
        assert lease == LeaseRow(0)
    else:
        assert found.row == ABOUT._replace(created_at=found.row.created_at)
        assert lease == LeaseRow(lease.token, 0, "worker")
        assert lease.token > found.row.created_at


def _newest(thread_id: str, store: Store) -> Program[Outline]:
    found = yield from store.find(thread_id, "", None)
    assert found is not None
    assert found.row is not None
    return found.row.outline


def _counts(thread_id: str, store: Store) -> Program[list[ThreadCounts]]:
    return store.thread_counts([thread_id])


def test_there_is_a_database_of_every_format() -> None:
    assert [path.stem for path in DATABASES] == [f"sqlite-{number}" for number in range(1, CURRENT + 1)]
