"""The suite on a single Redis server, on a cluster, and through Sentinels."""

from redis_backend.backends import BACKENDS
from suites import REDIS, checks, random_use

test_behaviour, test_death_at_any_step, test_meeting_in_any_order = checks(REDIS, BACKENDS)
test_random_use = random_use(REDIS, BACKENDS)
