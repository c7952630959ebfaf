"""The cost of a long conversation: bytes a step, segments that a get has to fetch, time of a put.

    python benchmarks/lengths.py [--without-zstd] [messages ...]

By default at 100 and 1,000 messages; 10,000 take some minutes, because every put encodes the whole conversation.
Bytes and segments must not grow with the conversation, beyond its logarithm. The time of a put does, as its value
does; look at the saver's addition to the mere encoding.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import workloads
from storage import on_disk, zstd
from threadmark import Saver
from threadmark.program import Program
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver import FileDriver, Settings
from threadmark_sqlite.store import SqliteStore
from workloads import Step

LENGTHS = (100, 1_000)
_LAST_PUTS = 50


class Length(NamedTuple):
    """A conversation when it had so many messages."""

    messages: int
    bytes_a_step: float
    """On disk, over the whole conversation so far, pending writes included."""
    segments: int
    """Fetched by a get of the newest checkpoint when nothing is remembered."""
    put_seconds: float
    """The median of the last puts."""
    encode_seconds: float
    """The same of encoding the value that was put, and nothing else."""


def lengths(of: Sequence[int], folder: Path) -> Iterator[Length]:
    """One conversation, looked at whenever it has so many messages."""
    path = folder / "lengths.db"
    config: Any = workloads.thread("lengths")
    done = -1  # the first step has no message yet
    steps: Iterator[Step] | None = None
    for messages in sorted(of):
        with SqliteSaver(path) as saver:
            steps = steps or workloads.chat(saver.get_next_version, max(of))
            *first, last = islice(steps, messages - done)
            config = workloads.drive(saver, config, first[:-_LAST_PUTS])
            puts, encodings = [], []
            for step in (*first[-_LAST_PUTS:], last):
                for task in step.tasks:
                    saver.put_writes(config, task.writes, task.id, task.path)
                value = step.checkpoint["channel_values"]["messages"]
                encodings.append(_timed(partial(saver.serde.dumps_typed, value))[0])
                put: Callable[..., Any] = saver.put
                seconds, config = _timed(partial(put, config, step.checkpoint, step.metadata, step.new_versions))
                puts.append(seconds)
        done = messages
        yield Length(
            messages,
            on_disk(path) / messages,
            _segments_of_a_get(path, config, last),
            statistics.median(puts),
            statistics.median(encodings),
        )


class _CountingStore(SqliteStore):
    fetched = 0

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        found = yield from super().segments(thread_id, keys)
        self.fetched += len(found)
        return found


def _segments_of_a_get(path: Path, config: Any, last: Step) -> int:
    store = _CountingStore()
    with Saver(store, FileDriver(Settings(str(path), "full", 30.0))) as saver:
        if saver.get(workloads.newest(config)) != last.checkpoint:
            raise AssertionError("the newest checkpoint does not read back as it was put")
    return store.fetched


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def report(of: Sequence[int], folder: Path) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield "| messages | bytes a step | segments of a get | put | of which encoding |"
    yield "|---:|---:|---:|---:|---:|"
    for each in lengths(of, folder):
        yield (
            f"| {each.messages:,} | {each.bytes_a_step:,.0f} | {each.segments} "
            f"| {each.put_seconds * 1e3:.1f} ms | {each.encode_seconds / each.put_seconds:.0%} |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a long conversation costs.")
    parser.add_argument("messages", nargs="*", type=int, default=LENGTHS)
    parser.add_argument("--without-zstd", action="store_true", help="store as if zstandard were not installed")
    asked = parser.parse_args()
    with zstd(on=not asked.without_zstd), tempfile.TemporaryDirectory() as folder:
        for line in report(asked.messages, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
