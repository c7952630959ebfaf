"""The suite on pairs of databases."""

from replication.backends import BACKENDS
from suites import PAIRS, checks

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(PAIRS, BACKENDS)
