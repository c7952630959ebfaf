"""Behind PgBouncer in transaction mode, many savers' connections share few sessions of the server."""

import asyncio
import threading

from postgres.bouncer import shared_bouncer
from postgres.cluster import shared
from postgres.steps import aplay, count, play
from threadmark_postgres import PostgresSaver

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
