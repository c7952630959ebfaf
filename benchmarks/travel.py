"""A thread's past against reading its states: questions, rows and bytes that are fetched, and times.

    python benchmarks/travel.py [--postgres] [--checkpoints 5000] [--rounds 5]

* a page of 50 of the history of 5,000 checkpoints, the newest and in the middle, compared with a listing of 50
* all its pages, and the tree of its branches, compared with a listing of all of it
* a fork in the thread: the bytes that it stores, and those of its state
* the diff of two checkpoints of a state of 10 MB (`--large`) that differ in one message: the bytes that it reads,
  compared with reading both; messages are objects, added one by one, in the first and in another case one was changed
* the origin of a value that was set in the first checkpoint and never since, in every 100th, and with each of them
* a search for a text that stands in one message, and for one that stands nowhere

The thread is a chat that grows by a message a step, and was forked every hundredth. Bytes are those of the segments
that the store returned, as it stores them, and do not depend on the machine. Times are the medians of a few rounds in
which both take turns, by a saver that remembers nothing. Without --postgres it is a SQLite file; with it, a server that
the script starts.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import threadmark
from threadmark import Saver
from threadmark_conformance.counting import Reads, counted
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_PAGE = 50
_FORKED_EVERY = 100
_KEPT = 40
"""Messages in the state: a chat of 5,000 would outweigh all else."""

THREAD: dict[str, Any] = {"configurable": {"thread_id": "thread"}}
Read = Callable[[Saver], Any]


class Comparison(NamedTuple):
    """Two ways to the same answer."""

    name: str
    ours: Read
    whole: Read


class Question(NamedTuple):
    """A question about a thread's past."""

    name: str
    ask: Read


class Message(NamedTuple):
    """A message with its own class."""

    id: str
    role: str
    content: str


_Pair = tuple[dict[str, Any], dict[str, Any]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="A thread's past against reading its states.")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--checkpoints", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", type=int, default=10_000_000, help="bytes of the large state")
    asked = parser.parse_args()
    if asked.postgres:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from postgres.cluster import Cluster

        with Cluster(durable=True) as cluster, PostgresSaver(cluster.url, cache_bytes=0) as saver:
            _report(saver, asked)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "travel.db"
        with SqliteSaver(path, durability="normal") as saver:
            _fill(saver, asked.checkpoints)
        with SqliteSaver(path, cache_bytes=0) as saver:
            _report(saver, asked)


def _report(saver: Saver, asked: argparse.Namespace) -> None:
    checkpoints, rounds = asked.checkpoints, asked.rounds
    if saver.get_thread("thread") is None:
        _fill(saver, checkpoints)
    print("| what is read | so: questions, segments, bytes, ms | by a listing of states | time |")
    print("|---|---:|---:|---:|")
    for comparison in _comparisons(saver, checkpoints):
        _print(saver, comparison, rounds)
    _print_fork(saver)
    print("\n| what is asked | questions | segments | their bytes | ms |")
    print("|---|---:|---:|---:|---:|")
    for question in _questions(saver, asked.large):
        _print_question(saver, question, rounds)


def _questions(saver: Saver, size: int) -> Iterator[Question]:
    for path, what in (("first", "in the first"), ("hundred", "in the newest 100th"), ("turn", "in the newest")):
        yield Question(f"blame of a value set {what} checkpoint", _blame(path))
    yield Question("blame of a message", _blame("messages[-1]"))
    found = saver.extract("thread", 'messages[3]["content"]')[:40]
    yield Question("search of a text that is there", lambda each: _search(each, found))
    yield Question("search of a text that is not", lambda each: _search(each, "no such text"))
    added, changed = _large(saver, size)
    for what, (a, b) in (("added", added), ("changed", changed)):
        yield Question(f"diff of {size:,} bytes, a message {what}", _diff(a, b))
        yield Question("... by reading both", _gets(a, b))


def _blame(path: str) -> Read:
    return lambda saver: saver.blame("thread", path)


def _diff(a: dict[str, Any], b: dict[str, Any]) -> Read:
    return lambda saver: saver.diff(a, b)


def _gets(a: dict[str, Any], b: dict[str, Any]) -> Read:
    return lambda saver: (saver.get(a), saver.get(b))


def _search(saver: Saver, text: str) -> None:
    cursor, more = None, True
    while more:
        cursor = saver.search("thread", text, cursor=cursor).cursor
        more = cursor is not None


