"""Replication rounds: one of two databases is broken under load, and acknowledged writes are compared with both.

    python benchmarks/replication_rounds.py --rounds 200

Worker processes put, write, prune and delete through `threadmark.replicated`. In each round a server is killed,
stopped, restarted, cut off, or loses its answers, or workers are killed; the writes move to the other side, by hand or
by themselves; then everything is mended and copied. The rounds are divided between the pairs and both modes. Anything
that the checker objects to (tests/replication/checker.py) fails the run.
"""

import argparse
import logging
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from replication.chaos import Chaos
from replication.checker import Mode
from replication.rounds import Outcome, all_plans
from replication.servers import FilePlace, PostgresPlace, RedisPlace, Server
from replication.workers import Workers

_SHOWN, _LENGTH = 5, 400
"""The most objections to one round that are printed."""

COLUMNS = ("rounds", "acknowledged", "raised", "unknown", "failovers", "missing", "lag", "objections", "seconds")


def replication_rounds(rounds: int, seed: int, only: str = "") -> tuple[dict[str, list[Outcome]], list[str]]:
    """Play the rounds. Returns their outcomes for each pair and mode, and every objection."""
    found: dict[str, list[Outcome]] = {}
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        workers = closing.enter_context(Workers())
        postgres, redis = closing.enter_context(PostgresPlace()), closing.enter_context(RedisPlace())
        files = FilePlace(), FilePlace()
        pairs: dict[str, tuple[Server, Server]] = {
            "Postgres+Redis": (postgres, redis),
            "Redis+Postgres": (redis, postgres),
            "Postgres+SQLite": (postgres, files[0]),
            "SQLite+SQLite": files,
        }
        modes: tuple[Mode, ...] = get_args(Mode)
        chosen = [(name, mode) for name, mode in product(pairs, modes) if only in f"{name} {mode}"]
        chaoses = {}
        for name, mode in chosen:
            place = folder / f"{name} {mode}"
            place.mkdir()
            chaoses[name, mode] = closing.enter_context(Chaos(pairs[name], mode, place, workers))
        plans = all_plans()
        for number in range(rounds):
            name, mode = chosen[number % len(chosen)]
            plan = plans[number // len(chosen) % len(plans)]
            outcome = chaoses[name, mode].round(plan, seed + number)
            found.setdefault(f"{name} {mode}", []).append(outcome)
            note(f"{number + 1} of {rounds}: {name} {mode}: {outcome.seconds:.1f} s, {', '.join(map(str, plan))}")
            for objection in outcome.objections[:_SHOWN]:
                note(f"    {objection[:_LENGTH]}")
            if len(outcome.objections) > _SHOWN:
                note(f"    and {len(outcome.objections) - _SHOWN} more")
    return found, [objection for each in found.values() for outcome in each for objection in outcome.objections]


def table(found: dict[str, list[Outcome]]) -> str:
    """Return the figures as a table."""
    lines = ["| pair | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    lines += [f"| {name} | " + " | ".join(_figures(outcomes)) + " |" for name, outcomes in found.items()]
    lines.append("| all | " + " | ".join(_figures([each for some in found.values() for each in some])) + " |")
    return "\n".join(lines)


def _figures(outcomes: list[Outcome]) -> list[str]:
    return [
        str(len(outcomes)),
        *(str(sum(getattr(each, name) for each in outcomes)) for name in COLUMNS[1:5]),
        str(max(each.missing for each in outcomes)),
        f"{max(each.lag for each in outcomes):.1f}",
        str(sum(len(each.objections) for each in outcomes)),
        f"{sum(each.seconds for each in outcomes):.0f}",
    ]


def note(line: str) -> None:
    """Say how far it is."""
    sys.stderr.write(f"{line}\n")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help='pairs and modes whose name has this in it, such as "Redis sync"')
    asked = parser.parse_args()
    logging.getLogger("threadmark").setLevel(logging.CRITICAL)  # it would tell of every attempt
    began = time.monotonic()
    found, objections = replication_rounds(asked.rounds, asked.seed, asked.only)
    print(table(found))
    print(
        f"{time.monotonic() - began:.0f} s; missing: the most in one round when the other side took over; lag: seconds"
    )
    sys.exit(bool(objections))


if __name__ == "__main__":
    main()
