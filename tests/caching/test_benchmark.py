"""The benchmark of caches runs from end to end; so little is measured here that the times mean nothing."""

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "cache_cost.py"


def test_every_side_is_measured_and_a_warm_cache_spares_the_database_the_bytes() -> None:
    done = subprocess.run([sys.executable, BENCHMARK, "--smoke"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    rows = {row[0]: (int(row[3]), int(row[4].replace(",", ""))) for row in cells[2:]}
    assert len(rows) == 14
    bare, warm, cold = (rows[f"chat: {name}"] for name in ("bare", "Redis, warm", "Redis, cold"))
    assert bare[0] == warm[0] == 1
    assert cold[0] == 2
    assert warm[1] < bare[1] / 4
    assert len({rows[name] for name in rows if name.startswith("tiny")}) == 1
