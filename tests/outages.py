"""Tests of broken connections and of a server that goes away, which every server with a network runs."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from postgres.steps import aplay, count, play, step, thread
from threadmark import Saver, StoreError, TransientStoreError

T = TypeVar("T")
SHORT = 0.3
"""The timeout of a saver whose server is away."""


async def in_time(call: Callable[[], Awaitable[T]], *out_of_time: str) -> T:
    """Repeat a call for as long as its error has one of these words: on a busy machine any call may be too slow."""
    while True:
        try:
            return await call()
        except StoreError as error:
            if not any(words in str(error) for words in out_of_time):
                raise


async def ended_sessions_are_replaced(calls: Any, end: Callable[[], object]) -> None:
    """Each call finds its connection ended by the server."""
    config = await aplay(calls, "one", 2)
    for number in range(2, 6):
        assert end()
        config = await calls.aput(config, *step(number))
    assert end()
    assert (await calls.aget(thread("one")))["channel_values"]["count"] == 5


async def cut_connections_are_replaced(calls: Any, cut: Callable[[], object]) -> None:
    """A put and a get find their connections gone without a word."""
    config = await aplay(calls, "one", 2)
    cut()
    await calls.aput(config, *step(2))
    cut()
    assert (await calls.aget(thread("one")))["channel_values"]["count"] == 2


async def is_an_error_while_it_is_away(calls: Any, own: Any) -> None:
    """The server stops, comes back, and is restarted, for a saver that waits `SHORT` only."""
    late = f"for {SHORT} s"
    config = await aplay(calls, "one", 3)
    own.stop()
    with pytest.raises(TransientStoreError, match=f"could not be used {late}"):
        await calls.aget(thread("one"))
    own.start()
    assert (await in_time(lambda: calls.aget(thread("one")), late))["channel_values"]["count"] == 2
    own.restart()
    await in_time(lambda: calls.aput(config, *step(3)), late)
    assert (await in_time(lambda: calls.aget(thread("one")), late))["channel_values"]["count"] == 3


def is_waited_for(saver: Saver, own: Any) -> None:
    """The server comes back while a put waits."""
    config = play(saver, "one", 2)
    own.stop()
    starting = threading.Timer(0.5, own.start)
    starting.start()
    saver.put(config, *step(2))
    starting.join()
    assert count(saver, "one") == 2
