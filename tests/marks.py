"""Which marker each test has: the servers that it needs, and whether it is slow. conftest.py applies them.

No test is marked by hand. A test has a marker by its path (`PATHS`), by a fixture that it uses (`FIXTURES`), or by the
name of a backend among its parameters (`WORDS`); `SLOW` lists the slow ones. If you choose tests by markers, a test
that starts a server without the marker for it fails (`require`), so that `make test-fast` never starts one.
"""

import re
from collections.abc import Iterable
from itertools import combinations

from _pytest.mark.expression import Expression, ExpressionMatcher

MARKERS = {
    "postgres": "needs a Postgres server",
    "redis": "needs a Redis server",
    "browser": "needs Chromium and chromedriver",
    "slow": "is left out of `make test-fast`",
}

SERVERS = frozenset(MARKERS) - {"slow"}

PATHS = {
    "caching/test_outages.py": {"redis"},
    "caching/test_processes.py": {"redis"},
    "citus/": {"postgres"},
    "cli/test_doctor.py::test_a_database_without_tables": {"postgres"},
    "cli/test_doctor.py::test_redis_that_does_not_wait": {"redis"},
    "cli/test_doctor.py::test_settings_that_lose_threads": {"redis"},
    "cli/test_upkeep.py::test_ddl_prints": {"postgres"},
    "cli/test_upkeep.py::test_setup_parts_tables": {"postgres"},
    "langgraph_checkpointer/test_postgres_names.py": {"postgres"},
    "langgraph_checkpointer/test_redis_names.py": {"redis"},
    "langgraph_checkpointer/test_shallow.py": {"postgres"},
    "unanswered/": {"postgres", "redis"},
    "page/test_browser_": {"browser"},
    "postgres/": {"postgres"},
    "races/test_locks.py": {"postgres"},
    "redis_backend/": {"redis"},
    "releases/test_refusals.py::test_a_thread_of_redis": {"redis"},
    "releases/test_refusals.py::test_setup_of_the_next_release": {"postgres"},
    "replication/test_later_writes.py::test_those_that_are_added": {"redis"},
    "replication/test_deleted_apart.py::test_where_it_begins_just": {"postgres"},
    "store/test_moving.py::test_an_item_that_the_target_refuses": {"postgres"},
    "store/test_pgvector.py": {"postgres"},
    "store/test_postgres.py": {"postgres"},
    "store/test_redis.py": {"redis"},
    "store/test_text_search.py::test_redis_": {"redis"},
    "store/test_cache.py::test_caches_have_the_names": {"postgres", "redis"},
    "store/test_cache.py::test_redis_": {"redis"},
    "store/test_cache.py::test_results_of_langgraphs": {"redis"},
    "test_after_the_move.py::test_the_old_tables_of_a_server": {"postgres"},
    "test_agent_server.py": {"postgres"},
    "test_benchmarks.py::test_a_missed_must": {"postgres"},
    "test_benchmarks.py::test_everything_that_is_measured": {"postgres", "redis"},
    "test_benchmarks.py::test_searches_by_vectors": {"postgres"},
    "test_benchmarks.py::test_stores_of_items_are_measured[postgres": {"postgres"},
    "test_docs.py::test_an_example_runs_alone_and_once_more[docs/how-to/caching.md": {"redis"},
    "test_restore_drill.py::test_the_drill_on_postgres": {"postgres"},
    "test_restore_drill.py::test_the_drill_on_redis": {"redis"},
}
"""The markers of every test whose name begins so: its path below this folder, perhaps `::` and its own name."""

FIXTURES = {
    "window": {"browser"},
}
"""The markers of every test that uses the fixture."""

WORDS = {
    "pgvector": {"postgres"},
    "postgres": {"postgres"},
    "redis": {"redis"},
}
"""The markers of every test that has the word in the brackets behind its name."""

