"""Reading a part of a state against reading all of it: questions, rows and bytes that are fetched, and times.

    python benchmarks/parts.py [--postgres] [--threads 1000] [--rounds 5]

* the last message of a state of 10 MB: an eighth of it messages, the rest files that no compression makes shorter
* a page of 20 messages of a chat of 100 and of 10,000, put step by step
* a page of many threads with the last message of each, compared with one get for each of them

Bytes are those of the segments that the store returned, as it stores them, and do not depend on the machine. Times are
the medians of a few rounds in which both take turns, by a saver that remembers nothing. Without --postgres it is a
SQLite file; with it, a server that the script starts.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

import threadmark
from threadmark import Saver
from threadmark_conformance.counting import Reads, counted
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_STATE = 10_000_000
_MESSAGES = _STATE // 8
_CHATS = (100, 10_000)
_STEPS = 50
"""In how many puts a chat is stored."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Reading a part of a state against reading all of it.")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--threads", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    if asked.postgres:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from postgres.cluster import Cluster

        with Cluster(durable=True) as cluster, PostgresSaver(cluster.url, cache_bytes=0) as saver:
            _report(saver, asked.threads, asked.rounds)
        return
    with tempfile.TemporaryDirectory() as folder, SqliteSaver(Path(folder) / "parts.db", cache_bytes=0) as saver:
        _report(saver, asked.threads, asked.rounds)


def _report(saver: Saver, threads: int, rounds: int) -> None:
    print("| what is read | part: questions, segments, bytes | whole: questions, segments, bytes | bytes | time |")
    print("|---|---:|---:|---:|---:|")
    _fill(saver, threads)
    for name, part, whole in _comparisons(threads):
        fetched = [_fetched(saver, read) for read in (part, whole)]
        taken = [[_seconds(read, saver) for read in (part, whole)] for _ in range(rounds)]
        ratio = statistics.median(of_whole / of_part for of_part, of_whole in taken)
        counts = [f"{len(each.questions):,}, {each.segments:,}, {each.bytes:,}" for each in fetched]
        bytes_ratio = fetched[1].bytes / max(1, fetched[0].bytes)
        print(f"| {name} | {counts[0]} | {counts[1]} | {bytes_ratio:.1f}x less | {ratio:.1f}x faster |", flush=True)


def _comparisons(threads: int) -> Iterator[tuple[str, Callable[[Saver], Any], Callable[[Saver], Any]]]:
    path = "messages[-1].content"
    yield "the last message of 10 MB", lambda saver: saver.extract("large", path), lambda saver: _last(saver, "large")
    for count in _CHATS:
        name = f"chat {count}"
        yield (
            f"a page of 20 of {count:,} messages",
            lambda saver, name=name: saver.extract_items(name).messages,  # type: ignore[misc]  # its default has a type
            lambda saver, name=name: _messages(saver, name)[-20:],  # type: ignore[misc]  # see above
        )
    yield (
        f"{threads:,} threads with their last messages",
        lambda saver: [
            each.extracted["last"]
            for each in saver.list_threads(text="small", limit=threads, extract={"last": path}).threads
        ],
        lambda saver: [_last(saver, each.id) for each in saver.list_threads(text="small", limit=threads).threads],
    )


def _fill(saver: Saver, threads: int) -> None:
    chance = random.Random(0)
    large = _chat(chance, 1000, _MESSAGES // 1000)
    files = {f"file {number}": chance.randbytes(_STATE // 100) for number in range(87)}
    _put(saver, "large", [{"messages": large, "files": files}])
    for count in _CHATS:
        chat = _chat(chance, count, 600)
        states = [{"messages": chat[: count * step // _STEPS]} for step in range(1, _STEPS + 1)]
        _put(saver, f"chat {count}", states)
    for number in range(threads):
        _put(saver, f"small {number}", [{"messages": _chat(chance, 6, 300), "files": chance.randbytes(20_000)}])


def _chat(chance: random.Random, count: int, letters: int) -> list[AnyMessage]:
    kinds = (HumanMessage, AIMessage)
    return [kinds[number % 2](chance.randbytes(letters // 2).hex(), id=f"m{number}") for number in range(count)]


def _put(saver: Saver, name: str, states: list[dict[str, Any]]) -> None:
    config: dict[str, Any] = {"configurable": {"thread_id": name}}
    for number, state in enumerate(states, 1):
        versions = dict.fromkeys(state, number)
        checkpoint: threadmark.Checkpoint = {
            "v": 4,
            "id": threadmark.new_id(),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": state,
            "channel_versions": {**versions},
            "versions_seen": {},
        }
        config = saver.put(config, checkpoint, {"source": "loop", "step": number}, versions)


def _messages(saver: Saver, name: str) -> Any:
    found = saver.get({"configurable": {"thread_id": name}})
    return found["channel_values"]["messages"] if found else []


def _last(saver: Saver, name: str) -> Any:
    return _messages(saver, name)[-1].content


def _fetched(saver: Saver, read: Callable[[Saver], Any]) -> Reads:
    """Count the reads of a call."""
    reads, counting = Reads(), saver.with_serde(saver.serde)
    store = counted(saver._context.store, reads)  # noqa: SLF001 - a counter is put between a saver and its rows
    counting._context = counting._context._replace(store=store)  # noqa: SLF001 - see above
    read(counting)
    return reads


def _seconds(read: Callable[[Saver], Any], saver: Saver) -> float:
    start = time.perf_counter()
    read(saver)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
