"""The time of the command, as a separate process, on a database of many threads and on a long thread.

    python benchmarks/command.py [--threads 10000] [--checkpoints 5000] [--rounds 5]

* `threads`: the 20 newest of 10,000, those with a text in their title, and all of them as JSON
* of a thread of 5,000 checkpoints that was forked every hundredth: `log` of all of it, with its graph, the newest 20;
  `show`, `diff` with the parent and with the first, and `blame` of a value set in the first

Python's own start and the import of a command's modules are in each time; the first line is a command that does no
more. The database is a SQLite file. Times are medians of rounds in which all commands take turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from threadmark import new_id
from threadmark_sqlite import SqliteSaver

_FORKED_EVERY = 100
_KEPT = 40
"""Messages in the state of the long thread."""


def main() -> None:
    """Make the database, run the commands, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"threads": 10_000, "checkpoints": 5_000, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agents.db"
        with SqliteSaver(path, durability="normal") as saver:
            for number in range(given.threads):
                _put(saver, f"thread-{number}", None, 1, ["a message"])
                saver.update_thread(f"thread-{number}", title=f"About parcel {number}")
            first = _long_thread(saver, given.checkpoints)
        print(f"{given.threads:,} threads, one of {given.checkpoints:,} checkpoints, {path.stat().st_size:,} bytes")
        _measure(path, first, given.rounds)


def _put(saver: SqliteSaver, thread: str, parent: str | None, version: int, messages: list[str]) -> str:
    """Store a checkpoint. Returns its id."""
    named = {"checkpoint_id": parent} if parent else {}
    config: dict[str, Any] = {"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}}
    identifier = new_id()
    saver.put(
        config,
        {
            "v": 4,
            "id": identifier,
            "ts": "2026-11-20T12:00:00+00:00",
            "channel_values": {"messages": messages, "goal": "to be answered"},
            "channel_versions": {"messages": version, "goal": 1},
            "versions_seen": {"model": {"messages": version}},
        },
        {"source": "loop", "step": version},
        {"messages": version, **({} if parent else {"goal": 1})},
    )
    return identifier


def _long_thread(saver: SqliteSaver, checkpoints: int) -> str:
    """A chat that grows by a message a step, and is forked every hundredth. Returns its first checkpoint."""
    ids: list[str] = []
    for step in range(checkpoints):
        messages = [f"message {each} {'word ' * 20}" for each in range(max(0, step - _KEPT), step + 1)]
        is_fork = step % _FORKED_EVERY == _FORKED_EVERY - 1
        ids.append(_put(saver, "long", ids[-2 if is_fork else -1] if ids else None, step + 1, messages))
    return ids[0]


def _measure(path: Path, first: str, rounds: int) -> None:
    commands = [
        ["--version"],
        ["threads", str(path)],
        ["threads", str(path), "--text", "PARCEL 77"],
        ["threads", str(path), "--limit", "0", "--json"],
        ["log", str(path), "long"],
        ["log", str(path), "long", "--graph"],
        ["log", str(path), "long", "--limit", "20"],
        ["show", str(path), "long"],
        ["diff", str(path), "long"],
        ["diff", str(path), "long", first],
        ["blame", str(path), "long", "goal"],
    ]
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for taken, command in zip(times, commands, strict=True):
            began = time.perf_counter()
            done = subprocess.run(  # noqa: S603 - our own command
                [sys.executable, "-m", "threadmark_cli", *command], check=True, stdout=subprocess.PIPE, env=os.environ
            )
            taken.append(time.perf_counter() - began)
            assert done.stdout  # noqa: S101 - a command that says nothing is not measured
    for taken, command in zip(times, commands, strict=True):
        shown = " ".join(each for each in command if each != str(path)).replace(first, "FIRST")
        print(f"{statistics.median(taken) * 1000:8.0f} ms  threadmark {shown}")


if __name__ == "__main__":
    main()