SLOW = {
    "caching/test_benchmark.py": 5,
    "caching/test_conformance.py": 50,
    "caching/test_deleting.py": 6,
    "cli/test_command.py": 25,
    "cli/test_foreign.py": 14,
    "cli/test_hostile.py": 5,
    "cli/test_items.py": 8,
    "cli/test_manage.py": 16,
    "cli/test_moving_classes.py": 46,
    "cli/test_owners.py": 10,
    "cli/test_reading.py": 11,
    "cli/test_surroundings.py": 15,
    "cli/test_upkeep.py": 5,
    "core/test_diff.py": 11,
    "core/test_forks.py": 5,
    "core/test_leases.py": 10,
    "core/test_memory_file.py": 16,
    "core/test_persistent_dict.py": 7,
    "core/test_persistent_files.py": 11,
    "core/test_retention.py": 4,
    "core/test_rope_deduplicate.py": 23,
    "core/test_search.py": 5,
    "core/test_store_wrappers.py": 5,
    "effects/test_cost.py": 6,
    "effects/test_engines.py": 8,
    "effects/test_rounds.py": 25,
    "effects/test_time_travel.py": 5,
    "histories/": 9,
    "langgraph_checkpointer/test_imports.py": 11,
    "langgraph_checkpointer/test_moving.py": 22,
    "langgraph_checkpointer/test_named_databases.py": 6,
    "langgraph_checkpointer/test_old_formats.py": 7,
    "langgraph_server/": 20,
    "langgraph_parity/test_conformance.py": 6,
    "langgraph_parity/test_crashes.py": 12,
    "langgraph_parity/test_forks.py": 5,
    "langgraph_parity/test_keep_last.py": 21,
    "langgraph_parity/test_pruned_calls.py": 15,
    "langgraph_parity/test_pruned_deltas.py": 9,
    "langgraph_parity/test_scenarios.py": 19,
    "langgraph_parity/test_threads.py": 4,
    "langgraph_parity/test_unfinished.py": 4,
    "langgraph_parity/test_versions.py": 13,
    "unanswered/": 15,
    "page/test_api.py": 11,
    "page/test_security.py": 15,
    "page/test_serve.py": 21,
    "power/": 10,
    "races/test_leases.py": 8,
    "releases/test_refusals.py": 76,
    "releases/test_savers.py": 10,
    "releases/test_side_by_side.py": 510,
    "replication/test_bare_savers.py": 27,
    "replication/test_beside_puts.py": 26,
    "replication/test_chaos.py": 7,
    "replication/test_conformance.py": 232,
    "replication/test_copying.py": 11,
    "replication/test_crowds.py": 8,
    "replication/test_entries.py": 5,
    "replication/test_orders.py": 12,
    "replication/test_removed_apart.py": 23,
    "replication/test_status.py": 12,
    "replication/test_terms.py": 8,
    "serde/test_bombs.py": 28,
    "serde/test_deterministic.py": 10,
    "serde/test_exact.py": 13,
    "serde/test_families.py": 7,
    "serde/test_hooks.py": 11,
    "serde/test_parts.py": 5,
    "serde/test_readable.py": 6,
    "serde/test_serializer.py": 7,
    "serde/test_showing.py": 8,
    "signals/test_background.py": 6,
    "signals/test_signals.py": 68,
    "simulator/": 30,
    "speed/test_both_ways.py": 8,
    "speed/test_counterparts.py": 20,
    "speed/test_harm.py": 11,
    "speed/test_objects.py": 14,
    "speed/test_rope.py": 10,
    "sqlite/test_at_once.py": 9,
    "sqlite/test_crafted.py": 20,
    "sqlite/test_damage.py": 30,
    "sqlite/test_damaged_keys.py": 19,
    "sqlite/test_erased.py": 5,
    "sqlite/test_exit.py": 21,
    "sqlite/test_faults.py": 6,
    "sqlite/test_loops.py": 19,
    "sqlite/test_meeting.py": 12,
    "sqlite/test_processes.py": 26,
    "sqlite/test_replaced_files.py": 16,
    "sqlite/test_space.py": 11,
    "sqlite/test_wrong_kinds.py": 36,
    "store/test_conformance.py": 86,
    "store/test_damaged_cells.py": 14,
    "store/test_pairs.py": 20,
    "store/test_moving.py": 9,
    "store/test_sweeping.py": 27,
    "store/test_cache.py": 34,
    "transactions/test_blocks.py": 18,
    "transactions/test_killed.py": 18,
    "transactions/test_within.py": 15,
    "test_benchmarks.py": 45,
    "test_docs.py": 9,
    "test_examples.py": 19,
    "test_house.py": 22,
    "test_model.py": 13,
    "test_packages.py": 140,
    "test_platforms.py": 30,
    "test_resealing.py": 6,
    "test_rooms.py": 12,
    "test_soak.py": 6,
    "test_thread_stores.py": 17,
    "test_views.py": 7,
    "test_conformance.py::": 295,
}
"""The tests that take more than four seconds, named as in `PATHS`, and its seconds in `make test` without servers."""

QUICK = ("test_conformance.py::test_behaviour[", ("-memory-blocking]", "-sqlite file-asyncio]"))
"""How the tests begin and end that are quick all the same: each behaviour once in memory and once on a file."""

