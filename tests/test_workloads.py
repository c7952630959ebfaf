"""The benchmarks store the same as a run, read it back equal, and notice if it is not."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise

import pytest

import storage
import workloads
from threadmark import MemorySaver
from workloads import TIMED, WORKLOADS, NextVersion, Step

EVERY: dict[str, Callable[[NextVersion], Iterator[Step]]] = {
    **WORKLOADS,
    **{f"timed {name}": partial(workload, steps=6) for name, workload in TIMED.items()},  # type: ignore[call-arg]  # a callable's type names no parameters
}


def _first_steps(workload: str, saver: MemorySaver) -> list[Step]:
    steps: Iterator[Step] = EVERY[workload](saver.get_next_version)
    return list(islice(steps, 6))


@pytest.mark.parametrize("workload", EVERY)
def test_a_workload_reads_back_equal(workload: str) -> None:
    with MemorySaver() as saver:
        config = workloads.thread(workload)
        workloads.drive(saver, config, _first_steps(workload, saver))
        storage.verify(saver, config, _first_steps(workload, saver))


@pytest.mark.parametrize("workload", EVERY)
def test_a_workload_grows_by_versions_that_grow(workload: str) -> None:
    with MemorySaver() as saver:
        steps = _first_steps(workload, saver)
    ids = [step.checkpoint["id"] for step in steps]
    assert ids == sorted(set(ids))
    for before, step in pairwise(steps):
        changed = step.new_versions
        assert step.checkpoint["channel_versions"] == {**before.checkpoint["channel_versions"], **changed}
        assert all(changed[channel] != before.checkpoint["channel_versions"].get(channel) for channel in changed)
        assert all(task.writes for task in step.tasks)


def test_data_that_does_not_read_back_is_noticed() -> None:
    with MemorySaver() as saver:
        config = workloads.thread("chat")
        workloads.drive(saver, config, _first_steps("chat", saver))
        first, second, *others = _first_steps("chat", saver)
        altered = second._replace(metadata={**second.metadata, "step": 99})
        with pytest.raises(AssertionError, match="does not read back"):
            storage.verify(saver, config, [first, altered, *others])
        silent = second._replace(tasks=())
        with pytest.raises(AssertionError, match="do not read back"):
            storage.verify(saver, config, [first, silent, *others])
