"""The surroundings of a measurement: machine, Python, and the versions of everything that takes part."""

import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psycopg
import redis

from measuring.jobs import POSTGRES, REDIS

_PACKAGES = (
    "threadmark",
    "threadmark-speed",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langchain-core",
    "aiosqlite",
    "psycopg",
    "redis",
    "msgpack",
    "ormsgpack",
    "orjson",
    "zstandard",
)


def description(servers: Mapping[str, str]) -> Iterator[str]:
    """Lines of a list in Markdown."""
    yield f"* {_processor()}, {os.cpu_count()} cores; {platform.system()} {platform.release()}"
    databases = [f"SQLite {sqlite3.sqlite_version}"]
    if POSTGRES in servers:
        databases.append(f"Postgres {_postgres_version(servers[POSTGRES])}")
    if REDIS in servers:
        databases.append(f"Redis {_redis_version(servers[REDIS])}")
    yield f"* Python {platform.python_version()}, {', '.join(databases)}"
    yield f"* {', '.join(f'{name} {_version(name)}' for name in _PACKAGES)}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _redis_version(server: str) -> str:
    with redis.Redis.from_url(server) as client:
        return str(client.info("server")["redis_version"])


def _postgres_version(server: str) -> str:
    with psycopg.connect(server) as connection:
        return str(connection.info.parameter_status("server_version")).partition(" ")[0]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
