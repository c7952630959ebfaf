"""A saver that never had a connection names the fault at once; only a server that is starting is waited for."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from ports import free_port
from postgres.cluster import Cluster
from postgres.proxy import Proxy
from postgres.steps import APIS, play, step, thread
from threadmark import Saver, StoreError, TransientStoreError
from threadmark_postgres import PostgresSaver

_AT_ONCE = 30.0
"""Seconds: much more than it takes on a busy machine, and much less than the hour that these savers may wait."""

_CALLS: dict[str, Callable[[Any], Any]] = {
    "put": lambda saver: saver.aput(thread("one"), *step(0)),
    "get": lambda saver: saver.aget(thread("one")),
    "has_tables": lambda saver: saver.ahas_tables(),
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A server that asks one of its roles for a password."""
    with Cluster() as own:
        rules = own.data / "pg_hba.conf"
        rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        own.configure()
        own.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
        yield own


def _wrong_addresses(guarded: Cluster) -> dict[str, tuple[str, type[StoreError], str]]:
    """URLs that lead nowhere, with the error that says why."""
    here = f"127.0.0.1:{guarded.port}"
    return {
        "refused": (f"postgresql://u@127.0.0.1:{free_port()}/db", TransientStoreError, "refused"),
        "no such host": ("postgresql://u@nobody.invalid/db", TransientStoreError, "nobody.invalid"),
        "no such database": (f"postgresql://postgres@{here}/nothing", StoreError, '"nothing" does not exist'),
        "no such role": (f"postgresql://nobody@{here}/postgres", StoreError, '"nobody" does not exist'),
        "wrong password": (f"postgresql://locked:wrong@{here}/postgres", StoreError, "password authentication failed"),
    }


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("kind", ["refused", "no such host", "no such database", "no such role", "wrong password"])
def test_a_wrong_address_is_told_at_once(guarded: Cluster, kind: str, call: str, api: Callable[[Saver], Any]) -> None:
    url, error, cause = _wrong_addresses(guarded)[kind]

    async def body() -> None:
        async with PostgresSaver(url, timeout=3600) as saver:
            started = time.monotonic()
            with pytest.raises(error, match=cause) as caught:
                await _CALLS[call](api(saver))
            assert time.monotonic() - started < _AT_ONCE
            assert type(caught.value) is error
            assert isinstance(caught.value.__cause__, psycopg.Error)

    asyncio.run(body())


@pytest.mark.parametrize("call", ["setup", "get", "put"])
def test_the_main_thread_is_told_at_once(call: str) -> None:
    with PostgresSaver(f"postgresql://u@127.0.0.1:{free_port()}/db", timeout=3600) as saver:
        calls: dict[str, Callable[[], Any]] = {
            "setup": saver.setup,
            "get": lambda: saver.get(thread("one")),
            "put": lambda: saver.put(thread("one"), *step(0)),
        }
        started = time.monotonic()
        with pytest.raises(TransientStoreError, match=r"refused.*never had a connection"):
            calls[call]()
        assert time.monotonic() - started < _AT_ONCE


def _blocking(url: str, call: str) -> None:
    with PostgresSaver(url, timeout=3600) as saver:
        asyncio.run(_CALLS[call](APIS[0](saver)))


def _in_a_loop(url: str, call: str) -> None:
    async def body() -> None:
        async with PostgresSaver(url, timeout=3600) as saver:
            await _CALLS[call](saver)

    asyncio.run(body())


def test_the_connect_timeout_of_a_url_is_all_that_a_first_call_waits(guarded: Cluster) -> None:
    with Proxy(guarded.port) as server:
        server.fall_silent()
        url = f"postgresql://u@127.0.0.1:{server.port}/db?connect_timeout=2"
        ways = [partial(way, url, call) for way in (_blocking, _in_a_loop) for call in _CALLS]
        with ThreadPoolExecutor(len(ways)) as threads:
            started = time.monotonic()
            for answer in [threads.submit(way) for way in ways]:
                with pytest.raises(TransientStoreError, match="could not be reached: connection timeout expired"):
                    answer.result()
            assert time.monotonic() - started < 8  # and not the 10 s that it is if the URL does not say
        assert server.connections == len(ways), "each call asked once"


@pytest.mark.parametrize("api", APIS)
def test_the_connect_timeout_of_a_url_holds_after_it_worked_as_well(
    guarded: Cluster, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with Proxy(guarded.port) as proxy:
            url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?connect_timeout=2"
            async with PostgresSaver(url, timeout=0.1) as saver:
                await saver.asetup()
                proxy.fall_silent()
                started = time.monotonic()
                with pytest.raises(TransientStoreError, match=r"could not be used for 0\.1 s"):
                    await api(saver).aget(thread("one"))
                assert time.monotonic() - started < 8

    asyncio.run(body())


class _AtFirstWarning(logging.Handler):
    """Does something when a first attempt has failed."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._do = do
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        if len(self.messages) == 1:
            self._do()


def test_a_server_that_is_starting_is_waited_for(guarded: Cluster) -> None:
    with Cluster(primary=guarded) as standby:
        standby.configure(hot_standby="off")  # so that it answers like a server that is starting
        standby.restart()
        handler = _AtFirstWarning(standby.promote)
        logger = logging.getLogger("threadmark.postgres")
        logger.addHandler(handler)
        try:
            with PostgresSaver(standby.url, timeout=60) as saver:
                play(saver, "one", 1)
        finally:
            logger.removeHandler(handler)
        assert "the database system is" in handler.messages[0]
