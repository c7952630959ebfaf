"""How long the suite is: `THREADMARK_TESTS=all` runs what a change to many parts, or a release, is worth.

`make test` runs it twice: with the compiled parts, and in Python only. The second time each behaviour is checked once
in memory, sealed and on SQLite, a sample of them on a server, and what `NOT_AGAIN` names is left out. The long form
leaves out nothing either time.
"""

import os

from threadmark import compiled

ALL = os.environ.get("THREADMARK_TESTS") == "all"

ONCE_EACH = not compiled.IN_USE and not ALL
"""Whether a behaviour is checked with one API only, and on servers a sample: the other run has them all."""

NOT_AGAIN = {
    "cli/": "a command",
    "page/test_browser": "a page in a browser",
    "postgres/test_first_contact.py": "connections",
    "postgres/test_pgbouncer.py": "connections",
    "postgres/test_setup.py": "tables",
    "postgres/test_without_libpq.py": "an installation",
    "postgres/test_watching.py": "logs and spans",
    "postgres/test_cancelling.py": "connections",
    "postgres/test_exit.py": "connections",
    "postgres/test_failover.py": "connections",
    "postgres/test_failures.py": "connections",
    "races/": "leases",
    "redis_backend/test_cancelling.py": "connections",
    "redis_backend/test_client_log.py": "a checker",
    "redis_backend/test_cost.py": "that a benchmark runs",
    "redis_backend/test_driver": "connections",
    "redis_backend/test_fail": "connections",
    "redis_backend/test_killed.py": "what a server keeps",
    "redis_backend/test_servers.py": "the servers of the tests",
    "signals/": "drivers",
    "speed/test_objects.py": "the compiled part itself",
    "sqlite/test_exit.py": "drivers",
    "sqlite/test_processes.py": "drivers",
    "sqlite/test_watching.py": "logs and spans",
    "test_benchmarks.py": "that benchmarks run",
    "test_docs.py": "pages",
    "test_examples.py": "examples",
    "test_agent_server.py": "an example",
    "test_house.py": "texts and imports",
    "test_make_venv.py": "a script",
    "test_options_page.py": "a page",
    "test_packages.py": "wheels",
}
"""Tests about something else than values, and what: none of it can go through a compiled part."""


def times(usual: int, *, at_length: int) -> int:
    """How often something is tried."""
    return at_length if ALL else usual
