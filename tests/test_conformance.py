"""Every backend, with both APIs, behaves as the suite says: here memory and SQLite."""

import pytest

from backends import BACKENDS
from suites import CITUS, MEMORY, POSTGRES, REDIS, Suite, checks
from threadmark_conformance import APIS, CASES

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(MEMORY, BACKENDS)


@pytest.mark.parametrize("suite", [MEMORY, POSTGRES, REDIS, CITUS], ids=["memory", "Postgres", "Redis", "Citus"])
def test_every_case_runs_with_both_apis(suite: Suite) -> None:
    assert {(case, api) for case, _, api in suite.behaviours()} == {(case, api) for case in CASES for api in APIS}
