"""Writes that another task adds to a checkpoint while those of one are copied: the other side's thread can be read."""

import os
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from postgres import cluster
from redis_backend import processes
from replication.histories import LONG, put
from replication.sides import TERM, assert_equal, assert_sound, copied_both_ways, in_store, recorded, side
from threadmark import MemorySaver, Saver
from threadmark.program import Program
from threadmark.replication import snapshots
from threadmark.replication.copying import copy_up_to
from threadmark.replication.playing import play_flow
from threadmark.store.replica import Entry
from threadmark_conformance.engine import at
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

THREAD = "thread"

_numbers = count()


def _open(kind: str, folder: Path, number: int) -> Saver:
    if kind == "postgres":
        return PostgresSaver(cluster.shared().database(f"later_{os.getpid()}_{number}"))
    if kind == "redis":
        return RedisSaver(processes.shared().url, prefix=f"later{os.getpid()}_{number}:", durability="memory")
    return SqliteSaver(folder / f"{number}.db") if kind == "sqlite" else MemorySaver()


def _write(saver: Saver, task: str) -> None:
    saver.put_writes(at(THREAD, "", "0001"), [("a", f"{task} {LONG}")], task)


def _copy_first(one: Saver, other: Saver) -> None:
    """Copy the first entry that waits, and see that it needs nothing of later ones."""
    source, target = side(one), side(other, "secondary")
    entries: list[Entry] = in_store(source, source.store.outbox, THREAD, 1)
    play_flow(copy_up_to(source, target, THREAD, TERM, entries[0].position))
    assert_sound(other)
    copied_both_ways(source, target)
    assert_equal(one, other)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "redis"])
def test_those_of_entries_that_are_left_for_the_next_time(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_MOST_ROWS_READ", 1)
    with _open(kind, tmp_path, next(_numbers)) as one, MemorySaver() as other:
        recorded(one)
        put(one, THREAD, 1)
        copied_both_ways(side(one), side(other, "secondary"))
        _write(one, "one")
        put(one, THREAD, 2, "0001")
        _write(one, "another")
        _copy_first(one, other)


def test_those_that_are_added_while_it_is_read() -> None:
    """Redis alone does not read all of it at one moment."""
    number = next(_numbers)
    with ExitStack() as closing:
        one, same = (closing.enter_context(_open("redis", Path(), number)) for _ in range(2))
        other = closing.enter_context(MemorySaver())
        for saver in (one, same):
            recorded(saver)
        put(one, THREAD, 1)
        copied_both_ways(side(one), side(other, "secondary"))
        _write(one, "one")
        store: Any = side(one).store
        read, tasks = store.outbox, ["another"]

        def outbox(thread_id: str | None, limit: int) -> Program[list[Entry]]:
            found: list[Entry] = yield from read(thread_id, limit)
            if tasks and limit > 1:
                _write(same, tasks.pop())
            return found

        with patch.object(store, "outbox", outbox):
            _copy_first(one, other)
