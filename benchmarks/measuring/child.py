"""The child process: it reads its jobs from the command line and prints one JSON object with their figures.

    python -m measuring.child '{"jobs": [...]}'

A measured side is alone in its process, so that neither waits for the other's disk, heap or garbage collector. A smoke
run gives all jobs of a side to one process, because starting one takes longer than its job then.
"""

import json
import sys
from importlib import import_module

from measuring.jobs import CROWD, LONG, STEPS, TURNS, Figures, Job, job_from

_MODULES = {STEPS: "measuring.steps", CROWD: "measuring.crowd", TURNS: "measuring.turns", LONG: "measuring.turns"}
"""The measuring modules, imported when needed: a graph's engine is not loaded with a saver that is used alone."""


def main() -> None:
    """Do the jobs."""
    jobs = [job_from(told) for told in json.loads(sys.argv[1])["jobs"]]
    figures = [_done(job)._asdict() for job in jobs]
    print(json.dumps({"figures": figures}))


def _done(job: Job) -> Figures:
    figures: Figures = import_module(_MODULES[job.comparison.measure]).measure(job)
    return figures


if __name__ == "__main__":
    main()
