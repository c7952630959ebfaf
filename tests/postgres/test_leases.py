"""Leases and conditions, when one connection comes between two steps of another's."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.conninfo import make_conninfo

from patience import wait_until
from postgres.test_order import Scene, addition, change_of, checkpoint, scene
from threadmark import StoreError
from threadmark.program import Program
from threadmark.store.contract import ANYONE, Added, Change
from threadmark.store.threads import LeaseRow
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.steps import Query
from threadmark_postgres.store import PostgresStore

__all__ = ["scene"]

STORE = PostgresStore(None)
MINUTE = 60_000_000
_WAITS_FOR_ADVICE = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def change(token: int | None, rank: int, name: str = "5", **others: Any) -> Change:
    """A change that adds one checkpoint."""
    row = checkpoint(5, 5, rank)
    row = row._replace(outline=row.outline._replace(thread_id=name, ns=""))
    return change_of(name, checkpoints=[row], **others)._replace(token=token)


def lease(name: str = "5", left: int = MINUTE) -> Program[LeaseRow]:
    """Lock a thread and take a lease."""
    yield from STORE.lock_lease(name)
    return (yield from STORE.set_lease(name, LeaseRow(0, left)))


def play(session: psycopg.Connection[Any], program: Program[Any], after: Callable[[str], None] | None = None) -> Any:
    """Run a program's statements. `after` is called behind each of them, with its text."""
    cursor = psycopg.RawCursor(session)
    try:
        query = next(program)
        while True:
            assert isinstance(query, Query)
            cursor.execute(query.sql.encode(), query.params or None, binary=True)
            rows = cursor.fetchall() if cursor.description else []
            if after is not None:
                after(query.sql)
            query = program.send(rows)
    except StopIteration as stop:
        return stop.value


def refusals(session: psycopg.Connection[Any], queries: Sequence[Query]) -> list[str | None]:
    """Run adding statements. Returns why each adds nothing, None if it does."""
    cursor = psycopg.RawCursor(session)
    return [cursor.execute(query.sql.encode(), query.params, binary=True).fetchall()[0][1] for query in queries]


def commit(session: psycopg.Connection[Any], program: Program[Any]) -> Any:
    """Run a program and commit."""
    result = play(session, program)
    session.commit()
    return result


def ranks(tables: psycopg.Connection[Any]) -> list[str]:
    return [rank for (rank,) in tables.execute("SELECT rank FROM threadmark_checkpoint ORDER BY rank")]


@pytest.fixture
def slow_writer(url: str, tables: psycopg.Connection[Any]) -> Iterator[str]:
    """A role whose statements see the state of the tables, and then wait for a lock before they look at a thread."""
    tables.execute("CREATE ROLE slow LOGIN")
    tables.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO slow")
    tables.execute(
        "CREATE FUNCTION wait_for_advice() RETURNS boolean LANGUAGE plpgsql VOLATILE AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN true; END $$"
    )
    tables.execute("ALTER TABLE threadmark_thread ENABLE ROW LEVEL SECURITY")
    tables.execute("CREATE POLICY slow ON threadmark_thread TO slow USING (wait_for_advice()) WITH CHECK (true)")
    yield make_conninfo(url, user="slow")
    tables.execute("DROP OWNED BY slow")
    tables.execute("DROP ROLE slow")


@contextmanager
def held_up(tables: psycopg.Connection[Any]) -> Iterator[None]:
    """A lock that the role's statements wait for."""
    tables.execute("SELECT pg_advisory_lock(7)")
    yield
    tables.execute("SELECT pg_advisory_unlock(7)")


@pytest.mark.parametrize("others", [(), ("6",), ("4", "6")])
def test_a_write_that_began_before_a_lease_was_taken_is_refused_afterwards(
    scene: Scene, tables: psycopg.Connection[Any], slow_writer: str, others: tuple[str, ...]
) -> None:
    with scene.session() as taker:
        names = ["5", *others]
        tokens = {name: commit(taker, lease(name)).token for name in names}
        for name in names:
            commit(taker, STORE.add(change(tokens[name], 1, name)))
        queries = addition(change(tokens[name], 2, name) for name in names)

        def add() -> dict[str, str | None]:
            with psycopg.connect(slow_writer) as writer:
                writer.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                register_dumpers(writer)
                refused = refusals(writer, queries)
                return {query.params[0]: each for query, each in zip(queries, refused, strict=True)}

        with ThreadPoolExecutor(1) as workers:
            with held_up(tables):
                adding = workers.submit(add)
                wait_until(lambda: next(tables.execute(_WAITS_FOR_ADVICE))[0], "it does not wait")
                assert commit(taker, lease("5")).token > tokens["5"]
            assert adding.result() == {"5": "lost"} | dict.fromkeys(others)
    assert ranks(tables) == sorted(["1"] * len(names) + ["2"] * len(others))


def test_a_lease_waits_for_whoever_adds(tables: psycopg.Connection[Any], scene: Scene) -> None:
    with scene.session() as adder, scene.session() as taker:
        commit(adder, STORE.add(change(None, 1)))
        play(adder, STORE.add(change(None, 2)))
        waiting = scene.waits(partial(commit, taker, lease()))
        adder.commit()
        waiting.result()
        assert play(adder, STORE.add(change(None, 3))).refused == "busy"
    assert ranks(tables) == ["1", "2"]


def test_who_adds_waits_for_whoever_takes_a_lease(tables: psycopg.Connection[Any], scene: Scene) -> None:
    with scene.session() as adder, scene.session() as taker:
        first = commit(adder, lease())
        commit(adder, STORE.add(change(first.token, 1)))
        play(taker, lease())
        waiting = scene.waits(partial(play, adder, STORE.add(change(first.token, 2))))
        taker.commit()
        assert waiting.result() == Added(epoch_of(tables), "lost")
    assert ranks(tables) == ["1"]


