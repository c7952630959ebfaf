"""Changes that are recorded for another database: one statement, positions in the order of commits, terms that hold."""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from postgres.proxy import Proxy
from postgres.steps import APIS, aplay, play, step, thread
from postgres.test_concurrency import deadlocks
from postgres.test_leases import commit
from postgres.test_leases import play as run
from postgres.test_order import (
    PUT,
    Key,
    Probe,
    Scene,
    addition,
    by_thread,
    change_of,
    checkpoint,
    make_threads,
    scene,
    taken_before,
    write,
)
from postgres.test_order import run as order_run
from postgres.test_round_trips import through
from threadmark import Saver
from threadmark.store.contract import Added, Change
from threadmark.store.replica import Copied, Replica
from threadmark_conformance.recording import Recording
from threadmark_postgres import PostgresSaver, store
from threadmark_postgres.adding import _added
from threadmark_postgres.driver.batching import Batch
from threadmark_postgres.sql import replication
from threadmark_postgres.steps import Query
from threadmark_postgres.store import PostgresStore

__all__ = ["scene"]

STORE = PostgresStore(None)


def recorded(saver: PostgresSaver, recording: Recording) -> PostgresSaver:
    """The saver, each change of which is recorded."""
    saver._store = recording.store(saver._store)
    saver._context = saver._new_context()
    return saver


def entries(tables: psycopg.Connection[Any]) -> list[tuple[str, int, bytes]]:
    return tables.execute("SELECT * FROM threadmark_outbox ORDER BY thread_id, position").fetchall()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("prepare", [True, False])
def test_a_put_that_is_recorded_takes_one_round_trip(
    proxy: Proxy, url: str, tables: psycopg.Connection[Any], api: Callable[[Saver], Any], *, prepare: bool
) -> None:
    async def body() -> None:
        async with recorded(through(proxy, url, prepare=prepare), Recording(term=1)) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 8, 10)
            before = proxy.round_trips
            config = await calls.aput(config, *step(8, 10))
            assert proxy.round_trips - before == 1
            await calls.aput_writes(config, [("messages", "a write " * 1000), ("count", 1)], "task")
            assert proxy.round_trips - before == 2
            await calls.aput(thread("another"), *step(0))
            assert proxy.round_trips - before == 3

    asyncio.run(body())
    assert [name for name, *_ in entries(tables)] == ["another", *["one"] * 18]


@pytest.mark.parametrize("names", [["one"], ["a", "b", "c", "d"]])
def test_positions_of_a_thread_grow_whoever_records(
    url: str, tables: psycopg.Connection[Any], names: list[str]
) -> None:
    """32 callers of two savers, whose writes share statements with those of others."""
    recordings = [Recording(), Recording()]
    savers = [recorded(PostgresSaver(url, pool_size=6), recording) for recording in recordings]
    configs = {name: play(savers[0], name, 1) for name in names}

    def record(number: int) -> None:
        chance = random.Random(number)
        for task in range(6):
            saver, name = chance.choice(savers), chance.choice(names)
            saver.put_writes(configs[name], [("messages", "a text " * 40)], f"task {number} {task}")

    with ThreadPoolExecutor(32) as workers:
        for done in [workers.submit(record, number) for number in range(32)]:
            done.result()
    for saver in savers:
        saver.close()
    found = entries(tables)
    made = [(call.args[0].thread_id, call.answer) for each in recordings for call in each.changes]
    assert sorted(position for _, position, _ in found) == sorted(added.position for _, added in made)
    assert len(found) == 32 * 6 + 2 * len(names)
    for name in names:
        own = [position for each, position, _ in found if each == name]
        previous = {added.position: added.previous for thread_id, added in made if thread_id == name}
        assert [previous[position] for position in own] == [0, *own[:-1]]
    assert deadlocks(tables) == 0


