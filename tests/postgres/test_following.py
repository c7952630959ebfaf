"""A change from another database: one call, and nothing older over newer."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
import pytest

from postgres.test_leases import commit
from postgres.test_leases import play as run
from postgres.test_order import Scene, change_of, checkpoint, scene
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.program import Program
from threadmark.store.contract import ANYONE, NEVER, Added, Change, CheckpointRow, Follows, WriteRow
from threadmark.store.replica import Copied, Replica
from threadmark_postgres.store import PostgresStore

__all__ = ["scene"]

STORE = PostgresStore(None)
THREAD = "5"
TABLES = ("segment", "checkpoint", "head", "write", "outbox", "copied")


def _row(number: int, **others: Any) -> CheckpointRow:
    row = checkpoint(5, 5, number)
    return row._replace(outline=row.outline._replace(thread_id=THREAD, ns="", **others))


FIRST, SECOND, RANKED = _row(1), _row(2), _row(3)


def _write(idx: int, path: str = "path") -> WriteRow:
    return WriteRow("", FIRST.outline.id, "task", idx, path, "", b"value", bytes(12))


TASKS = [_write(PACK), _write(FIRST_RECORD, "")]
"""A task's writes, and the record of them."""


def told(
    follows: Follows, checkpoints: Sequence[CheckpointRow] = (), writes: Sequence[WriteRow] = (), **others: Any
) -> Change:
    change = change_of(THREAD, checkpoints=checkpoints, writes=writes, segments={b"k" * 12: b"segment"})
    return change._replace(now=77, token=ANYONE, needs=lambda: [b"k" * 12], copied=follows, **others)


def begin(store: PostgresStore) -> Program[Added]:
    first = yield from store.add(told(Follows(NEVER, 10, 7), [FIRST]))
    stepped_back = told(Follows(10, 10, 7), [RANKED._replace(outline=RANKED.outline._replace(rank="zz"))])
    yield from store.add(stepped_back)
    return first


ADDED: Mapping[str, Change] = {
    "a checkpoint": told(Follows(10, 20, 7), [SECOND]),
    "writes": told(Follows(10, 20, 7), writes=TASKS),
    "under a term": told(Follows(10, 20, 7), [SECOND], term=1),
    "of two tasks": told(Follows(10, 20, 7), writes=[*TASKS, TASKS[0]._replace(task_id="another")]),
    "both": told(Follows(10, 20, 7), [SECOND], TASKS),
}
LEFT: Mapping[str, tuple[Change, str]] = {
    "one that is there": (told(Follows(10, 20, 7), [FIRST]), "exists"),
    "one that is there under another rank": (told(Follows(10, 20, 7), [RANKED]), "exists"),
    "under a smaller term": (told(Follows(10, 20, 7), [SECOND], term=0), "term"),
    "what came already": (told(Follows(9, 10, 7), [SECOND]), "behind"),
    "after a removal there": (told(Follows(10, 20, 8), [SECOND]), "behind"),
    "of what is missing": (told(Follows(19, 20, 7), [SECOND]), "behind"),
}
"""Changes of a thread that came up to 10, and why those are left that are."""


@pytest.mark.parametrize("name", [*ADDED, *LEFT])
def test_one_call_adds_a_change_or_leaves_everything(session: psycopg.Connection[Any], name: str) -> None:
    def rows() -> list[Any]:
        asking = [f"SELECT * FROM threadmark_{table} ORDER BY 1, 2, 3".encode() for table in TABLES]
        return [session.execute(query).fetchall() for query in asking]

    commit(session, STORE.set_replica(Replica(1, "")))
    commit(session, begin(STORE))
    before = rows()
    change, why = LEFT.get(name) or (ADDED[name], "")
    asked: list[str] = []
    added = run(session, STORE.add(change), asked.append)
    session.commit()
    assert len(asked) == 1
    assert ("exists" if added.exists else added.refused or "") == why
    if why:
        assert rows() == before
    else:
        found = dict(zip(TABLES, rows(), strict=True))
        assert found["copied"] == [(THREAD, 20, 7)]
        assert len(found["checkpoint"]) == 2 + len(change.checkpoints)
        assert len(found["write"]) == len(change.writes)
        assert found["outbox"] == []


@pytest.fixture
def came(scene: Scene) -> Scene:
    """A thread that came up to 10."""
    with scene.session() as session:
        commit(session, STORE.set_replica(Replica(1, "")))
        commit(session, begin(STORE))
    return scene


def copied(tables: psycopg.Connection[Any]) -> tuple[int, int]:
    ((position, epoch),) = tables.execute("SELECT position, epoch FROM threadmark_copied").fetchall()
    return position, epoch


def test_of_two_who_tell_the_same_change_one_adds(came: Scene, tables: psycopg.Connection[Any]) -> None:
    change = told(Follows(10, 20, 7), [SECOND])
    with came.session() as first, came.session() as second:
        assert run(first, STORE.add(change)).refused is None
        waiting = came.waits(partial(commit, second, STORE.add(change)))
        first.commit()
        assert waiting.result() == Added(0, "behind")
    assert copied(tables) == (20, 7)


def test_what_is_older_adds_nothing_behind_what_was_copied_meanwhile(
    came: Scene, tables: psycopg.Connection[Any]
) -> None:
    def copy_all() -> Program[None]:
        yield from STORE.lock(THREAD)
        yield from STORE.remove(THREAD, [("", FIRST.outline.id)], [])
        yield from STORE.set_copied(THREAD, Copied(30, 9))

    with came.session() as whole, came.session() as late:
        run(whole, copy_all())
        waiting = came.waits(partial(commit, late, STORE.add(told(Follows(10, 20, 7), [checkpoint(5, 5, 9)]))))
        whole.commit()
        assert waiting.result() == Added(0, "behind")
    assert copied(tables) == (30, 9)
    assert tables.execute("SELECT rank FROM threadmark_checkpoint").fetchall() == [("zz",)]


def test_the_term_is_kept_until_it_is_added(came: Scene) -> None:
    with came.session() as adder, came.session() as promoter:
        assert run(adder, STORE.add(told(Follows(10, 20, 7), [SECOND], term=1))).refused is None
        promoting = came.waits(partial(commit, promoter, STORE.set_replica(Replica(2, ""))))
        adder.commit()
        assert promoting.result() == Replica(2, "")
        assert commit(adder, STORE.add(told(Follows(20, 30, 7), writes=TASKS, term=1))) == Added(0, "term")
