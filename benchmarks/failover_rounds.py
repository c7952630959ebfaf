"""Failover rounds on Postgres: Patroni's primary is killed, paused and cut off while three clients store.

    python benchmarks/failover_rounds.py [--rounds 1]

Two nodes of Patroni with etcd, behind HAProxy and PgBouncer (`scripts/ensure-patroni`). Printed for each fault,
with synchronous and with asynchronous replication: how many steps were acknowledged, how many of them are not there
afterwards, and the longest time between two acknowledged steps, for each route to the primary. A round takes six
minutes.
"""

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres.failing_over import FAULTS, fail_over
from postgres.patroni import Topology, expect_programs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Failovers of Postgres under load.")
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    logging.disable(logging.CRITICAL)
    expect_programs()
    print("| replication | primary | acknowledged | lost | damaged | raised | longest wait, s |")
    print("|---|---|---:|---|---:|---:|---|")
    for mode in ("synchronous", "asynchronous"):
        with Topology(synchronous=mode == "synchronous") as topology:
            for fault in list(FAULTS) * rounds:
                found = fail_over(topology, fault)
                lost = ", ".join(f"{route} {number:,}" for route, number in found.lost.items() if number) or "0"
                waited = ", ".join(f"{route} {seconds:.0f}" for route, seconds in found.waited.items())
                counts = f"{found.acknowledged:,} | {lost} | {found.damaged} | {len(found.errors)}"
                print(f"| {mode} | {fault} | {counts} | {waited} |", flush=True)


if __name__ == "__main__":
    main()
