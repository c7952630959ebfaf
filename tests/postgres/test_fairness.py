"""A removal comes to its turn: who adds later, waits behind it."""

import threading
from collections.abc import Callable

import psycopg

from patience import wait_until
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver

ADDING = """
    SELECT pg_advisory_xact_lock_shared(hashtextextended(thread_id, tableoid::bigint)) FROM threadmark_thread
    WHERE thread_id = 'thread' FOR SHARE
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('advisory', 'tuple', 'transactionid')"


def test_who_adds_later_waits_behind_a_removal(url: str) -> None:
    done: list[str] = []

    def doing(name: str, call: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            call()
            done.append(name)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    with (
        PostgresSaver(url) as remover,
        PostgresSaver(url) as adder,
        psycopg.connect(url) as first,
        psycopg.connect(url, autocommit=True) as looker,
    ):

        def wait_for(waiting: int) -> None:
            wait_until(lambda: looker.execute(WAITING).fetchone() == (waiting,), f"{waiting} should be waiting")

        config = at("thread")
        for number in range(3):
            config = remover.put(config, checkpoint({"n": number}), {}, {"n": number})
        other = adder.put(at("thread", "other"), checkpoint({"n": 0}), {}, {"n": 0})
        first.execute(ADDING)  # an adder whose transaction takes its time
        threads = [doing("removal", lambda: remover.prune(["thread"], keep_last=1))]
        wait_for(1)
        threads.append(doing("put", lambda: adder.put(other, checkpoint({"n": 1}), {}, {"n": 1})))
        wait_for(2)
        assert done == []
        first.rollback()
        for thread in threads:
            thread.join()
        assert sorted(done) == ["put", "removal"]
        assert [len(list(remover.list(at("thread", ns)))) for ns in ("", "other")] == [1, 2]
