"""A run stored step by step: the time of an operation at its end, then reading, resuming, pruning and deleting.

The last fifth of the steps is timed; all before it warms up. Everything runs on one worker thread, because LangGraph's
blocking engine calls from its own pool. The stored rows are compared with the puts before anything is believed.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import workloads
from measuring.clocks import Recorded, now, since
from measuring.floor import Floor
from measuring.jobs import FLOOR, MEMORY, OURS, PURE, THEIRS, Figures, Job
from measuring.places import Place, new_place
from measuring.sides import Ours, Side, Theirs
from workloads import Step

PUT, PUT_WRITES, STEP, GET, LIST = "put", "put_writes", "step", "get newest", "list 50"
RESUME, PRUNE, DELETE, LATER_DELETE = "cold resume", "prune", "delete", "later delete"
OPERATIONS = (PUT, PUT_WRITES, STEP, GET, LIST, RESUME, PRUNE, DELETE, LATER_DELETE)

SIDES: dict[str, type[Side]] = {OURS: Ours, PURE: Ours, THEIRS: Theirs, FLOOR: Floor}

_SHARE = 5
"""One of so many steps is timed."""
_GETS, _LISTS, _LISTED = 20, 3, 50
_DELETES, _SHORT = 10, 20
"""So many threads of so many steps are deleted after the run's own, which is the first one of its session."""


def measure(job: Job) -> Figures:
    """The figures of one side for the run."""
    with ThreadPoolExecutor(1) as worker:
        return worker.submit(_measured, job).result()


def _measured(job: Job) -> Figures:
    what = job.comparison
    side = SIDES[job.side]()
    *steps, last = workloads.TIMED[what.workload](side.next_version, what.size + 1)
    timed = max(1, what.size // _SHARE)
    before, end = steps[:-timed], steps[-timed:]
    recorded = Recorded()
    with new_place(what.backend, job.server) as place:
        side.learn(place, job.server, before, end)
        with side.blocking(place) as saver:
            config = _store(saver, before, end, recorded)
            if job.side != FLOOR:
                _read(saver, config, steps, recorded)
                if what.backend == MEMORY:
                    _remove(saver, config, steps, recorded)
        stored = place.size()
        if job.side != FLOOR and what.backend != MEMORY:
            _resume(side, place._replace(has_tables=True), config, [*steps, last], recorded)
    return Figures(recorded.medians(), stored, recorded.walls())


def _store(saver: Any, before: Sequence[Step], end: Sequence[Step], recorded: Recorded) -> Mapping[str, Any]:
    """Store the run and time its end. Returns the configuration of its last checkpoint."""
    config = workloads.drive(saver, workloads.thread("steps"), before)
    begun = now()
    for step in end:
        for task in step.tasks:
            recorded.call(PUT_WRITES, saver.put_writes, config, task.writes, task.id, task.path)
        config = recorded.call(PUT, saver.put, config, step.checkpoint, step.metadata, step.new_versions)
    recorded.add(STEP, since(begun, len(end)))
    return config


def _read(saver: Any, config: Mapping[str, Any], steps: Sequence[Step], recorded: Recorded) -> None:
    newest = workloads.newest(config)
    for _ in range(_GETS):
        found = recorded.call(GET, saver.get_tuple, newest)
    _expect(found.checkpoint, steps[-1])
    for _ in range(_LISTS):
        listed = recorded.call(LIST, lambda: list(saver.list(newest, limit=_LISTED)))
    for found, step in zip(listed, reversed(steps[-_LISTED:]), strict=True):
        _expect(found.checkpoint, step)


def _resume(side: Side, place: Place, config: Mapping[str, Any], steps: Sequence[Step], recorded: Recorded) -> None:
    """Open a new saver, which remembers nothing, get the newest checkpoint and store one more step."""
    begun = now()
    with side.blocking(place) as saver:
        found = saver.get_tuple(workloads.newest(config))
        stored = workloads.drive(saver, found.config, steps[-1:])
        recorded.add(RESUME, since(begun))
        _expect(saver.get_tuple(workloads.newest(stored)).checkpoint, steps[-1])
        _remove(saver, stored, steps, recorded)


def _remove(saver: Any, config: Mapping[str, Any], steps: Sequence[Step], recorded: Recorded) -> None:
    thread = config["configurable"]["thread_id"]
    begun = now()
    try:
        saver.prune([thread], strategy="keep_latest")
    except NotImplementedError:
        pass  # most of LangGraph's savers cannot
    else:
        recorded.add(PRUNE, since(begun))
    others = [workloads.drive(saver, workloads.thread(f"short {n}"), steps[:_SHORT]) for n in range(_DELETES)]
    recorded.call(DELETE, saver.delete_thread, thread)
    for other in others:
        recorded.call(LATER_DELETE, saver.delete_thread, other["configurable"]["thread_id"])
    for each in (config, *others):
        if saver.get_tuple(workloads.newest(each)) is not None:
            raise AssertionError("a thread that was deleted is still there")


def _expect(found: Any, step: Step) -> None:
    if (found["id"], found["channel_values"]) != (step.checkpoint["id"], step.checkpoint["channel_values"]):
        raise AssertionError(f"checkpoint {step.checkpoint['id']} does not read back as it was put")
