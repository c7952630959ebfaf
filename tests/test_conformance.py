"""Every backend, with both APIs, behaves as the suite says: here memory and SQLite."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backends import BACKENDS
from suites import CITUS, MEMORY, POSTGRES, REDIS, Suite, checks
from threadmark import Saver
from threadmark.backends import Store
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark_conformance import APIS, CASES, Opener, run_case

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(MEMORY, BACKENDS)


class _Half(MemoryStore):
    """A store whose author has not got to two operations yet: one that the protocol has, one that is nowhere."""

    chain = Store.chain
    drop = None  # type: ignore[assignment]  # as of an object that is no subclass of the protocol


def test_a_backend_that_lacks_an_operation_is_told_which(tmp_path: Path) -> None:
    @contextmanager
    def unfinished(_: Path) -> Iterator[Opener]:
        driver = MemoryDriver()
        yield lambda **options: Saver(_Half(), driver, **options)

    with pytest.raises(AssertionError, match="_Half lacks operations: write chain, drop, as the docstrings"):
        run_case(CASES[0], unfinished, "blocking", tmp_path)


@pytest.mark.parametrize("suite", [MEMORY, POSTGRES, REDIS, CITUS], ids=["memory", "Postgres", "Redis", "Citus"])
def test_every_case_runs_with_both_apis(suite: Suite) -> None:
    assert {(case, api) for case, _, api in suite.behaviours()} == {(case, api) for case in CASES for api in APIS}
