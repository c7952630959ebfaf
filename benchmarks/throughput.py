"""Operations a second on SQLite, as ratios to LangGraph's saver: one task and 32 at once, reading and writing.

    python benchmarks/throughput.py [--rounds N]

Both savers work on a file of their own with the same durability (write-ahead log, synchronous=FULL), on the same
data, in turns: A B A B. A machine has good and bad moments, so a ratio is taken of two rounds that follow each other,
and the median of those ratios is printed; the operations a second say only how large a ratio's parts are.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.checkpoint.sqlite import SqliteSaver as PeerSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as AsyncPeerSaver

import workloads
from threadmark_sqlite import SqliteSaver
from workloads import Step

ROUNDS = 7
_THREADS = 32
_EACH = 6  # operations on every thread in a round
_MESSAGES = (20, 200)  # in every thread before: the first minutes of a chat, and an agent at work
_HISTORY = 50  # checkpoints of the thread that is read
_READS = 20

Config = Mapping[str, Any]
Operation = Callable[[Any, Config, Step], Awaitable[Any]]
Work = Callable[[], Awaitable[None]]
Preparation = Callable[[Any, int], Awaitable[Work]]
"""What makes a saver ready for a round, which has a number of its own, and then the round."""


class Ratio(NamedTuple):
    """How many times as many operations a second ours does."""

    name: str
    ratio: float
    peers: float
    ours: float
    """Operations a second."""


class Pair(NamedTuple):
    """The two savers that are compared."""

    peer: Any
    ours: Any


async def ratios(folder: Path, rounds: int) -> list[Ratio]:
    """Everything that is measured."""
    found = []
    async with (
        AsyncPeerSaver.from_conn_string(str(folder / "peer.db")) as peer,
        SqliteSaver(folder / "ours.db") as ours,
        SqliteSaver(folder / "ours.db", pause_gc=True) as pausing,
    ):
        pair = Pair(peer, ours)
        works = (("aput", _put), ("aput_writes", _put_writes))
        for messages, (name, operation), at_once in product(_MESSAGES, works, (1, _THREADS)):
            title = f"{name}, {at_once} {'tasks' if at_once > 1 else 'task'}, {messages} messages"
            prepare = partial(_writing, operation, at_once, messages)
            found.append(await _compared(title, _THREADS * _EACH, prepare, pair, rounds))
        config = workloads.thread("history")
        for saver in pair:
            await workloads.adrive(saver, config, workloads.chat(saver.get_next_version, _HISTORY))
        found.append(await _compared("aget_tuple", _READS, partial(_reading, _aget, config), pair, rounds))
        objects = workloads.thread("history of objects")
        for saver in pair:
            await workloads.adrive(saver, objects, workloads.langchain_chat(saver.get_next_version, _HISTORY))
        found += await _lists("alist", _alist, (config, objects), pair, pausing, rounds)
        with PeerSaver.from_conn_string(str(folder / "peer.db")) as blocking:
            pair = Pair(blocking, ours)
            found.append(await _compared("get_tuple", _READS, partial(_reading, _get, config), pair, rounds))
            found += await _lists("list", _list, (config, objects), pair, pausing, rounds)
    return found


async def _lists(
    name: str,
    read: Callable[[Any, Config], Awaitable[None]],
    configs: Sequence[Config],
    pair: Pair,
    pausing: SqliteSaver,
    rounds: int,
) -> list[Ratio]:
    """Lists of plain dictionaries and of LangChain's messages, without and with the collector's pause."""
    found = []
    for config, messages in zip(configs, ("", ", LangChain messages"), strict=True):
        for ours, option in ((pair.ours, ""), (pausing, ", pause_gc=True")):
            title = f"{name} of {_HISTORY}{messages}{option}"
            found.append(await _compared(title, 1, partial(_reading, read, config), Pair(pair.peer, ours), rounds))
    return found


async def _compared(name: str, operations: int, prepare: Preparation, pair: Pair, rounds: int) -> Ratio:
    """The same rounds on both, in turns; the first warms up and is not counted."""
    seconds = [[await _timed(await prepare(saver, number)) for saver in pair] for number in range(rounds + 1)][1:]
    peers, ours = (operations / statistics.median(of_one) for of_one in zip(*seconds, strict=True))
    return Ratio(name, statistics.median(theirs / mine for theirs, mine in seconds), peers, ours)


async def _timed(work: Work) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def _writing(operation: Operation, at_once: int, messages: int, saver: Any, number: int) -> Work:
    """A few operations on each of many new threads, some threads at once."""
    runs: list[tuple[Config, Sequence[Step]]] = []
    for thread in range(_THREADS):
        first, *steps = list(workloads.chat(saver.get_next_version, messages + _EACH))[messages:]
        config = workloads.thread(f"{operation.__name__} {at_once} {messages} {number} {thread}")
        runs.append((await workloads.adrive(saver, config, [first._replace(tasks=())]), steps))

    async def share(runs: Iterable[tuple[Config, Sequence[Step]]]) -> None:
        for config, steps in runs:
            for step in steps:
                config = await operation(saver, config, step)  # noqa: PLW2901 - a run goes on from what it stored

    async def work() -> None:
        await asyncio.gather(*(share(runs[start::at_once]) for start in range(at_once)))

    return work


async def _put(saver: Any, config: Config, step: Step) -> Any:
    return await saver.aput(config, step.checkpoint, step.metadata, step.new_versions)


async def _put_writes(saver: Any, config: Config, step: Step) -> Any:
    (task,) = step.tasks
    await saver.aput_writes(config, task.writes, task.id, task.path)
    return config


async def _reading(read: Callable[[Any, Config], Awaitable[None]], config: Config, saver: Any, _: int) -> Work:
    return partial(read, saver, config)


async def _aget(saver: Any, config: Config) -> None:
    for _ in range(_READS):
        await saver.aget_tuple(config)


async def _get(saver: Any, config: Config) -> None:
    for _ in range(_READS):
        saver.get_tuple(config)


async def _alist(saver: Any, config: Config) -> None:
    _all_listed([found async for found in saver.alist(config, limit=_HISTORY)])


async def _list(saver: Any, config: Config) -> None:
    _all_listed(list(saver.list(config, limit=_HISTORY)))


def _all_listed(found: Sequence[Any]) -> None:
    if len(found) != _HISTORY:
        raise AssertionError(f"a listing of {_HISTORY} checkpoints gave {len(found)}")


def report(folder: Path, rounds: int = ROUNDS) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield "| operation | langgraph-checkpoint-sqlite | threadmark-sqlite | ratio |"
    yield "|---|---:|---:|---:|"
    for each in asyncio.run(ratios(folder, rounds)):
        yield f"| {each.name} | {each.peers:,.0f}/s | {each.ours:,.0f}/s | {each.ratio:.1f}x |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Operations a second on SQLite, beside LangGraph's saver.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of each saver; {ROUNDS} by default")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in report(Path(folder), asked.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