def _large(saver: Saver, size: int) -> tuple[_Pair, _Pair]:
    """Store a large state. Returns two checkpoints before and after an added message, and two for a changed one."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(2, 10))) for _ in range(5000)]
    messages: list[Message] = []
    config: dict[str, Any] = {"configurable": {"thread_id": "large", "checkpoint_ns": ""}}
    configs, steps, stored = [], 100, 0
    for step in range(steps):
        while stored < size * (step + 1) // steps:
            messages.append(Message(str(len(messages)), "user", " ".join(chance.choices(words, k=300))))
            stored += len(messages[-1].content)
        config = _put(saver, config, step, {"messages": list(messages)})
    configs.append(config)
    messages.append(Message("new", "user", "another one"))
    configs.append(_put(saver, config, steps, {"messages": list(messages)}))
    place = len(messages) // 2
    messages[place] = messages[place]._replace(content=f"changed: {messages[place].content}")
    configs.append(_put(saver, configs[-1], steps + 1, {"messages": messages}))
    return (configs[0], configs[1]), (configs[1], configs[2])


def _print_question(saver: Saver, question: Question, rounds: int) -> None:
    reads = _fetched(saver, question.ask)
    taken = statistics.median(_seconds(question.ask, saver) for _ in range(rounds))
    cells = f"{len(reads.questions):,} | {reads.segments:,} | {reads.bytes:,} | {1000 * taken:,.1f}"
    print(f"| {question.name} | {cells} |", flush=True)


def _comparisons(saver: Saver, checkpoints: int) -> Iterator[Comparison]:
    middle = _middle(saver, checkpoints)
    newest = Comparison(
        f"the newest {_PAGE} of {checkpoints:,}",
        lambda each: each.history("thread", limit=_PAGE),
        lambda each: list(each.list(THREAD, limit=_PAGE)),
    )
    yield newest
    yield newest._replace(
        name=f"{_PAGE} in the middle", ours=lambda each: each.history("thread", limit=_PAGE, cursor=middle)
    )
    everything: Read = lambda each: sum(1 for _ in each.list(THREAD))  # noqa: E731 - as those above
    yield Comparison("all pages", lambda each: each.history("thread", limit=checkpoints), everything)
    yield Comparison("the tree", lambda each: each.tree("thread"), everything)


def _print(saver: Saver, comparison: Comparison, rounds: int) -> None:
    fetched = [_fetched(saver, read) for read in comparison[1:]]
    taken = [[_seconds(read, saver) for read in comparison[1:]] for _ in range(rounds)]
    ratio = statistics.median(whole / ours for ours, whole in taken)
    cells = [
        f"{len(reads.questions):,}, {reads.segments:,}, {reads.bytes:,}, {1000 * statistics.median(times):,.1f}"
        for reads, times in zip(fetched, zip(*taken, strict=True), strict=True)
    ]
    print(f"| {comparison.name} | {cells[0]} | {cells[1]} | {ratio:.1f}x faster |", flush=True)


def _print_fork(saver: Saver) -> None:
    stored = [saver.stats("thread").bytes_stored]
    oldest = saver.history("thread", limit=1 + _FORKED_EVERY).entries[-1]
    config = {"configurable": {**THREAD["configurable"], "checkpoint_id": oldest.id}}
    reads = _fetched(saver, lambda each: each.fork(config))
    stored.append(saver.stats("thread").bytes_stored)
    state = saver.get(config) or {}
    size = len(saver.serde.dumps_typed(state.get("channel_values"))[1])
    print(
        f"\na fork of a state of {size:,} bytes stores {stored[1] - stored[0]:,}, in {len(reads.questions)} questions"
    )


def _middle(saver: Saver, checkpoints: int) -> str | None:
    return saver.history("thread", limit=checkpoints // 2).cursor


def _fill(saver: Saver, checkpoints: int) -> None:
    """Store the thread."""
    chance = random.Random(0)
    config, forks = dict(THREAD), iter(range(_FORKED_EVERY, checkpoints, _FORKED_EVERY))
    messages: list[dict[str, str]] = []
    fork = next(forks, None)
    earlier = config
    for number in range(checkpoints):
        if number == fork:
            config, fork = earlier, next(forks, None)
        messages = [*messages, {"role": "user", "content": chance.randbytes(100).hex()}][-_KEPT:]
        config = _put(
            saver, config, number, {"messages": messages, "turn": number, "hundred": number // 100, "first": "x"}
        )
        writes = [("messages", messages[-1:]), ("turn", number)]
        saver.put_writes(config, writes, f"task {number}", f"~__pregel_pull, node {number % 3}")
        if number % _FORKED_EVERY == _FORKED_EVERY // 2:
            earlier = config


def _put(saver: Saver, config: dict[str, Any], number: int, values: dict[str, Any]) -> dict[str, Any]:
    versions: dict[str, Any] = dict.fromkeys(values, number + 1)
    checkpoint: threadmark.Checkpoint = {
        "v": 4,
        "id": threadmark.new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict(versions),
        "versions_seen": {f"node {number % 3}": dict(versions)},
    }
    return saver.put(config, checkpoint, {"source": "loop", "step": number}, versions)


def _fetched(saver: Saver, read: Read) -> Reads:
    """Count the reads of a call."""
    reads, counting = Reads(), saver.with_serde(saver.serde)
    store = counted(saver._context.store, reads)  # noqa: SLF001 - a counter is put between a saver and its rows
    counting._context = counting._context._replace(store=store)  # noqa: SLF001 - see above
    read(counting)
    return reads


def _seconds(read: Read, saver: Saver) -> float:
    start = time.perf_counter()
    read(saver)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
