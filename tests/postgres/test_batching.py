"""The statements of callers that add at the same time travel together, and no caller is the worse for it."""

import asyncio
import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest

from patience import wait_until
from postgres.cluster import PostgresServer
from postgres.proxy import Proxy
from postgres.sessions import END_SESSIONS, HELD_UP, SESSIONS
from postgres.steps import APIS, aplay, count, play, step, thread
from postgres.test_concurrency import deadlocks
from threadmark import ClosedError, ConfigError, Saver, StoreError, ThreadDeletedError
from threadmark.program import Transaction
from threadmark.store.contract import Change, CheckpointRow, Outline, WriteRow
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver import aio
from threadmark_postgres.driver.batching import MOST, Batch, BatchMember
from threadmark_postgres.driver.blocking import _LEADERS, StatementBatcher, _Member
from threadmark_postgres.steps import Query, Rows
from threadmark_postgres.store import PostgresStore

_BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'threadmark_write'::regclass"

NAMES = [f"thread {number}" for number in range(MOST)]


async def warmed(saver: PostgresSaver) -> list[dict[str, Any]]:
    """A checkpoint in each thread, so that the next put reads nothing."""
    return await asyncio.gather(*(aplay(saver, name, 3) for name in NAMES))


def test_two_checkpoints_of_one_thread_travel_together(url: str) -> None:
    with PostgresSaver(url) as saver:
        before = play(saver, "thread", 2)
        made = [step(number) for number in (2, 3)]
        parts: list[Query] = []
        run = saver._driver.run

        def noted(transaction: Transaction[Any]) -> Any:
            if transaction.writes and (query := BatchMember(transaction).query):
                parts.append(query)
            return run(transaction)

        saver._driver.run = noted  # type: ignore[method-assign]
        for each in made:
            saver.put(before, *each)
        with psycopg.connect(url) as connection:
            register_dumpers(connection)
            newest_before = before["configurable"]["checkpoint_id"]
            connection.execute("DELETE FROM threadmark_checkpoint WHERE rank > %s", [newest_before])
            connection.execute("UPDATE threadmark_head SET rank = %s", [newest_before])
            cursor = psycopg.RawCursor(connection)
            for query in Batch(parts).queries:
                ((_, outcome, *_),) = cursor.execute(query.sql, query.params, binary=True).fetchall()
                assert outcome is None
        newest = saver.get(thread("thread"))
        assert newest
        assert newest["id"] == made[-1][0]["id"]


