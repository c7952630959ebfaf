"""Redis rounds: a server killed with SIGKILL under load; acknowledged writes are compared with the stored ones.

    python benchmarks/redis_rounds.py --rounds 100

The server has `appendonly yes` and `appendfsync always`. One saver, which lives through all rounds, serves
threads and tasks that put and write without pause; the server is killed at a random moment and started again. After
each round everything that was acknowledged in it must be there, each checkpoint and each batch of writes whole or not
at all; after the last one that of all rounds, as a new saver reads it.
"""

import argparse
import json
import logging
import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

from client_log import ClientLog, Load, all_faults
from threadmark_redis import RedisSaver

WRITERS = 8
_PUTS = 3
"""So many each writer has acknowledged before the server is killed."""
_LONGEST_WAIT = 0.05


class Rounds(NamedTuple):
    """The outcome of the rounds."""

    killed: int
    puts: int
    batches: int
    lost_or_torn: list[str]


def redis_rounds(rounds: int, seed: int) -> Rounds:
    """Kill the server as many times as asked."""
    from redis_backend.processes import DURABLE, RedisProcess

    chance = random.Random(seed)
    logs: list[ClientLog] = []
    faults: list[str] = []
    with RedisProcess(DURABLE).start() as server, RedisSaver(server.url, durability="full", timeout=120) as saver:
        for number in range(rounds):
            load = Load(saver, f"round {number}", WRITERS)
            with load.running():
                load.wait_for(_PUTS)
                time.sleep(chance.uniform(0, _LONGEST_WAIT))
                server.kill()
                server.start()
                load.wait_for(1)
            faults += all_faults(load.logs, saver)
            logs += load.logs
        with RedisSaver(server.url, durability="full", cache_bytes=0) as cold:
            faults += all_faults(logs, cold)
    return Rounds(rounds, sum(log.put for log in logs), sum(log.written for log in logs), faults)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    logging.getLogger("threadmark.redis").setLevel(logging.ERROR)  # it would tell of every attempt
    result = redis_rounds(asked.rounds, asked.seed)
    print(json.dumps(result._asdict(), indent=4))
    sys.exit(bool(result.lost_or_torn))


if __name__ == "__main__":
    main()
