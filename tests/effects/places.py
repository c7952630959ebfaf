"""The databases that these tests run on, calls of either API, and functions that count their calls."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from postgres.cluster import shared
from redis_backend import processes
from threadmark import Effects, MemorySaver, Saver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

PLACES = ("memory", "sqlite", "postgres", "redis")
APIS = ("blocking", "asyncio")

_numbers = itertools.count()


@cache
def _database() -> str:
    """A database of Postgres for all tests of this process, as it takes long to make one."""
    return shared().database(f"effects_{os.getpid()}")


@contextmanager
def opened(place: str, folder: Path, **options: Any) -> Iterator[Saver]:
    """A saver on an empty database."""
    if place == "postgres":
        with PostgresSaver(_database(), **options) as saver:
            yield saver
            saver.prune([each.id for each in saver.list_threads().threads], strategy="delete")
    elif place == "redis":
        url = processes.shared().url
        with RedisSaver(url, prefix=f"effects{next(_numbers)}:", durability="memory", **options) as saver:
            yield saver
        processes.shared().command("FLUSHALL")
    else:
        made: Saver = MemorySaver(**options)
        if place == "sqlite":
            made = SqliteSaver(folder / "threads.db", durability="normal", **options)
        with made as saver:
            yield saver


def once(api: str, effects: Effects, *args: Any, **options: Any) -> Any:
    """Make a call once, with one API."""
    if api == "blocking":
        return effects.once(*args, **options)

    async def body() -> Any:
        return await effects.aonce(*args, **options)

    return asyncio.run(body())


class Receiver:
    """A service: it counts the calls, and fails as it is asked to."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.keys: list[str] = []
        self.errors: list[Exception | type[Exception]] = []
        """Raised by the next calls, one by each."""

    def charge(self, amount: Any, idempotency_key: str = "") -> dict[str, Any]:
        """Count a call, and return the receipt."""
        self.calls.append(amount)
        self.keys.append(idempotency_key)
        if self.errors:
            raise self.errors.pop(0)
        return {"receipt": len(self.calls), "amount": amount}

    async def acharge(self, amount: Any, idempotency_key: str = "") -> dict[str, Any]:
        """Like `charge`, for asyncio."""
        await asyncio.sleep(0)
        return self.charge(amount, idempotency_key)
