"""Behind PgBouncer in transaction mode, many savers' connections share few sessions of the server."""

import asyncio
import threading

import pytest

from postgres.bouncer import shared_bouncer
from postgres.cluster import shared
from postgres.steps import aplay, count, play, thread
from threadmark import ClosedError, TransientStoreError
from threadmark_postgres import PostgresSaver
from threadmark_store import Store

NAMES = [f"thread {number}" for number in range(24)]


def test_more_tasks_and_threads_than_sessions() -> None:
    url = shared_bouncer().url

    async def tasks(saver: PostgresSaver) -> None:
        await asyncio.gather(*(aplay(saver, f"task of {name}", 5) for name in NAMES))

    shared().execute("DROP SCHEMA IF EXISTS behind CASCADE")
    with PostgresSaver(url, schema="behind", prepare=False) as saver:
        workers = [threading.Thread(target=play, args=(saver, name, 5)) for name in NAMES]
        for worker in workers:
            worker.start()
        asyncio.run(tasks(saver))
        for worker in workers:
            worker.join()
        assert {count(saver, name) for name in NAMES} == {4}
        assert {count(saver, f"task of {name}") for name in NAMES} == {4}
        for name in NAMES:
            saver.delete_thread(name)
            assert count(saver, name) is None
        assert len(list(saver.list(None))) == 5 * len(NAMES)


def _lose_the_session(saver: PostgresSaver) -> None:
    """Have the session of a block end in the middle of it."""
    with saver.transaction() as tx:
        play(tx.saver, "lost", 1)
        shared().execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'")
        with pytest.raises(TransientStoreError, match="terminating connection due to administrator command"):
            Store(tx.saver).put(("users",), "ada", {"n": 1})
        with pytest.raises(ClosedError, match="closed or lost, and the transaction with it: repeat it"):
            Store(tx.saver).get(("users",), "ada")


def test_a_block_whose_session_ends_says_why() -> None:
    shared().execute("DROP SCHEMA IF EXISTS behind CASCADE")
    with PostgresSaver(shared_bouncer().url, schema="behind", prepare=False) as saver:
        Store(saver).setup()
        with pytest.raises(TransientStoreError, match="the connection was lost, and the transaction with it"):
            _lose_the_session(saver)
        assert saver.get(thread("lost")) is None
        assert Store(saver).get(("users",), "ada") is None
