"""Calls leave nothing for the garbage collector: a state of megabytes goes as soon as its user drops it."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backends import memory, sqlite_file
from postgres.backends import BACKENDS as POSTGRES
from redis_backend.backends import BACKENDS as REDIS
from threadmark_conformance import Backend
from threadmark_conformance.engine import at, checkpoint
from threadmark_langgraph import wrap

BACKENDS: dict[str, Backend] = {
    "memory": memory,
    "sqlite": sqlite_file,
    "postgres": POSTGRES["url"],
    "redis": REDIS["single"],
}
THREAD: Any = at("thread", "")


@contextmanager
def _only_what_follows() -> Iterator[None]:
    """A block in which the collector looks at new objects alone. Objects from before it are not looked at later either.

    To look at all those of a suite takes a second.
    """
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.enable()


def _left_over(call: Callable[[], Any]) -> int:
    """Return how many objects only the collector can free after a call. The one before it fills the caches."""
    call()
    with _only_what_follows():
        call()
        return gc.collect()


async def _left_over_later(call: Callable[[], Awaitable[Any]]) -> int:
    await call()
    await asyncio.sleep(0)
    with _only_what_follows():
        await call()
        await asyncio.sleep(0)
        return gc.collect()


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_leave_no_cycles(backend: str, tmp_path: Path) -> None:
    with BACKENDS[backend](tmp_path) as open_saver, open_saver() as saver:
        checkpointer: Any = wrap(saver)
        numbers = iter(range(1, 10))
        newest: list[Any] = [THREAD]

        def put() -> None:
            newest[0] = checkpointer.put(newest[0], checkpoint({"text": "word " * 5000 + str(next(numbers))}), {}, {})

        def write() -> None:
            checkpointer.put_writes(newest[0], [("text", "more")], f"task {next(numbers)}")

        calls = {
            "put": put,
            "put_writes": write,
            "get_tuple": lambda: checkpointer.get_tuple(THREAD),
            "list": lambda: list(checkpointer.list(THREAD)),
            "delete_thread": lambda: checkpointer.delete_thread("another"),
        }
        assert {name: _left_over(call) for name, call in calls.items()} == dict.fromkeys(calls, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_of_asyncio_leave_no_cycles(backend: str, tmp_path: Path) -> None:
    async def main() -> dict[str, int]:
        with BACKENDS[backend](tmp_path) as open_saver:
            async with open_saver() as saver:
                checkpointer: Any = wrap(saver)
                numbers = iter(range(1, 10))
                newest: list[Any] = [THREAD]

                async def put() -> None:
                    newest[0] = await checkpointer.aput(
                        newest[0], checkpoint({"text": "word " * 5000 + str(next(numbers))}), {}, {}
                    )

                async def write() -> None:
                    await checkpointer.aput_writes(newest[0], [("text", "more")], f"task {next(numbers)}")

                async def get() -> None:
                    assert await checkpointer.aget_tuple(THREAD) is not None

                return {call.__name__: await _left_over_later(call) for call in (put, write, get)}

    assert asyncio.run(main()) == {"put": 0, "write": 0, "get": 0}
