"""`make simulate`: worlds of one seed after the other, for hours if you like.

    SEEDS=1000 make simulate       # so many seeds; FIRST=5000 begins there
    HOURS=8 make simulate          # as many as come in this time
    PLAN='17 operations=3,8 faults=1' make simulate   # one again: a seed, or the smallest part of one that failed

It prints each seed that fails, with the command that plays its smallest part again, and at the end how often each kind
of fault was met. It fails if a seed failed, or if a kind of fault was never met.
"""

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count

from simulator.met import Met
from simulator.plan import Plan
from simulator.play import play
from simulator.playing import Failure, Report, quiet, run

_BATCH = 50


def main() -> int:
    """Play the seeds that the environment names. Returns the exit code."""
    settings = {name: value for name in ("PLAN", "SEEDS", "FIRST", "HOURS") if (value := os.environ.get(name))}
    if "PLAN" in settings:
        return _again(Plan.from_text(settings["PLAN"]))
    first = int(settings.get("FIRST", "0"))
    hours = float(settings["HOURS"]) if "HOURS" in settings else None
    seeds = int(settings["SEEDS"]) if "SEEDS" in settings else (2000 if hours is None else None)
    report = _all(first, seeds, hours)
    _say(report)
    return int(bool(report.failures or report.never))


def _again(plan: Plan) -> int:
    with quiet():
        outcome = play(plan)
    _say(Failure(plan, plan, outcome) if outcome.objections else f"{plan}: nothing is wrong ({outcome.trace})")
    return int(bool(outcome.objections))


def _all(first: int, seeds: int | None, hours: float | None) -> Report:
    began, until = time.perf_counter(), None if hours is None else time.monotonic() + hours * 3600
    report = Report(0, 0.0, Met(), [])

    def batches() -> Iterator[range]:
        last = None if seeds is None else first + seeds
        for start in count(first, _BATCH):
            if (last is not None and start >= last) or (until is not None and time.monotonic() > until):
                return
            yield range(start, start + _BATCH if last is None else min(start + _BATCH, last))

    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        waiting, left = [], batches()
        for batch in left:
            waiting.append(pool.submit(partial(run, on_failure=_no_word), batch))
            if len(waiting) >= 2 * workers:
                report = _added(report, waiting.pop(0).result())
        for each in waiting:
            report = _added(report, each.result())
    return report._replace(seconds=time.perf_counter() - began)


def _added(report: Report, batch: Report) -> Report:
    for failure in batch.failures:
        _say(failure)
    report.met.add(batch.met)
    return report._replace(seeds=report.seeds + batch.seeds, failures=report.failures + batch.failures)


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _no_word(_: Failure) -> None:
    """Another process prints it."""


if __name__ == "__main__":
    sys.exit(main())