@pytest.mark.parametrize("combine", [True, False])
def test_tasks_that_put_at_the_same_time_make_one_round_trip(
    proxy: Proxy, cluster: PostgresServer, url: str, *, combine: bool
) -> None:
    async def body() -> None:
        through = url.replace(f":{cluster.port}/", f":{proxy.port}/") + "?sslmode=disable"
        async with PostgresSaver(through, combine=combine) as saver:
            configs = await warmed(saver)
            for number in range(8):
                before = proxy.round_trips
                task_id = f"late {number}"
                await asyncio.gather(*(saver.aput_writes(config, [("count", 7)], task_id) for config in configs))
                assert (proxy.round_trips - before == 1) == combine
            before = proxy.round_trips
            await asyncio.gather(*(saver.aput(config, *step(5)) for config in configs))
            assert (proxy.round_trips - before < len(configs) / 2) == combine
            assert {count(saver, name) for name in NAMES} == {5}

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_one_bad_put_fails_alone(url: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            await warmed(saver)
            bad = thread(os.urandom(4000).hex())
            work = [calls.aput(thread(name), *step(4)) for name in NAMES[1:]]
            outcomes = await asyncio.gather(calls.aput(bad, *step(4)), *work, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [ConfigError, *[dict] * len(work)]
            assert {count(saver, name) for name in NAMES[1:]} == {4}

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_what_comes_too_late_is_refused_alone(url: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver, PostgresSaver(url) as other:
            calls = api(saver)
            configs = await warmed(saver)
            await other.adelete_thread(NAMES[0])
            outcomes = await asyncio.gather(
                *(calls.aput(config, *step(4)) for config in configs), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [ThreadDeletedError, *[dict] * (len(configs) - 1)]
            assert count(saver, NAMES[0]) is None
            assert {count(saver, name) for name in NAMES[1:]} == {4}

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_removal_of_one_thread_holds_up_no_other(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            configs = await warmed(saver)
            with tables.transaction():
                tables.execute("SELECT FROM threadmark_thread WHERE thread_id = %s FOR UPDATE", [NAMES[3]])
                work = [asyncio.ensure_future(calls.aput(config, *step(6))) for config in configs]
                await asyncio.wait([task for name, task in zip(NAMES, work, strict=True) if name != NAMES[3]])
                assert not work[3].done()
            await asyncio.gather(*work)
            assert {count(saver, name) for name in NAMES} == {6}

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_changes_to_one_thread_travel_together(url: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 1)
            writes = [("messages", "the first"), ("__interrupt__", "whichever")]
            tasks = [f"task {number % 5}" for number in range(MOST)]
            await asyncio.gather(*(calls.aput_writes(config, writes, task) for task in tasks))
            puts = [step(number) for number in range(6)]
            await asyncio.gather(*(calls.aput(config, *arguments) for arguments in [*puts, *puts]))
            found = await calls.aget_tuple(config)
            assert len(found.pending_writes) == 1 + 5 * len(writes)
            assert len(list(saver.list(thread("one")))) == 1 + len(puts)

    asyncio.run(body())


def test_a_cancelled_task_takes_no_other_with_it(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            configs = await warmed(saver)
            with tables.transaction():
                tables.execute("LOCK TABLE threadmark_write IN EXCLUSIVE MODE")
                work = [asyncio.ensure_future(saver.aput_writes(config, [("count", 1)], "late")) for config in configs]
                await asyncio.to_thread(wait_until, lambda: next(tables.execute(_BLOCKED))[0], "nobody waits")
                work[1].cancel()
                await asyncio.sleep(0)
            outcomes = await asyncio.gather(*work, return_exceptions=True)
            assert isinstance(outcomes[1], asyncio.CancelledError)
            assert outcomes[:1] + outcomes[2:] == [None] * (len(work) - 1)
            for config in configs[2:]:
                found = await saver.aget_tuple(config)
                assert found
                assert len(found.pending_writes or ()) == 2

    asyncio.run(body())


def change(number: int) -> Query:
    return Query("ADD", (number,), likely_last=True)


def test_nothing_acknowledged_is_lost_while_sessions_end_under_batches(url: str, tables: psycopg.Connection) -> None:
    stored: list[str] = []

    async def run(saver: PostgresSaver, name: str) -> None:
        config = thread(name)
        for number in range(12):
            config = await saver.aput(config, *step(number % 4))
            stored.append(config["configurable"]["checkpoint_id"])
            await saver.aput_writes(config, [("count", number)], f"task of {name}")

    async def body() -> None:
        async with PostgresSaver(url, pool_size=4) as saver:
            await saver.asetup()
            work = [asyncio.ensure_future(run(saver, name)) for name in NAMES]
            for _ in range(8):
                tables.execute(END_SESSIONS)
                await asyncio.sleep(0.03)
            await asyncio.gather(*work)
            found = [item async for item in saver.alist(None)]
            assert {item.config["configurable"]["checkpoint_id"] for item in found} == set(stored)
            assert len(stored) == 12 * len(NAMES)
            assert {len(item.pending_writes or ()) for item in found} == {1}

    asyncio.run(body())


def change_of(segment: int, header: int, metadata: int, value: int) -> Change:
    """A change with a segment, a checkpoint and a write of these lengths."""
    outline = Outline("thread", "", "id", "id", None, 0, "x" * metadata)
    write = WriteRow("", "id", "task", 0, "", "channel", bytes(value), b"")
    return Change(
        "thread", None, 1, {b"key": bytes(segment)}, [CheckpointRow(outline, bytes(header), b"", None)], [write], None
    )


def test_a_large_change_goes_alone() -> None:
    store = PostgresStore(None)
    for size, is_shared in ((60_000, True), (70_000, False)):
        for sizes in set(itertools.permutations((size, 1, 1, 1))):
            with closing(BatchMember(Transaction(partial(store.add, change_of(*sizes)), writes=True))) as part:
                assert bool(part.query) == is_shared, sizes


class Server:
    """Answers each change with its own number, when it is let."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)

    def ask(self, queries: Sequence[Query]) -> list[Rows]:
        self.asked.append([query.params[0] for query in queries])
        self.begun.release()
        assert self.go_on.acquire(timeout=60)
        return [[tuple(query.params)] if query.params != (13,) else [] for query in queries]


def started(batcher: StatementBatcher, number: int, answers: dict[int, Rows]) -> threading.Thread:
    worker = threading.Thread(target=lambda: answers.update({number: batcher.rows(change(number))}))
    worker.start()
    return worker


def waiting(batcher: StatementBatcher) -> int:
    return len(batcher._waiting)


def test_threads_that_come_while_others_ask_go_together() -> None:
    server, answers = Server(), dict[int, Rows]()
    batcher = StatementBatcher(server.ask)
    workers = []
    for number in range(2):
        workers.append(started(batcher, number, answers))
        assert server.begun.acquire(timeout=60)
    workers += [started(batcher, number, answers) for number in range(2, MOST + 5)]
    wait_until(lambda: waiting(batcher) == MOST + 3, "they do not wait")
    server.go_on.release(6)
    for worker in workers:
        worker.join()
    assert max(map(len, server.asked)) == MOST
    assert len(server.asked) <= 2 + 4
    assert answers == {number: [] if number == 13 else [(number,)] for number in range(MOST + 5)}


def test_the_main_thread_which_interrupts_strike_leads_nobody(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[threading.Thread] = []
    rows = StatementBatcher.rows

    def watched(batcher: StatementBatcher, query: Query) -> Rows:
        seen.append(threading.current_thread())
        return rows(batcher, query)

    monkeypatch.setattr(StatementBatcher, "rows", watched)
    with PostgresSaver(url) as saver:
        play(saver, "one", 2)
        assert not seen
        worker = threading.Thread(target=play, args=(saver, "one", 2))
        worker.start()
        worker.join()
        assert set(seen) == {worker}


class Told(list[_Member]):
    """Those who wait, which another caller makes lead as soon as they come."""

    def append(self, member: _Member) -> None:
        member.leads = True
        member.turn.release()


@pytest.mark.parametrize("others", [0, 2 * MOST])
def test_a_leader_at_the_end_of_its_stack_answers_all_and_hands_on(others: int) -> None:
    def ask(queries: Sequence[Query]) -> list[Rows]:
        return [[tuple(query.params)] for query in queries]

    def lead_below(frames: int, batcher: StatementBatcher) -> None:
        if frames:
            lead_below(frames - 1, batcher)
        else:
            batcher.rows(query)

    def lead_near_the_limit() -> None:
        limit = sys.getrecursionlimit()
        for frames in range(limit - 40, limit):
            batcher = StatementBatcher(ask)
            batcher.rows(query)
            members = [_Member(change(number)) for number in range(others)]
            if others:
                batcher._leading = _LEADERS
                batcher._waiting = Told(members)
            with contextlib.suppress(RecursionError):
                lead_below(frames, batcher)
            going_on = [member.turn.acquire(blocking=False) for member in members].count(True)
            leaders = [member.leads for member in members].count(True)
            taken = len(members) - len(batcher._waiting)
            seen.append((taken, going_on, leaders, batcher._leading))

    query = change(0)
    seen: list[tuple[int, int, int, int]] = []
    leader = threading.Thread(target=lead_near_the_limit)
    leader.start()
    leader.join()
    assert len(seen) == 40
    assert set(seen) == ({(MOST, MOST, 1, _LEADERS), (0, 0, 0, _LEADERS)} if others else {(0, 0, 0, 0)})


def test_tasks_hear_of_a_refusal_of_the_pool_and_go_alone_where_the_statement_failed() -> None:
    failures: list[Exception] = [StoreError("all connections are in use"), psycopg.DataError("somebody's row")]

    async def ask(_: Sequence[Query]) -> list[Rows]:
        raise failures[0]

    async def body() -> None:
        batcher = aio.StatementBatcher(ask)
        work = [batcher.rows(change(number)) for number in range(MOST + 1)]
        assert {type(outcome) for outcome in await asyncio.gather(*work, return_exceptions=True)} == {StoreError}
        failures.reverse()
        work = [batcher.rows(change(number)) for number in range(MOST + 1)]
        assert await asyncio.gather(*work) == [[]] * (MOST + 1)

    asyncio.run(body())


def test_when_the_pool_refuses_all_who_waited_get_the_error_and_the_next_call_may_succeed() -> None:
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)
    asked, refused = list[int](), list[int]()

    def ask(queries: Sequence[Query]) -> list[Rows]:
        asked.append(len(queries))
        begun.release()
        assert go_on.acquire(timeout=60)
        raise StoreError("all connections are in use")

    def work(number: int) -> None:
        with pytest.raises(StoreError, match="in use"):
            batcher.rows(change(number))
        refused.append(number)

    batcher = StatementBatcher(ask)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(MOST + 2)]
    for worker in workers:
        worker.start()
    wait_until(lambda: waiting(batcher) == MOST, "they do not wait")
    go_on.release(4)
    for worker in workers:
        worker.join()
    assert sorted(refused) == list(range(MOST + 2))
    assert sum(asked) == MOST + 2
    assert len(asked) <= 4
    assert batcher._leading == 0


def read_committed(url: str) -> str:
    """The same database as most servers have it, whatever this one's default is."""
    return f"{url}?options=-c%20default_transaction_isolation%3Dread%5C%20committed"


def rows_of(tables: psycopg.Connection, checkpoint_id: str) -> int:
    query = "SELECT count(*) FROM threadmark_checkpoint WHERE coalesce(id, rank) = %s"
    return int(next(tables.execute(query, [checkpoint_id]))[0])


def test_a_checkpoint_put_twice_at_once_is_stored_under_one_rank(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            parent = await saver.aput(thread("one"), *step(1))
            made, metadata, versions = step(2)
            made["id"] = f"0{made['id'][1:]}"  # the clock was set back: after the parent it gets another rank
            await asyncio.gather(
                saver.aput(thread("one"), made, metadata, versions), saver.aput(parent, made, metadata, versions)
            )
            assert rows_of(tables, made["id"]) == 1
            assert await saver.aget_tuple(thread("one", made["id"]))

    asyncio.run(body())


def test_a_checkpoint_that_two_savers_put_at_once_after_two_parents_has_one_rank(
    url: str, tables: psycopg.Connection
) -> None:
    with PostgresSaver(read_committed(url), combine=False) as saver, psycopg.connect(url) as holder:
        parent = saver.put(thread("one"), *step(1))
        made, *more = step(2)
        made["id"] = f"0{made['id'][1:]}"
        saver.put(thread("one"), *step(1))
        holder.execute("UPDATE threadmark_head SET rank = rank")  # so that neither sees the other's rows
        with ThreadPoolExecutor(2) as pool:
            work = [pool.submit(saver.put, config, made, *more) for config in (parent, thread("one"))]
            wait_until(lambda: next(tables.execute(HELD_UP))[0] == len(work), "they are not held up")
            holder.commit()
            for each in work:
                each.result()
        assert rows_of(tables, made["id"]) == 1
        found = saver.get(thread("one", made["id"]))
        assert found
        assert found["channel_values"]["count"] == 2
        saver.put(parent, made, *more)
        assert rows_of(tables, made["id"]) == 1


def test_a_checkpoint_that_two_savers_rank_after_two_parents_is_stored_by_both_under_one_rank(
    url: str, tables: psycopg.Connection
) -> None:
    with PostgresSaver(read_committed(url), combine=False) as saver, psycopg.connect(url) as holder:
        first = saver.put(thread("one"), *step(1))
        second = saver.put(first, *step(1))
        made, *more = step(2)
        made["id"] = f"0{made['id'][1:]}"  # the clock was set back
        with ThreadPoolExecutor(2) as pool:
            holder.execute("UPDATE threadmark_head SET rank = rank")  # so that neither sees the other's rows
            work = [pool.submit(saver.put, parent, made, *more) for parent in (first, second)]
            wait_until(lambda: next(tables.execute(HELD_UP))[0] == len(work), "they are not held up")
            holder.commit()
            for each in work:
                each.result()
        assert rows_of(tables, made["id"]) == 1
        assert saver.get(thread("one", made["id"]))


def test_savers_that_begin_a_deleted_thread_anew_never_wait_in_a_circle(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver, PostgresSaver(url) as cold, psycopg.connect(url) as remover:
        play(saver, "one", 2)
        cold.setup()
        remover.execute("SELECT FROM threadmark_thread FOR UPDATE")
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(cold.put, thread("one"), *step(1)) for _ in range(4)]
            wait_until(lambda: next(tables.execute(HELD_UP))[0] == len(work), "they are not held up")
            remover.execute("UPDATE threadmark_thread SET live = false, epoch = epoch + 1, deleted_up_to = ''")
            remover.execute("DELETE FROM threadmark_checkpoint")
            remover.execute("DELETE FROM threadmark_write")
            remover.execute("DELETE FROM threadmark_head")
            remover.commit()
            for each in work:
                each.result()
        assert len(list(saver.list(thread("one")))) == len(work)
    # The sessions are over, so all that they counted is known.
    assert deadlocks(tables) == 0


def test_closing_a_saver_that_many_use_answers_everybody_and_leaves_no_session(
    url: str, tables: psycopg.Connection
) -> None:
    stored: list[str] = []
    saver = PostgresSaver(url, pool_size=2)

    def work(number: int) -> None:
        with contextlib.suppress(ClosedError):
            while True:
                config = saver.put(thread(f"of thread {number}"), *step(1))
                stored.append(config["configurable"]["checkpoint_id"])

    async def awork(number: int) -> None:
        with contextlib.suppress(ClosedError):
            while True:
                config = await saver.aput(thread(f"of task {number}"), *step(1))
                stored.append(config["configurable"]["checkpoint_id"])

    async def tasks() -> None:
        await asyncio.gather(*(awork(number) for number in range(3 * MOST)))

    with ThreadPoolExecutor(MOST + 1) as pool:
        working = [pool.submit(work, number) for number in range(MOST)]
        working.append(pool.submit(asyncio.run, tasks()))
        wait_until(lambda: len(stored) > 4 * MOST, "they store nothing")
        saver.close()
        for each in working:
            each.result()
    found = {checkpoint_id for (checkpoint_id,) in tables.execute("SELECT rank FROM threadmark_checkpoint")}
    assert set(stored) <= found
    wait_until(lambda: next(tables.execute(SESSIONS))[0] == 0, "a session is left")


def test_threads_play_together(url: str) -> None:
    with PostgresSaver(url) as saver:
        workers = [threading.Thread(target=play, args=(saver, name, 8)) for name in NAMES]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert {count(saver, name) for name in NAMES} == {7}
        assert len(list(saver.list(None))) == 8 * len(NAMES)


def test_who_adds_waits_for_another_who_begins_the_thread_anew(url: str) -> None:
    with PostgresSaver(url) as saver, psycopg.connect(url) as other:
        made = [saver.put(thread("one"), *step(1))]
        # As another saver does that found the thread deleted, and then was not the first to begin it again.
        other.execute("UPDATE threadmark_thread SET live = true")
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(saver.put, thread("one"), *step(number)) for number in range(2, 6)]
            assert not wait(work, timeout=0.5).done
            other.commit()
            made += [each.result() for each in work]
        listed = {item.config["configurable"]["checkpoint_id"] for item in saver.list(thread("one"))}
        assert listed == {config["configurable"]["checkpoint_id"] for config in made}
