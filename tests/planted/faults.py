"""All faults that `make plant` plants."""

from planted import of_core, of_postgres, of_redis, of_rooms, of_sqlite, of_stores

FAULTS = [
    *of_core.FAULTS,
    *of_sqlite.FAULTS,
    *of_postgres.FAULTS,
    *of_redis.FAULTS,
    *of_rooms.FAULTS,
    *of_stores.FAULTS,
]
