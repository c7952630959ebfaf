"""The backends that the suite for stores runs on. Another one plugs in by its line in `BACKENDS`."""

from backends import memory, sealed, sqlite_file, sqlite_memory
from length import ALL
from postgres.backends import BACKENDS as POSTGRES
from redis_backend.backends import BACKENDS as REDIS
from threadmark_conformance import APIS, Backend

BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "memory sealed": sealed,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
    "postgres": POSTGRES["url"],
    "redis": REDIS["single"],
    "redis cluster": REDIS["cluster"],
}

ONE_API = {"memory sealed": "blocking", "sqlite memory": "asyncio", "redis cluster": "asyncio"}
"""The backends that differ from another one in their rows or their driver, but in no API, and the API that they run."""

WAYS = [(backend, api) for backend in BACKENDS for api in APIS if ALL or ONE_API.get(backend, api) == api]
"""Each backend, and the APIs that run on it."""
