"""How long the suite is: `THREADMARK_TESTS=all` runs what a change to many parts, or a release, is worth.

`make test` runs it twice: with the compiled parts, and in Python only. The second time each behaviour is checked once
in memory, sealed and on SQLite, and what `NOT_AGAIN` names is left out, servers among it: bytes are the same wherever
they are stored. The second time Postgres is the newest release instead of the machine's own, for a sample of the suite
and for what `AGAIN` names. The long form leaves out nothing either time. How the first run divides the suite is in
shares.py.
"""

import os

from threadmark.runtime import compiled

ALL = os.environ.get("THREADMARK_TESTS") == "all"

ONCE_EACH = not compiled.IN_USE and not ALL
"""Whether a behaviour is checked with one API only, and on servers a sample: the other run has them all."""

NOT_AGAIN = {
    "test_conformance.py::test_death": "transactions",
    "test_conformance.py::test_meeting": "transactions",
    "caching/": "a cache",
    "cli/": "a command",
    "core/test_forks.py": "processes",
    "core/test_leases.py": "leases",
    "core/test_thread_filters.py": "texts",
    "core/test_urls.py": "urls",
    "core/test_workers.py": "drivers",
    "langgraph_checkpointer/": "an adapter",
    "langgraph_parity/": "an adapter",
    "page/": "a page",
    "postgres/": "a server",
    "races/": "processes that meet",
    "redis_backend/": "a server",
    "releases/": "formats of databases",
    "replication/": "pairs of databases",
    "signals/": "drivers",
    "speed/test_objects.py": "the compiled part itself",
    "sqlite/test_callers.py": "drivers",
    "sqlite/test_commits.py": "drivers",
    "sqlite/test_connections.py": "connections",
    "sqlite/test_exit.py": "drivers",
    "sqlite/test_faults.py": "errors of SQLite",
    "sqlite/test_lease_clocks.py": "leases",
    "sqlite/test_loops.py": "drivers",
    "sqlite/test_meeting.py": "drivers",
    "sqlite/test_minutes.py": "plans",
    "sqlite/test_processes.py": "drivers",
    "sqlite/test_read_only.py": "files",
    "sqlite/test_replaced_files.py": "files",
    "sqlite/test_report.py": "a report",
    "sqlite/test_space.py": "files",
    "sqlite/test_thread_plans.py": "plans",
    "sqlite/test_waiting.py": "drivers",
    "sqlite/test_watching.py": "logs and spans",
    "test_benchmarks.py": "that benchmarks run",
    "test_docs.py": "pages",
    "test_fastapi_page.py": "a page",
    "test_examples.py": "examples",
    "test_after_the_move.py": "an adapter",
    "test_agent_server.py": "an example",
    "test_house.py": "texts and imports",
    "test_make_venv.py": "a script",
    "test_operating.py": "imports",
    "test_options.py": "signatures",
    "test_options_page.py": "a page",
    "test_packages.py": "wheels",
    "test_ports.py": "ports",
    "test_prose.py": "pages",
    "test_public_names.py": "names",
    "test_rooms.py": "imports",
    "test_restore_drill.py": "files and servers",
    "test_saver_protocol.py": "signatures",
    "test_tutorial.py": "a page",
}
"""Tests about something else than values, and what: none of it can go through a compiled part.

A name is how the path of the test begins, below this folder, perhaps with `::` and the test's name behind it.
"""

AGAIN = (
    "postgres/test_functions.py",
    "postgres/test_plans.py",
    "postgres/test_setup.py",
    "postgres/test_thread_plans.py",
    "postgres/test_versions.py",
)
"""Tests that depend on the release of the server: named as in `NOT_AGAIN`, and run all the same."""


def times(usual: int, *, at_length: int) -> int:
    """How often something is tried."""
    return at_length if ALL else usual
