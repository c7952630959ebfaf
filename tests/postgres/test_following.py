"""A change that another database told: one statement where the thread came before, and nothing older over newer."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg
import pytest

from postgres.test_alone import FIRST, SECOND, TASKS, THREAD, _row, session
from postgres.test_leases import commit
from postgres.test_leases import play as run
from postgres.test_order import Scene, change_of, checkpoint, scene
from threadmark.program import Program
from threadmark.store.contract import ANYONE, NEVER, Added, Change, CheckpointRow, Follows, WriteRow
from threadmark.store.replica import Copied, Replica
from threadmark_postgres.store import PostgresStore

__all__ = ["scene", "session"]

STORE = PostgresStore(None)
RANKED = _row(3)
TABLES = ("segment", "checkpoint", "head", "write", "outbox", "copied")


class BySteps(PostgresStore):
    """Always locks the thread first."""

    def _following(self, *_: object) -> None:
        return None


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


AT_ONCE = {
    "a checkpoint": told(Follows(10, 20, 7), [SECOND]),
    "writes": told(Follows(10, 20, 7), writes=TASKS),
    "under a term": told(Follows(10, 20, 7), [SECOND], term=1),
}
OTHERS = {
    "one that is there": told(Follows(10, 20, 7), [FIRST]),
    "one that is there under another rank": told(Follows(10, 20, 7), [RANKED]),
    "under a smaller term": told(Follows(10, 20, 7), [SECOND], term=0),
    "what came already": told(Follows(9, 10, 7), [SECOND]),
    "after a removal there": told(Follows(10, 20, 8), [SECOND]),
    "of what is missing": told(Follows(19, 20, 7), [SECOND]),
    "of two tasks": told(Follows(10, 20, 7), writes=[*TASKS, TASKS[0]._replace(task_id="another")]),
    "both": told(Follows(10, 20, 7), [SECOND], TASKS),
}
"""Changes of a thread that came up to 10, which one statement adds, and others."""


def _outcome(session: psycopg.Connection[Any], store: PostgresStore, change: Change) -> tuple[Any, int]:
    names = ", ".join(f"threadmark_{table}" for table in ("thread", "position", "replica", *TABLES))
    session.execute(f"TRUNCATE {names}".encode())
    commit(session, store.set_replica(Replica(1, "")))
    first = commit(session, begin(store))
    asked: list[str] = []
    added = run(session, store.add(change), asked.append)
    session.commit()
    asking = [f"SELECT * FROM threadmark_{table} ORDER BY 1, 2, 3".encode() for table in TABLES]
    rows = [session.execute(query).fetchall() for query in asking]
    return (added._replace(epoch=added.epoch == first.epoch), rows), len(asked)


@pytest.mark.parametrize("name", [*AT_ONCE, *OTHERS])
def test_one_statement_does_what_several_do(session: psycopg.Connection[Any], name: str) -> None:
    change = {**AT_ONCE, **OTHERS}[name]
    found, statements = _outcome(session, STORE, change)
    expected, _ = _outcome(session, BySteps(None), change)
    assert found == expected
    assert (statements == 1) == (name in AT_ONCE)


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


@pytest.mark.parametrize("store", [STORE, BySteps(None)], ids=["one statement", "several"])
def test_what_is_older_adds_nothing_behind_what_was_copied_meanwhile(
    came: Scene, tables: psycopg.Connection[Any], store: PostgresStore
) -> None:
    def copy_all() -> Program[None]:
        yield from STORE.lock(THREAD)
        yield from STORE.remove(THREAD, [("", FIRST.outline.id)], [])
        yield from STORE.set_copied(THREAD, Copied(30, 9))

    with came.session() as whole, came.session() as late:
        run(whole, copy_all())
        waiting = came.waits(partial(commit, late, store.add(told(Follows(10, 20, 7), [checkpoint(5, 5, 9)]))))
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
