"""A removal comes to its turn, however many put to the thread without a pause."""

import threading

from redis_backend.processes import RedisProcess
from threadmark import ThreadmarkError
from threadmark_conformance.engine import at, checkpoint
from threadmark_redis import RedisSaver, transactions

WRITERS = 4


def test_removals_come_to_their_turn_beside_writers(server: RedisProcess, prefix: str) -> None:
    _prune_beside_writers(server, prefix, removals=20)


def test_writers_wait_longer_each_time_that_they_overtake_a_removal() -> None:
    holds = [transactions._hold(attempt) for attempt in range(transactions.ATTEMPTS)]
    first, longest = transactions._HELD_ATTEMPTS, transactions._LONGEST_HOLD
    assert not any(holds[:first])
    assert holds[first : first + 4] == [200_000, 400_000, 800_000, 1_600_000]
    assert set(holds[first + 4 :]) == {longest}


def _prune_beside_writers(server: RedisProcess, prefix: str, *, removals: int) -> None:
    stop = threading.Event()
    failures: list[ThreadmarkError] = []
    counts = [0] * WRITERS

    def write(number: int) -> None:
        with RedisSaver(server.url, prefix=prefix, durability="memory") as saver:
            config = at("thread", f"writer {number}")
            try:
                while not stop.is_set():
                    config = saver.put(config, checkpoint({"n": counts[number]}), {}, {"n": counts[number] + 1})
                    counts[number] += 1
            except ThreadmarkError as error:
                failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        with RedisSaver(server.url, prefix=prefix, durability="memory") as saver:
            while not all(counts):
                stop.wait(0.01)
            for _ in range(removals):
                saver.prune(["thread"], keep_last=2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert sum(counts) > removals  # the writers were not kept waiting for ever, either
