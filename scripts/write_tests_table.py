#!/usr/bin/env python3
"""Write the table of tests/README.md: each topic, and the files that test it.

The topic of a file is the first line of its docstring; the files of a folder share a row, whose topic is in FOLDERS.
Run this script after you add, rename or move a test; `make check` runs it with `--check`, which writes nothing and
fails if the table is stale.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
README = TESTS / "README.md"

MARK = "<!-- Written by scripts/write_tests_table.py: change the docstrings of the tests, and run it. -->\n"

FOLDERS = {
    "caching": "Caches of threads, in memory and on Redis",
    "citus": "Postgres on a cluster of Citus (`make test-citus`)",
    "cli": "The command `threadmark`",
    "core": "Savers and interfaces on any backend: the rope of segments, diffs, sealing, leases, sessions, states",
    "effects": "Effects: calls that are made once, with and without an engine",
    "histories": "Journals of concurrent clients, searched for an order that explains every answer",
    "langgraph_checkpointer": "Savers under LangGraph's names, and moving from LangGraph's savers",
    "langgraph_parity": "The same results as LangGraph's savers",
    "langgraph_server": "LangGraph's server with a checkpointer of ours, as docs/how-to/langgraph-json.md sets it up",
    "page": "The page of `threadmark serve`: its API, its security, and the page in Chromium",
    "planted": "Faults that are planted into the code to see that tests find them (`make plant`)",
    "power": "SQLite files and persistent dictionaries after power cuts",
    "postgres": "Postgres: drivers, statements, pools, PgBouncer, failover",
    "races": "Processes that compete for leases and locks",
    "redis_backend": "Redis and Valkey: drivers, clusters, Sentinel, durability",
    "releases": "Processes of two releases on one database, and the switch to a new format",
    "replication": "Pairs of databases: copying, failover, reconciling, real faults",
    "serde": "The serializer: exactness, safety, unknown classes",
    "signals": "Ctrl-C and signal handlers that raise, at any instruction",
    "simulator": "Simulated worlds: one seed decides clients, databases, network, processes, clocks and disks",
    "speed": "The compiled part against the Python that it replaces",
    "sqlite": "SQLite: drivers, connections, damaged and replaced files, processes, disk space",
    "store": "LangGraph's stores: items in the database of a saver",
    "stored": "Databases of released formats",
    "transactions": "Several calls in one transaction, and calls in a transaction of yours",
    "unanswered": "Operations whose answers are lost on the way, on Postgres, behind PgBouncer, and on Redis",
}


def main() -> None:
    """Write the table, or with `--check` say that it is stale."""
    today = README.read_text(encoding="utf-8")
    written = today[: today.index(MARK)] + MARK + "".join(f"{line}\n" for line in table())
    if today == written:
        return
    if "--check" in sys.argv:
        sys.exit("run scripts/write_tests_table.py, for the table of tests/README.md is stale")
    README.write_text(written, encoding="utf-8")


def table() -> Iterator[str]:
    """Return the lines of the table: the folders, then the files next to them."""
    yield "| Topic | Files |"
    yield "| --- | --- |"
    for folder in sorted({path.parent for path in TESTS.glob("*/test_*.py")}):
        if folder.name not in FOLDERS:
            sys.exit(f"FOLDERS in scripts/write_tests_table.py has no topic for tests/{folder.name}")
        files = (path.stem.removeprefix("test_") for path in sorted(folder.glob("test_*.py")))
        yield f"| {FOLDERS[folder.name]} | [{folder.name}/]({folder.name}): {', '.join(files)} |"
    for path in sorted(TESTS.glob("test_*.py")):
        yield f"| {topic(path)} | [{path.name}]({path.name}) |"


def topic(path: Path) -> str:
    """Return the first line of a file's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        sys.exit(f"{path.relative_to(TESTS.parent)} has no docstring, which says what it tests")
    return text.splitlines()[0].rstrip(".").replace("|", "\\|")


if __name__ == "__main__":
    main()
