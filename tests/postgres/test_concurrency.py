"""Many threads, tasks, loops and processes at once: no lost write, no deadlock, no transaction left open."""

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psycopg
import pytest

from patience import wait_until
from postgres.cluster import PostgresServer
from postgres.sessions import HELD_UP, OPEN, SESSIONS
from postgres.steps import aplay, count, play, step, thread
from threadmark import Saver
from threadmark.model import Config
from threadmark_postgres import PostgresSaver


def deadlocks(tables: psycopg.Connection) -> int:
    tables.execute("SELECT pg_stat_clear_snapshot()")
    rows = tables.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(next(rows)[0])


def test_many_tasks_write_to_one_thread(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with PostgresSaver(url, pool_size=8) as first, PostgresSaver(url, pool_size=8) as second:
            config = await aplay(first, "one", 3)
            savers = [first, second]
            shared = [("messages", f"shared {number} " * 100) for number in range(20)]
            await asyncio.gather(
                *(
                    savers[number % 2].aput_writes(config, random.sample(shared, 20), f"task {number}", str(number))
                    for number in range(60)
                )
            )
            found = await first.aget_tuple(config)
            assert found
            assert len(found.pending_writes or ()) == 60 * 20 + 1

    asyncio.run(body())
    assert deadlocks(tables) == 0


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_a_deletion_takes_the_changes_that_it_waited_for(url: str, tables: psycopg.Connection, level: str) -> None:
    """Whatever isolation level the database has by default: a deleted thread keeps no checkpoint that comes back."""
    saver = PostgresSaver(f"{url}?options=-c%20default_transaction_isolation%3D{level.replace(' ', '%5C%20')}")
    with saver, psycopg.connect(url) as mine, ThreadPoolExecutor(1) as workers:
        config = play(saver, "one", 1)
        mine.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with mine.transaction():
            saver.within(mine).put({"configurable": {"thread_id": "one", "checkpoint_ns": "inner"}}, *step(1))
            saver.within(mine).put_writes(config, [("messages", "a write")], "task")
            deletion = workers.submit(saver.delete_thread, "one")
            wait_until(lambda: next(tables.execute(HELD_UP))[0], "it does not wait")
        deletion.result()
        for table in ("checkpoint", "write", "head"):
            assert not tables.execute(f"SELECT FROM threadmark_{table}").fetchall(), table


# What another transaction has changed and not committed yet, and a change that waits for it.
WAITED_FOR: dict[str, tuple[Callable[[Saver, Config], object], Callable[[Saver, Config], object]]] = {
    "a checkpoint in the same namespace": (
        lambda held, config: held.put(config, *step(1)),
        lambda saver, config: saver.put(config, *step(1)),
    ),
    "the same write to a special channel": (
        lambda held, config: held.put_writes(config, [("__error__", "one")], "task"),
        lambda saver, config: saver.put_writes(config, [("__error__", "another")], "task"),
    ),
    "the beginning of the thread": (
        lambda held, _: held.put(thread("new"), *step(1)),
        lambda saver, _: saver.put(thread("new"), *step(1)),
    ),
    "the newest checkpoint that is expected": (
        lambda held, config: held.put_writes(config, [("messages", "one")], "task"),
        lambda saver, config: saver.put(config, *step(1), expect_newest=True),
    ),
    "a thread that is deleted": (
        lambda held, config: held.put(config, *step(1)),
        lambda saver, _: saver.delete_thread("one"),
    ),
}


@pytest.mark.parametrize("waited_for", WAITED_FOR)
def test_no_change_is_put_off_because_it_waited(
    url: str, tables: psycopg.Connection, caplog: pytest.LogCaptureFixture, waited_for: str
) -> None:
    """The server refuses it in the default isolation level; the driver makes it at once in a transaction of ours."""
    first, second = WAITED_FOR[waited_for]
    saver = PostgresSaver(f"{url}?options=-c%20default_transaction_isolation%3Dserializable", combine=False)
    with saver, psycopg.connect(url) as mine, ThreadPoolExecutor(1) as workers:
        config = play(saver, "one", 1)
        mine.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with mine.transaction():
            first(saver.within(mine), config)
            waiting = workers.submit(second, saver, config)
            wait_until(lambda: next(tables.execute(HELD_UP))[0], "it does not wait")
        waiting.result()
    assert not [record for record in caplog.records if "trying again in" in record.getMessage()]


def test_two_retentions_at_once_count_everything_that_they_remove(url: str) -> None:
    """The conformance suite asks for at most that, because a Redis cluster commits each thread by itself."""
    with PostgresSaver(url) as first, PostgresSaver(url, cache_bytes=0) as second, ThreadPoolExecutor(2) as pool:
        for number in range(70):
            play(first, f"thread {number}", 2)
        halves = [pool.submit(saver.apply_retention, keep_last=1) for saver in (first, second)]
        assert sum(half.result().pruned.checkpoints for half in halves) == 70
        halves = [pool.submit(saver.apply_retention, max_bytes=0) for saver in (first, second)]
        assert sum(half.result().for_space for half in halves) == 70


def test_savers_put_prune_copy_and_delete_at_once(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url, pool_size=4) as first, PostgresSaver(url, pool_size=4, cache_bytes=0) as second:
        first.setup()
        stored: dict[str, str] = {}

        def run(saver: PostgresSaver, name: str) -> None:
            config = thread(name)
            for number in range(25):
                config = saver.put(config, *step(number % 9))
                saver.put_writes(config, [("messages", "the same words " * 50)], f"task {number}")
            stored[name] = config["configurable"]["checkpoint_id"]

        def tidy(saver: PostgresSaver) -> None:
            for _ in range(25):
                saver.prune(["a", "b"], keep_last=2)
                saver.copy_thread(random.choice("abc"), "copy")
                saver.delete_thread("copy")
                saver.delete_for_runs(["run-4"])  # never all that a thread has
                for item in saver.list(None, limit=5):
                    assert item.checkpoint["id"]

        with ThreadPoolExecutor(6) as threads:
            work = [partial(run, first, "a"), partial(run, second, "b"), partial(run, first, "c")]
            work += [partial(tidy, first), partial(tidy, second)]
            for done in [threads.submit(job) for job in work]:
                done.result()
        for name in ("a", "b", "c"):
            found = second.get(thread(name, stored[name]))
            assert found
            assert len(found["channel_values"]["messages"]) == found["channel_values"]["count"] * 10
    assert deadlocks(tables) == 0


def test_copies_in_both_directions_never_wait_for_each_other(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        for name in ("a", "b"):
            play(saver, name, 4)
        with ThreadPoolExecutor(4) as threads:
            pairs = [("a", "b"), ("b", "a")] * 30
            list(threads.map(lambda pair: saver.copy_thread(*pair), pairs))
        assert len(list(saver.list(thread("a")))) == len(list(saver.list(thread("b")))) == 8
    assert deadlocks(tables) == 0


def test_one_new_thread_is_started_by_many(url: str) -> None:
    with PostgresSaver(url) as saver, ThreadPoolExecutor(8) as threads:
        saver.setup()
        for name in map(str, range(10)):
            list(threads.map(lambda number, name=name: saver.put(thread(name), *step(number)), range(8)))
            assert len(list(saver.list(thread(name)))) == 8


def test_a_deleted_thread_starts_anew_once_for_many(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver, ThreadPoolExecutor(8) as threads:
        for _ in range(10):
            list(threads.map(lambda number: saver.put(thread("one"), *step(number)), range(8)))
            assert len(list(saver.list(thread("one")))) == 8
            saver.delete_thread("one")
            assert next(tables.execute("SELECT count(*) FROM threadmark_segment"))[0] == 0
            assert next(tables.execute("SELECT count(*) FROM threadmark_head"))[0] == 0
    assert deadlocks(tables) == 0


def test_one_saver_serves_loops_in_several_threads_and_blocking_callers(url: str) -> None:
    with PostgresSaver(url, pool_size=2) as saver:

        def in_a_loop(name: str) -> None:
            for part in range(2):
                asyncio.run(aplay(saver, f"{name} {part}", 3))

        workers = [threading.Thread(target=in_a_loop, args=(str(number),)) for number in range(4)]
        for worker in workers:
            worker.start()
        play(saver, "blocking", 5)
        for worker in workers:
            worker.join()
        assert len(list(saver.list(None))) == 4 * 2 * 3 + 5


def test_a_loop_that_ends_closes_its_connections(url: str, tables: psycopg.Connection) -> None:
    saver = PostgresSaver(url)
    asyncio.run(aplay(saver, "one", 2))
    wait_until(lambda: next(tables.execute(SESSIONS))[0] == 0, "a connection is left")
    asyncio.run(aplay(saver, "two", 2))
    saver.close()


def test_a_blocking_call_inside_a_running_loop_works(url: str) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            await aplay(saver, "one", 2)
            assert count(saver, "one") == 1

    asyncio.run(body())


@pytest.mark.parametrize("seed", range(4))
def test_a_cancelled_task_leaves_nothing_open_and_nothing_half(url: str, tables: psycopg.Connection, seed: int) -> None:
    randomness = random.Random(seed)

    async def body() -> None:
        async with PostgresSaver(url, pool_size=2) as saver:
            config = await aplay(saver, "one", 4)
            saver.copy_thread("one", "two")
            for number in range(25):
                batch = [("messages", f"{number} {part} " * 100) for part in range(4)]
                work = [
                    asyncio.ensure_future(saver.aput_writes(config, batch, f"task {number}")),
                    asyncio.ensure_future(saver.acopy_thread("one", f"copy {number}")),
                    asyncio.ensure_future(saver.aget_tuple(config)),
                ]
                await asyncio.sleep(randomness.random() * 0.006)
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)
            found = await saver.aget_tuple(config)
            assert found
            batches: dict[str, int] = {}
            for task_id, _, _ in found.pending_writes or ():
                batches[task_id] = batches.get(task_id, 0) + 1
            assert {size for task_id, size in batches.items() if task_id != "task-3"} <= {4}
            assert len([item async for item in saver.alist(thread("two"))]) == 4
            copies = [item.config["configurable"]["thread_id"] async for item in saver.alist(None)]
            assert {copies.count(name) for name in copies} == {4}
            assert next(tables.execute(OPEN))[0] == 0

    asyncio.run(body())


def test_a_cancelled_task_finishes_on_a_connection_that_was_given(url: str) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            saver = PostgresSaver(connection)
            config = await aplay(saver, "one", 2)
            for number in range(20):
                task = asyncio.ensure_future(saver.aput_writes(config, [("count", number)], f"task {number}"))
                await asyncio.sleep(0.0005)
                task.cancel()
            assert await saver.aget(thread("one"))
            assert not connection.closed
            await saver.aclose()

    asyncio.run(body())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_a_forked_process_opens_connections_of_its_own(url: str, cluster: PostgresServer) -> None:
    assert cluster.port
    program = """
import faulthandler, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say about a fork beside threads
sys.path.insert(0, sys.argv[2])
from postgres.steps import *
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver.exchange import _of_connection
saver = PostgresSaver(sys.argv[1])
play(saver, "one", 2)
held, forked = threading.Event(), threading.Event()
def hold():
    with saver._postgres._changing:
        held.set()
        forked.wait()
other = threading.Thread(target=hold)
other.start()
held.wait()
faulthandler.dump_traceback_later(60, exit=True)
told, child_tells = os.pipe()
if (child := os.fork()) != 0:
    forked.set()
    other.join()
play(saver, "child" if child == 0 else "parent", 3)
# Behind a pooler, both may meet one session: the names of their statements must differ.
names = {name for each in saver._postgres._pool._idle for name in _of_connection[each].names.values()}
assert names
beginnings = {name.rpartition(b"_")[0] for name in names}
if child == 0:
    os.write(child_tells, *beginnings)
    os._exit(0 if count(saver, "one") == 1 else 1)
assert os.read(told, 100) not in beginnings
_, status = os.waitpid(child, 0)
assert status == 0
assert (count(saver, "child"), count(saver, "parent")) == (2, 2)
saver.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, url, str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
