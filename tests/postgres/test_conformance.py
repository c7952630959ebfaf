"""The suite on Postgres, however its saver came to its connections."""

from postgres.backends import BACKENDS
from suites import POSTGRES, checks, random_use

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(POSTGRES, BACKENDS)
test_random_use = random_use(POSTGRES, BACKENDS)
