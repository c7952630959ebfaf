"""The suite on cached savers, whose caches all savers of a database share."""

from caching.backends import BACKENDS
from suites import CACHED, checks

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(CACHED, BACKENDS)
