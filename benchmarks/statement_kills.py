"""Statement kills: a graph whose nodes put items runs again and again, and is killed before each statement in turn.

    python benchmarks/statement_kills.py sync|async|exit [EVERY]

With EVERY it skips statements: 10 tries every tenth one.

Prints how many processes were killed, and how many items then were there without their state or the reverse.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import node_rounds
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store

THREAD: Any = {"configurable": {"thread_id": "trip"}}


def run(path: Path, durability: Any, last: int) -> None:
    """Run the graph in this process, which is killed before its statement number `last`."""
    numbers, connect = count(), sqlite3.connect

    def note(_: str) -> None:
        if next(numbers) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*given: Any, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*given, **options)
        made.set_trace_callback(note)
        return made

    sqlite3.connect = traced  # type: ignore[assignment]  # in this process, which ends with it
    with SqliteSaver(path) as saver:
        node_rounds.node_graph(saver, "trip").invoke({"numbers": []}, THREAD, durability=durability)


def in_child(work: Any) -> int:
    """Call in a new process. Returns its status."""
    process = os.fork()
    if not process:
        code = 1
        try:
            code = work() or 0
        finally:
            os._exit(code)
    return os.waitpid(process, 0)[1]


def main() -> None:
    """Kill at each statement, until the graph comes to its end."""
    durability, every = sys.argv[1], int([*sys.argv, "1"][2])
    apart = killed = 0
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.db"
        in_child(lambda: set_up(empty))
        for last in count(every // 2, every):
            path = Path(shutil.copyfile(empty, Path(folder) / f"{last}.db"))
            status = in_child(lambda: run(path, durability, last))  # noqa: B023 - called at once
            if os.WIFEXITED(status):
                if os.WEXITSTATUS(status):
                    raise SystemExit("the graph failed")
                break
            killed += 1
            outcome = in_child(lambda: compared(path))  # noqa: B023 - called at once
            apart += os.WEXITSTATUS(outcome)
    print(json.dumps({"killed": killed, "apart": apart}))


def set_up(path: Path) -> None:
    """Create the tables."""
    with SqliteSaver(path) as saver:
        Store(saver).setup()


def compared(path: Path) -> int:
    """Return how many numbers are apart."""
    with SqliteSaver(path) as saver:
        return len(node_rounds.compared_nodes(saver, "trip")[0])


if __name__ == "__main__":
    main()