_FORK, _TERMINAL = "there is no fork", "there is no terminal that a program can open"
_SIGNAL, _RIGHTS = "a signal cannot be sent so", "a mode does not say who may read or write"
_LIMIT, _KEPT = "the memory of a process cannot be limited so", "a file that is open cannot be deleted or replaced"
_NO_FULL = "there is no /dev/full"
_NO_PROC = {f"test_soak.py::{begin}": "there is no /proc" for begin in ("test_runs_that_end", "test_each_kind")}
_PRELOADED = "no library can be loaded before the system's own one"
UNSUITED = {
    "darwin": {
        **_NO_PROC,
        "cli/test_surroundings.py::test_a_full_disk": _NO_FULL,
        "power/test_power_cuts.py": _PRELOADED,
        "sqlite/test_crafted.py::": _LIMIT,
    },
    "win32": {
        **_NO_PROC,
        "cli/test_command.py::test_a_narrow_terminal": _TERMINAL,
        "cli/test_command.py::test_colours_are_for_terminals": _TERMINAL,
        "cli/test_command.py::test_ctrl_c_ends": _SIGNAL,
        "cli/test_command.py::test_keys_that_others_may_read": _RIGHTS,
        "cli/test_command.py::test_long_work_shows": _TERMINAL,
        "cli/test_command.py::test_a_pager_that_is_left": _TERMINAL,
        "cli/test_command.py::test_a_terminal_gets_a_pager": _TERMINAL,
        "cli/test_command.py::test_files_that_only_their_owner": _RIGHTS,
        "cli/test_hostile.py::": _TERMINAL,
        "cli/test_keys.py::test_a_new_file": _RIGHTS,
        "cli/test_manage.py::test_a_terminal_is_asked": _TERMINAL,
        "cli/test_reading.py::test_a_terminal_shows": _TERMINAL,
        "cli/test_reading.py::test_json_is_an_object": _TERMINAL,
        "cli/test_reading.py::test_the_name_of_a_node": _TERMINAL,
        "cli/test_surroundings.py::test_a_full_disk": _NO_FULL,
        "cli/test_surroundings.py::test_ctrl_c": _SIGNAL,
        "cli/test_upkeep.py::test_a_backup_is_of_one_moment": _RIGHTS,
        "cli/test_values.py::test_a_line_of_the_graph": _TERMINAL,
        "core/test_gc_pause.py::test_the_child_of_a_fork": _FORK,
        "core/test_keyrings.py::test_a_key_is_added": _RIGHTS,
        "core/test_keyrings.py::test_a_new_file_is_its_owners": _RIGHTS,
        "core/test_memory_file.py::test_the_child_of_a_fork": _FORK,
        "core/test_persistent_dict.py::test_a_link_in_the_place": "only some users may make links",
        "core/test_persistent_files.py::test_a_file_that_was_replaced": _KEPT,
        "core/test_persistent_files.py::test_a_file_without_write": _RIGHTS,
        "core/test_persistent_files.py::test_a_full_disk": _LIMIT,
        "core/test_persistent_files.py::test_a_process_that_was_killed": _SIGNAL,
        "power/test_power_cuts.py": _PRELOADED,
        "sqlite/test_crafted.py::": _LIMIT,
        "sqlite/test_exit.py::test_a_program": _FORK,
        "sqlite/test_faults.py::test_a_read_only_file": _RIGHTS,
        "sqlite/test_loops.py::test_a_fork": _FORK,
        "sqlite/test_loops.py::test_after_a_fork": _FORK,
        "sqlite/test_processes.py::test_what_was_acknowledged": _SIGNAL,
        "sqlite/test_read_only.py::test_nothing_is_made_beside": _RIGHTS,
        "sqlite/test_replaced_files.py::": _KEPT,
    },
}
"""Why tests cannot run on a system, named as in `PATHS`."""

_running: set[str] | None = None
"""The markers of the test that runs, in a run that chose its tests by markers."""


def markers(name: str, fixtures: Iterable[str]) -> set[str]:
    """Return the markers of a test. `name` is its path below this folder, `::`, and its own name."""
    _, _, parameters = name.partition("[")
    words = re.findall(r"[a-z]+", parameters.lower())
    found = of_path(name)
    for table, keys in ((FIXTURES, fixtures), (WORDS, words)):
        for key in keys:
            found |= table.get(key, set())
    return found


def of_path(name: str) -> set[str]:
    """Return the markers of everything whose name begins so."""
    found = {marker for path, each in PATHS.items() if name.startswith(path) for marker in each}
    begins, ends = QUICK
    if name.startswith(tuple(SLOW)) and not (name.startswith(begins) and name.endswith(ends)):
        found.add("slow")
    return found


def is_left_out(path: str, expression: str) -> bool:
    """Return whether `-m expression` selects none of the tests of a file or folder, whatever else they are marked."""
    certain, select = of_path(path), Expression.compile(expression)
    others = sorted(MARKERS.keys() - certain)
    subsets = (certain.union(more) for size in range(len(others) + 1) for more in combinations(others, size))
    return not any(select.evaluate(_matcher(found)) for found in subsets)


def _matcher(found: set[str]) -> ExpressionMatcher:
    def matches(marker: str, /, **_: str | int | bool | None) -> bool:
        return marker in found

    return matches


def unsuited(name: str, system: str) -> str | None:
    """Return why a test cannot run on a system, named as by `sys.platform`, or None if it can."""
    return next((why for begin, why in UNSUITED.get(system, {}).items() if name.startswith(begin)), None)


def running(found: set[str] | None) -> None:
    """Note the markers of the test that runs now, or None."""
    global _running  # noqa: PLW0603 - a process runs one test at a time
    _running = found


def require(marker: str) -> None:
    """Fail if a test runs that starts this server and does not have the marker."""
    assert _running is None or marker in _running, f"a test that needs {marker} is not marked so: see tests/marks.py"