def test_savers_that_record_prune_copy_and_delete_at_once(url: str, tables: psycopg.Connection[Any]) -> None:
    recordings = [Recording(term=1), Recording(term=1)]
    savers = [recorded(PostgresSaver(url, pool_size=4), recording) for recording in recordings]
    savers[0].setup()

    def put(saver: PostgresSaver, name: str) -> None:
        for _ in range(4):
            play(saver, name, 4)

    def tidy(saver: PostgresSaver, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            saver.prune(["a", "b"], keep_last=2)
            saver.copy_thread(chance.choice("abc"), "copy")
            saver.delete_thread("copy")

    for name in "abc":
        play(savers[0], name, 1)
    with ThreadPoolExecutor(8) as workers:
        work = [workers.submit(put, savers[number % 2], name) for number, name in enumerate("abcabc")]
        for done in [*work, *(workers.submit(tidy, saver, seed) for seed, saver in enumerate(savers))]:
            done.result()
    for saver in savers:
        saver.close()
    assert {call.position for each in recordings for call in each.changes} <= {
        number for _, number, _ in entries(tables)
    }
    assert deadlocks(tables) == 0


def recorded_write(name: object, idx: int, **others: Any) -> Change:
    return change_of(name, writes=[write(5, 5, 5, 5, idx)], **others)._replace(entry=b"%d" % idx)


def test_a_later_position_is_never_seen_before_an_earlier_one(scene: Scene, tables: psycopg.Connection[Any]) -> None:
    """The next one to record in the thread waits, in another one not; then its position is greater."""
    with scene.session() as first, scene.session() as second, scene.session() as other:
        commit(first, STORE.add(recorded_write(5, 0)))
        one = run(first, STORE.add(recorded_write(5, 1)))
        waiting = scene.waits(partial(run, second, STORE.record("5", b"removed", 0)))
        assert commit(other, STORE.add(recorded_write(6, 1))).position
        assert [(name, body) for name, _, body in entries(tables)] == [("5", b"0"), ("6", b"1")]
        first.commit()
        position = waiting.result()
        second.commit()
    assert isinstance(position, int)
    assert one.position < position
    assert [(number, body) for name, number, body in entries(tables)][1:3] == [
        (one.position, b"1"),
        (position, b"removed"),
    ]


def test_what_is_rolled_back_takes_no_position(scene: Scene, tables: psycopg.Connection[Any]) -> None:
    with scene.session() as session:
        first = commit(session, STORE.add(recorded_write(5, 0)))
        run(session, STORE.add(recorded_write(5, 1)))
        session.rollback()
        after = commit(session, STORE.add(recorded_write(5, 2)))
    assert after.previous == first.position
    assert [body for *_, body in entries(tables)] == [b"0", b"2"]


def together_added(session: psycopg.Connection[Any], changes: Sequence[Change]) -> list[Added]:
    """The outcomes of changes that travel together."""
    batch = Batch([next(STORE.add(change)) for change in changes])  # type: ignore[misc]
    cursor = psycopg.RawCursor(session)
    answers = [cursor.execute(query.sql.encode(), query.params, binary=True).fetchall() for query in batch.queries]
    return [_added(change, *rows[0]) for change, rows in zip(changes, batch.rows(answers), strict=True)]


@pytest.mark.parametrize("kind", ["writes", "checkpoints"])
def test_changes_that_travel_together_are_numbered_one_behind_the_other(
    scene: Scene, tables: psycopg.Connection[Any], kind: str
) -> None:
    make_threads(scene, (5, 6))

    def change(name: int, number: int, **others: Any) -> Change:
        row = write(5, 5, 5, 5, number) if kind == "writes" else checkpoint(5, number)
        return change_of(name, **{kind: [row]})._replace(**{"entry": b"%d" % number, **others})

    with scene.session() as session:
        commit(session, STORE.set_replica(Replica(2, "")))
        commit(session, STORE.add(change(5, 0)))
        changes = [
            change(6, 1),
            change(5, 2),
            change(5, 3, term=1),
            change(5, 4, term=2, entry=None),
            change(5, 5, term=3),
        ]
        changes += [change(6, 1)] if kind == "checkpoints" else []
        added = together_added(session, changes)
        session.commit()
    # The checkpoint that is there already is left to a call of its own.
    assert [each.refused for each in added] == [None, None, "term", None, None, "begin"][: len(added)]
    found = entries(tables)
    assert [(name, body) for name, _, body in found] == [("5", b"0"), ("5", b"2"), ("5", b"5"), ("6", b"1")]
    (first, second, third), (only,) = [[at for name, at, _ in found if name == each] for each in "56"]
    assert [(each.position, each.previous) for each in added[:5]] == [
        (only, 0),
        (second, first),
        (0, 0),
        (0, 0),
        (third, second),
    ]


def add_positions(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(change_of(number)._replace(entry=b"") for number, _ in by_thread(keys))


def take_positions(keys: Iterable[Key]) -> Sequence[Query]:
    ((name, *_),) = keys
    statement = (
        "INSERT INTO threadmark_position (thread_id, position, previous) VALUES ($1, 1, 0) "
        "ON CONFLICT (thread_id) DO UPDATE SET position = threadmark_position.position + 1 RETURNING 1"
    )
    return [Query(statement, [str(name)])]


def test_positions_are_taken_in_the_order_of_threads(scene: Scene) -> None:
    make_threads(scene, range(1, 10))
    before, behind = [(number,) for number in range(1, 5)], [(number,) for number in range(6, 10)]
    assert taken_before(scene, add_positions, take_positions, (5,), before + behind) == before


def test_a_position_is_taken_behind_all_other_rows(scene: Scene) -> None:
    make_threads(scene, [5])
    change = change_of(5, checkpoints=[checkpoint(5, 5, 5)], segments={bytes([5]): b"data"})
    rows: list[tuple[Probe, Key]] = [*PUT, (take_positions, (5,))]
    for index, (take, key) in enumerate(rows):
        with scene.session() as adder, scene.session() as holder:
            order_run(holder, take([key]))
            waiting = scene.waits(partial(order_run, adder, addition([change._replace(entry=b"")])))
            assert [row for row in rows if row != (take, key) and scene.is_held(*row)] == rows[:index]
            holder.rollback()
            waiting.result()


def test_a_term_is_raised_when_all_under_the_smaller_one_have_ended(
    scene: Scene, tables: psycopg.Connection[Any]
) -> None:
    """A change that begins while the term is raised waits, and is refused: none looks before and adds after."""
    with scene.session() as adder, scene.session() as promoter, scene.session() as late, scene.session() as other:
        commit(promoter, STORE.set_replica(Replica(1, "one")))
        commit(adder, STORE.add(recorded_write(5, 0)._replace(term=1)))
        run(adder, STORE.add(recorded_write(5, 1)._replace(term=1)))
        promoting = scene.waits(partial(commit, promoter, STORE.set_replica(Replica(2, "two"))))
        too_late = scene.waits(partial(commit, late, STORE.add(recorded_write(6, 2)._replace(term=1))))
        bare = commit(other, STORE.add(change_of(7, writes=[write(5, 5, 5, 5, 1)])))  # of no pair: it does not wait
        assert bare.refused is None
        adder.commit()
        assert promoting.result() == Replica(2, "two")
        assert too_late.result() == Added(0, "term")
    assert [(name, body) for name, _, body in entries(tables)] == [("5", b"0"), ("5", b"1")]
    assert tables.execute("SELECT thread_id FROM threadmark_thread ORDER BY 1").fetchall() == [("5",), ("7",)]


def test_whoever_raises_a_term_gives_up_where_somebody_does_not_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or all who add would queue behind it for as long."""
    monkeypatch.setattr(replication, "LIMIT_WAIT", replication.LIMIT_WAIT.replace("5s", "100ms"))
    with scene.session() as paused, scene.session() as promoter, scene.session() as adder:
        run(paused, STORE.add(recorded_write(5, 0)._replace(term=1)))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run(promoter, STORE.set_replica(Replica(2, "")))
        promoter.rollback()
        assert commit(adder, STORE.add(recorded_write(6, 0)._replace(term=1))).position


def test_the_same_term_is_written_while_others_add(scene: Scene) -> None:
    with scene.session() as adder, scene.session() as watcher:
        commit(watcher, STORE.set_replica(Replica(1, "one")))
        run(adder, STORE.add(recorded_write(5, 0)._replace(term=1)))
        scene.goes_through(partial(commit, watcher, STORE.set_replica(Replica(1, "healthy"))))
        scene.goes_through(partial(commit, watcher, STORE.set_replica(Replica(0, "behind"))))
        assert commit(watcher, STORE.replica()) == Replica(1, "healthy")
        adder.commit()


def test_a_thread_buried_long_ago_is_remembered_while_it_has_entries(
    url: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, tables: psycopg.Connection[Any]
) -> None:
    monkeypatch.setattr(store, "_DELETIONS", 1)  # each looks

    def kept(table: str) -> set[str]:
        return {name for (name,) in tables.execute(f"SELECT thread_id FROM threadmark_{table}".encode())}

    with PostgresSaver(url) as saver, scene.session() as session:
        for name in ("waits", "is copied", "one", "two"):
            play(saver, name, 1)
            commit(session, STORE.record(name, b"dropped", 0))
            commit(session, STORE.set_copied(name, Copied(5, 5)))
        commit(session, STORE.settle("is copied", 2**62))
        tables.execute("UPDATE threadmark_thread SET live = false, epoch = 1 WHERE thread_id IN ('waits', 'is copied')")
        saver.delete_thread("one")
        for table in ("thread", "position", "copied"):
            assert kept(table) == {"waits", "one", "two"}
        commit(session, STORE.settle("waits", 2**62))
        saver.delete_thread("two")
        for table in ("thread", "position", "copied"):
            assert kept(table) == {"one", "two"}
