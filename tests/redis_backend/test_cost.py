"""The benchmark of Redis' cost runs from end to end; so little is measured here that the figures mean nothing."""

import subprocess
import sys

import redis_cost
from workloads import WORKLOADS


def test_memory_and_speed_are_measured_on_every_kind_of_server() -> None:
    # A separate process, as the benchmark always has: clients of redis-py leave connections to the garbage collector.
    command = [sys.executable, redis_cost.__file__, "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and "---" not in line]
    assert [row.split("|")[1].strip() for row in rows] == [
        "workload",
        *WORKLOADS,
        "calls a second, bare script = 1",
        "single server",
        *(f"cluster, {masters} master{'s' * (masters > 1)}" for masters in (1, 2, 3)),
    ]
