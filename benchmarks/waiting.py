"""The waits of processes that store in one SQLite file at the same time, with LangGraph's saver and with ours.

    python benchmarks/waiting.py [--seconds 20] [--durability full]

Each process puts small checkpoints into a separate thread. The first one never pauses. The others do not, either, or
store twice a second. Printed are their waits, each the time of a whole put, and all their puts. LangGraph's saver
gives up after five seconds; ours would after thirty.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver as Theirs

from threadmark_langgraph import SqliteSaver as Ours

_PROCESSES = (2, 4, 8)
_PAUSES = (0.0, 0.5)


class Work(NamedTuple):
    """The work of each of the processes."""

    saver: str
    path: str
    durability: Any
    seconds: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How long processes wait that store in one SQLite file.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--durability", choices=("full", "normal"), default="full")
    asked = parser.parse_args()
    print("| processes | others pause | saver | median (ms) | 99 of 100 (ms) | worst (ms) | refused | puts |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for pause in _PAUSES:
        for count in _PROCESSES:
            for saver in ("LangGraph's", "Threadmark's"):
                with tempfile.TemporaryDirectory() as folder:
                    work = Work(saver, str(Path(folder) / "threads.db"), asked.durability, asked.seconds)
                    print(f"| {count} | {pause:g} s | {saver} | {_measured(work, count, pause)} |", flush=True)


def _measured(work: Work, count: int, pause: float) -> str:
    """Have processes store at once. Returns their figures."""
    spawning = multiprocessing.get_context("spawn")
    start, told = spawning.Barrier(count), spawning.SimpleQueue()
    children = [
        spawning.Process(target=_store, args=(work, number, pause if number else 0.0, start, told))
        for number in range(count)
    ]
    for child in children:
        child.start()
    found = sorted(told.get() for _ in children)
    for child in children:
        child.join()
    waits = sorted(wait for _, waits, _ in found[1:] for wait in waits)
    figures = [statistics.median(waits), waits[len(waits) * 99 // 100], waits[-1]]
    refused, puts = sum(refused for *_, refused in found), sum(len(waits) for _, waits, _ in found)
    return f"{' | '.join(f'{seconds * 1000:,.1f}' for seconds in figures)} | {refused} | {puts:,}"


def _store(work: Work, number: int, pause: float, start: Any, told: Any) -> None:
    """Be one of the processes."""
    config: Any = {"configurable": {"thread_id": f"thread {number}", "checkpoint_ns": ""}}
    waits: list[float] = []
    refused = 0
    with _opened(work) as saver:
        saver.put(config, empty_checkpoint(), {}, {})
        start.wait()
        end = time.monotonic() + work.seconds
        while (begun := time.monotonic()) < end:
            step = len(waits) + 1
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"count": step, "text": f"step {step} " * 20}
            checkpoint["channel_versions"] = {"count": step, "text": step}
            try:
                config = saver.put(config, checkpoint, {"step": step}, checkpoint["channel_versions"])
            except Exception:  # noqa: BLE001 - each saver has its own error that says "locked"
                refused += 1
            waits.append(time.monotonic() - begun)
            time.sleep(pause)
    told.put((number, waits, refused))


@contextmanager
def _opened(work: Work) -> Iterator[Any]:
    if work.saver == "Threadmark's":
        with Ours.from_conn_string(work.path, durability=work.durability) as ours:
            yield ours
    else:
        with Theirs.from_conn_string(work.path) as theirs:
            theirs.conn.execute(f"PRAGMA synchronous = {work.durability}")
            yield theirs


if __name__ == "__main__":
    main()
