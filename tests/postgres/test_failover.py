"""A primary and its standby: one that dies under load, the other that takes over; and the answers of a standby."""

import asyncio
import threading
from functools import partial
from typing import Any

import psycopg
import pytest

from patience import wait_until
from postgres.cluster import Cluster
from postgres.steps import APIS, play, step, thread
from threadmark import TransientStoreError
from threadmark_postgres import PostgresSaver

_WORKERS = 4


def test_the_standby_takes_over_and_nothing_acknowledged_is_lost() -> None:
    with Cluster(durable=True) as primary, Cluster(primary=primary) as standby:
        primary.configure(synchronous_standby_names="standby", synchronous_commit="on")
        both = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        with PostgresSaver(f"{both}?target_session_attrs=read-write", timeout=60) as saver:
            saver.setup()
            stored: dict[str, list[str]] = {f"thread {number}": [] for number in range(_WORKERS)}
            enough = threading.Event()
            workers = [threading.Thread(target=_store, args=(saver, name, ids, enough)) for name, ids in stored.items()]
            for worker in workers:
                worker.start()
            _wait_for(stored, 10)
            _wait_for_synchronous(primary)
            primary.kill()
            before = {name: list(ids) for name, ids in stored.items()}
            standby.promote()
            standby.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            standby.configure()
            _wait_for(stored, 10 + max(map(len, before.values())))
            enough.set()
            for worker in workers:
                worker.join()
            for name, ids in stored.items():
                assert [item.config["configurable"]["checkpoint_id"] for item in saver.list(thread(name))] == ids[::-1]
        with PostgresSaver(standby.url) as cold:
            for name, ids in stored.items():
                newest = cold.get(thread(name))
                assert newest
                assert newest["id"] == ids[-1]


def test_a_server_in_recovery_is_read_and_refuses_to_be_written() -> None:
    with Cluster() as primary, Cluster(primary=primary) as standby:
        primary.configure(synchronous_standby_names="standby", synchronous_commit="remote_apply")
        _wait_for_synchronous(primary)
        with PostgresSaver(primary.url) as saver:
            config = play(saver, "thread", 3)
        with PostgresSaver(standby.url, timeout=0.2) as saver:
            for api in APIS:
                asyncio.run(_read_only(api(saver), config))


async def _read_only(saver: Any, config: dict[str, Any]) -> None:
    put, prune = partial(saver.aput, config, *step(3)), partial(saver.aprune, ["thread"])
    for refused in (put, prune):
        found = await saver.aget(thread("thread"))
        assert found["channel_values"]["count"] == 2
        with pytest.raises(TransientStoreError, match="could not be used for"):
            await refused()
    assert await saver.aget(config)


def _store(saver: PostgresSaver, name: str, ids: list[str], enough: threading.Event) -> None:
    config = thread(name)
    number = 0
    while not enough.is_set():
        config = saver.put(config, *step(number % 7))
        ids.append(config["configurable"]["checkpoint_id"])
        number += 1


def _wait_for(stored: dict[str, list[str]], steps: int) -> None:
    wait_until(lambda: min(map(len, stored.values())) >= steps, "the workers do not get on", within=90)


def _wait_for_synchronous(primary: Cluster) -> None:
    with psycopg.connect(primary.url, autocommit=True) as connection:
        states = "SELECT sync_state FROM pg_stat_replication"
        wait_until(lambda: connection.execute(states).fetchall() == [("sync",)], "the standby is not in step")