def test_a_lease_that_is_rolled_back_refuses_nobody(tables: psycopg.Connection[Any], scene: Scene) -> None:
    with scene.session() as adder, scene.session() as taker:
        commit(adder, STORE.add(change(None, 1)))
        play(taker, lease())
        waiting = scene.waits(partial(commit, adder, STORE.add(change(None, 2))))
        taker.rollback()
        waiting.result()
    assert ranks(tables) == ["1", "2"]


@pytest.mark.parametrize("token", [None, 0])
def test_a_lease_taken_before_a_deleted_thread_begins_again_refuses_what_would_begin_it(
    tables: psycopg.Connection[Any], scene: Scene, token: int | None
) -> None:
    with scene.session() as adder, scene.session() as taker:
        commit(adder, STORE.add(change(None, 1)))
        commit(adder, STORE.drop("5", 1))
        taken = commit(taker, lease())
        added = commit(adder, STORE.add(change(token, 2)))
        assert added.refused == ("busy" if token is None else "lost")
        assert next(tables.execute("SELECT live FROM threadmark_thread"))[0] is False
        assert commit(adder, STORE.add(change(taken.token, 3))).refused is None
    assert ranks(tables) == ["3"]


def test_a_token_is_greater_than_the_last_one_although_the_clock_is_behind(
    tables: psycopg.Connection[Any], scene: Scene
) -> None:
    with scene.session() as session:
        commit(session, lease())
        ((before,),) = tables.execute("UPDATE threadmark_thread SET token = token + 3600000000 RETURNING token")
        assert commit(session, lease()).token == before + 1


@pytest.mark.parametrize(
    ("level", "calls"), [(IsolationLevel.READ_COMMITTED, 1), (IsolationLevel.REPEATABLE_READ, 2)], ids=["own", "other"]
)
def test_a_change_that_stands_alone_asks_for_a_transaction_of_ours_at_another_level(
    tables: psycopg.Connection[Any], scene: Scene, level: IsolationLevel, calls: int
) -> None:
    with scene.session() as session:
        commit(session, STORE.add(change(None, 1)))
        session.isolation_level = level
        asked: list[str] = []
        assert play(session, STORE.add(change(None, 2)._replace(expects="1")), asked.append).refused is None
        assert len(asked) == calls
        session.commit()
    assert ranks(tables) == ["1", "2"]


@pytest.mark.parametrize("there", [True, False])
def test_of_two_that_expect_the_same_checkpoint_one_is_refused(
    tables: psycopg.Connection[Any], scene: Scene, *, there: bool
) -> None:
    with scene.session() as first, scene.session() as second:
        if there:
            commit(first, STORE.add(change(None, 1)))
        expects = "1" if there else ""
        play(first, STORE.add(change(None, 2)._replace(expects=expects)))
        waiting = scene.waits(partial(play, second, STORE.add(change(None, 3)._replace(expects=expects))))
        first.commit()
        assert waiting.result() == Added(epoch_of(tables), "conflict")
        second.commit()
        assert commit(second, STORE.add(change(None, 3)._replace(expects="2"))).refused is None
    assert ranks(tables) == (["1"] if there else []) + ["2", "3"]


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (change(3, 1), Added(0, "lost")),
        (change(None, 1)._replace(expects="1"), Added(0, "conflict")),
        (change(3, 1)._replace(expects=""), Added(0, "lost")),
        (change(None, 1)._replace(epoch=7, expects=""), Added(0)),
    ],
)
def test_what_is_refused_begins_no_thread(
    tables: psycopg.Connection[Any], scene: Scene, refused: Change, expected: Added
) -> None:
    with scene.session() as session:
        assert commit(session, STORE.add(refused)) == expected
    assert tables.execute("SELECT FROM threadmark_thread").fetchall() == []


def test_of_several_that_begin_a_thread_together_the_first_decides_whose_it_is(
    tables: psycopg.Connection[Any], scene: Scene
) -> None:
    def owned(rank: int, owner: str, token: int | None = None) -> Change:
        wanted = change(token, rank)
        return wanted._replace(beginning=wanted.beginning._replace(owner=owner), only_owner=True)

    queries = addition([owned(1, "ada", 9), owned(2, "ada"), owned(3, "bob"), owned(4, "ada", ANYONE)])
    with scene.session() as session:
        refused = refusals(session, queries)
        session.commit()
        assert refused == ["lost", None, "owner", None]
    assert ranks(tables) == ["2", "4"]
    found = tables.execute("SELECT t.owner, h.owner, h.checkpoints FROM threadmark_thread t, threadmark_head h")
    assert found.fetchall() == [("ada", "ada", 2)]


def epoch_of(tables: psycopg.Connection[Any]) -> int:
    return int(next(tables.execute("SELECT epoch FROM threadmark_thread"))[0])


def test_a_lease_of_a_thread_that_a_policy_hides_is_an_error(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        for name in ("a", "b"):
            saver.create_thread(name)
    tables.execute("CREATE ROLE tenant LOGIN")
    try:
        tables.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO tenant")
        tables.execute("ALTER TABLE threadmark_thread ENABLE ROW LEVEL SECURITY")
        tables.execute("CREATE POLICY own ON threadmark_thread TO tenant USING (thread_id = 'a') WITH CHECK (true)")
        limited = make_conninfo(url, user="tenant", options="-c statement_timeout=60000")
        with PostgresSaver(limited) as saver:
            with saver.lease("a"):
                pass
            with pytest.raises(StoreError, match="not for row-level security"), saver.lease("b"):
                pass
    finally:
        tables.execute("DROP OWNED BY tenant")
        tables.execute("DROP ROLE tenant")
