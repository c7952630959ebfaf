"""The log of the Postgres backend when connections break, servers refuse and statements are slow, without secrets."""

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from log_lines import assert_nothing_is_logged_of, handlers, lines_of
from patience import wait_until
from postgres import next_format
from postgres.cluster import Cluster, PostgresServer
from postgres.proxy import Proxy
from postgres.sessions import END_SESSIONS, HELD_UP
from postgres.steps import APIS, aplay, count, play, step, thread
from threadmark import ConfigError, Saver, StoreError
from threadmark_postgres import PostgresSaver, ddl
from threadmark_postgres.migrations import CURRENT

LOGGER = "threadmark.postgres"
PASSWORD = "correct-horse-battery"  # noqa: S105 - the test looks for it in the log


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., list[str]]]:
    """The lines logged so far at a level, which it then forgets."""
    with lines_of(LOGGER, caplog) as found:
        yield found


def place(url: str) -> str:
    """A database as messages name it."""
    port, _, name = url.rpartition(":")[2].partition("/")
    return f"Postgres host=127.0.0.1 port={port} dbname={name}"


@pytest.mark.parametrize("api", APIS)
def test_new_tables_are_told_once(url: str, lines: Callable[..., list[str]], api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        for _ in range(2):
            async with PostgresSaver(url) as saver:
                await aplay(api(saver), "one", 1)

    asyncio.run(body())
    (line,) = lines(logging.INFO)
    assert re.fullmatch(rf"{place(url)}: made the tables of format {CURRENT} in \d+\.\d+ s", line)


def test_a_migration_is_told_with_its_formats(
    url: str, tables: psycopg.Connection, lines: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.execute(ddl().encode())
    next_format.install(monkeypatch)
    lines(logging.INFO)
    with PostgresSaver(url) as saver:
        play(saver, "one", 1)
    (line,) = lines(logging.INFO)
    assert re.fullmatch(rf"{place(url)}: migrated from format 1 to {next_format.NUMBER} in \d+\.\d+ s", line)


@pytest.mark.parametrize("combine", [True, False])
@pytest.mark.parametrize("api", APIS)
def test_a_lost_connection_is_told_with_its_place_and_without_its_password(
    cluster: PostgresServer, url: str, lines: Callable[..., list[str]], api: Callable[[Saver], Any], *, combine: bool
) -> None:
    async def body() -> None:
        with Proxy(cluster.port) as proxy:
            through = url.replace(f":{cluster.port}/", f":{proxy.port}/")
            # A busy machine may be slow, and that is logged as well.
            async with PostgresSaver(through.replace("@", f":{PASSWORD}@"), combine=combine, slow=None) as saver:
                calls = api(saver)
                config = await aplay(calls, "one", 2)
                for put in (True, False):
                    assert lines(logging.WARNING) == []
                    proxy.cut()
                    await (calls.aput(config, *step(2)) if put else calls.aget(thread("one")))
                    found = lines(logging.WARNING)
                    assert "; trying again" in found[0]
                    for line in found:
                        assert line.startswith(
                            (f"{place(through)}: no connection, or it was lost (", f"{place(through)}: works again")
                        )
                        assert PASSWORD not in line

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_session_that_the_server_ended_is_told(
    url: str, tables: psycopg.Connection, lines: Callable[..., list[str]], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            await aplay(calls, "one", 2)
            tables.execute(END_SESSIONS)
            await calls.aget(thread("one"))

    asyncio.run(body())
    assert any(": the server ended the session (57P01: " in line for line in lines(logging.WARNING))


@pytest.mark.parametrize("combine", [True, False])
def test_an_outage_is_told_when_it_begins_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture, *, combine: bool
) -> None:
    def attempts() -> int:
        return sum("; trying again" in record.getMessage() for record in list(caplog.records))

    with (
        Cluster() as own,
        PostgresSaver(own.url, timeout=120, combine=combine, slow=None) as saver,
        ThreadPoolExecutor(8) as pool,
    ):
        config = play(saver, "one", 1)
        caplog.clear()
        own.stop()
        calls: list[Future[Any]] = [pool.submit(saver.put, thread(f"thread {each}"), *step(1)) for each in range(4)]
        calls += [pool.submit(saver.get, config) for _ in range(4)]
        wait_until(lambda: attempts() > 20, "no further attempts")
        own.start()
        for each in calls:
            each.result()
        saver.get(config)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "; trying again" in warnings[0]
    assert ": works again after " in warnings[-1]
    assert len(warnings) <= 4 < attempts()  # one that began before the end may fail after it


def test_a_failed_attempt_says_when_the_next_one_is(lines: Callable[..., list[str]]) -> None:
    with Cluster() as own, PostgresSaver(own.url, timeout=0.5, slow=None) as saver:
        play(saver, "one", 1)
        own.stop()
        for _ in range(100):  # on a busy machine the time may be over after a single attempt
            with pytest.raises(StoreError, match="could not be used"):
                saver.get(thread("one"))
            found = [line for line in lines(logging.DEBUG) if "no connection" in line]
            assert all("; trying again in 0." in line and line.endswith(" s at most") for line in found)
            if len(found) > 2:
                return
    raise AssertionError("no further attempts are told")


def test_a_server_that_takes_no_writes_for_now_is_told(
    url: str, tables: psycopg.Connection, lines: Callable[..., list[str]]
) -> None:
    name = url.rpartition("/")[2]
    with PostgresSaver(url) as saver:
        config = play(saver, "one", 1)
    tables.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with PostgresSaver(url, timeout=60, slow=None) as saver, ThreadPoolExecutor(1) as pool:
        assert count(saver, "one") == 0
        put = pool.submit(saver.put, config, *step(1))
        found = list[str]()
        while not found:
            assert not put.done()
            found += lines(logging.WARNING)
        assert not put.done()
        tables.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        put.result()
    assert any("takes no writes, as a standby or after a failover (25006: cannot execute" in line for line in found)


@pytest.mark.parametrize("api", APIS)
def test_a_statement_that_waits_for_a_lock_is_told(
    url: str, tables: psycopg.Connection, lines: Callable[..., list[str]], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, slow=0.3) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 2)
            lines(logging.WARNING)
            with tables.transaction():
                tables.execute("SELECT FROM threadmark_thread FOR UPDATE")
                put = asyncio.ensure_future(calls.aput(config, *step(2)))
                with psycopg.connect(url, autocommit=True) as other:
                    await asyncio.to_thread(wait_until, lambda: next(other.execute(HELD_UP))[0], "nobody waits")
                await asyncio.sleep(0.4)
            await put
        (line,) = lines(logging.WARNING)
        assert line.startswith(f"{place(url)}: a transaction that writes (")
        assert line.endswith(" s, waiting for locks included")

    asyncio.run(body())


def test_slow_is_whatever_the_user_says(url: str, lines: Callable[..., list[str]]) -> None:
    for slow, logged in ((0, True), (30, False), (None, False)):
        with PostgresSaver(url, slow=slow) as saver:
            play(saver, "one", 1)
            assert count(saver, "one") == 0
        found = lines(logging.WARNING)
        assert any("that writes (" in line for line in found) == logged
        assert any("that reads (load)" in line for line in found) == logged
        assert bool(found) == logged
    with pytest.raises(ConfigError, match="slow must be"):
        PostgresSaver(url, slow=-1)


@pytest.mark.parametrize("api", APIS)
def test_a_batch_that_is_taken_apart_is_told(
    url: str, tables: psycopg.Connection, lines: Callable[..., list[str]], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            await aplay(calls, "one", 1)
            with tables.transaction():
                tables.execute("SELECT FROM threadmark_thread FOR UPDATE")
                tables.execute("LOCK TABLE threadmark_head IN EXCLUSIVE MODE")
                puts = [asyncio.ensure_future(calls.aput(thread(f"{each}"), *step(1))) for each in range(4)]
                with psycopg.connect(url, autocommit=True) as other:
                    await asyncio.to_thread(wait_until, lambda: next(other.execute(HELD_UP))[0], "nobody waits")
                    other.execute(END_SESSIONS)
                    await asyncio.sleep(0.1)
            await asyncio.gather(*puts)
            assert len([item async for item in saver.alist(None)]) == 5

    asyncio.run(body())
    assert any("a batch failed (" in line and "stored one by one" in line for line in lines(logging.DEBUG))


@pytest.fixture
def handler() -> Iterator[Callable[[Callable[[], Any]], None]]:
    with handlers(LOGGER) as add:
        yield add


@pytest.mark.parametrize("api", APIS)
def test_a_handler_that_raises_ends_no_attempt_and_loses_no_answer(
    url: str,
    tables: psycopg.Connection,
    api: Callable[[Saver], Any],
    handler: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise OSError("the log is full")

    async def body() -> None:
        async with PostgresSaver(url, slow=0) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 2)
            tables.execute(END_SESSIONS)
            await calls.aput(config, *step(2))
            assert len([item async for item in saver.alist(thread("one"))]) == 3

    handler(fail)
    asyncio.run(body())
    assert "the log is full" in capsys.readouterr().err


def test_a_handler_may_use_the_saver_that_logs(url: str, handler: Callable[..., None]) -> None:
    busy = threading.local()

    def store_too() -> None:
        if not getattr(busy, "yes", False):
            busy.yes = True
            saver.put(thread("log"), *step(1))
            busy.yes = False

    with PostgresSaver(url, slow=0, pool_size=2) as saver:
        handler(store_too)
        play(saver, "one", 1)
        with ThreadPoolExecutor(4) as pool:
            for each in [pool.submit(play, saver, f"thread {number}", 2) for number in range(4)]:
                each.result()
        assert len(list(saver.list(thread("log")))) > 4


def test_no_value_and_no_password_is_logged(
    cluster: PostgresServer, url: str, tables: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    distinctive = "a sentence that stands nowhere else"

    async def body(saver: PostgresSaver) -> None:
        for calls in (api(saver) for api in APIS):
            config: Any = thread("one")
            for number in range(4):
                made, metadata, versions = step(number + 1)
                made["channel_values"]["messages"] += [f"{distinctive} {each}" for each in range(100)]
                config = await calls.aput(config, made, metadata | {"note": distinctive}, versions)
                tables.execute(END_SESSIONS)
                await calls.aput_writes(config, [("messages", distinctive), ("__error__", distinctive)], f"{number}")
            assert [item async for item in saver.alist(thread("one"), filter={"note": distinctive})]
            await asyncio.gather(*(calls.aput(thread(f"{each}"), made, metadata, versions) for each in range(20)))
            proxy.cut()
            await calls.acopy_thread("one", "copy")
            await calls.aprune(["one"], keep_last=2)
            made["channel_values"]["count"] = lambda: distinctive
            with pytest.raises(Exception, match="cannot be stored"):
                await calls.aput(config, made, metadata, versions)
        hurried = PostgresSaver(f"{through}?options=-c%20statement_timeout%3D300", slow=0)
        with tables.transaction(), hurried:
            tables.execute("SELECT FROM threadmark_thread FOR UPDATE")
            with pytest.raises(StoreError, match="statement_timeout"):
                await hurried.adelete_thread("one")

    with Proxy(cluster.port) as proxy:
        through = url.replace(f":{cluster.port}/", f":{proxy.port}/").replace("@", f":{PASSWORD}@")
        with PostgresSaver(through, slow=0, cache_bytes=20_000) as saver:
            asyncio.run(body(saver))
    nobody = f"postgresql://postgres:{PASSWORD}@127.0.0.1:1/agents"
    with PostgresSaver(nobody, timeout=0.1) as saver, pytest.raises(StoreError):
        saver.get(thread("one"))

    async def pools() -> None:
        async with AsyncConnectionPool(url.replace("@", f":{PASSWORD}@"), min_size=1, max_size=2) as pool:
            saver = PostgresSaver(pool, slow=0)
            await aplay(saver, "two", 2)
            tables.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"  # others share the server
            )
            await aplay(saver, "three", 2)

    asyncio.run(pools())
    assert_nothing_is_logged_of(caplog, distinctive, PASSWORD)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:p@{PASSWORD}@host/agents",
        f"postgresql://user:{PASSWORD}/x@host/agents",
        f"postgresql://user:%zz{PASSWORD}@host/agents",
        f"postgresql://user:p@{PASSWORD}@host,other/agents",
        f"user=someone '{PASSWORD}",
    ],
)
def test_a_password_that_is_written_wrongly_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="in the password @ as %40") as refused:
        PostgresSaver(url)
    assert PASSWORD not in str(refused.value)


def test_a_password_in_the_name_of_a_database_is_not_shown() -> None:
    saver = PostgresSaver(f"dbname=postgresql://user:{PASSWORD}@127.0.0.1:1/agents", timeout=0)
    with saver, pytest.raises(StoreError) as refused:
        saver.get(thread("one"))
    assert "dbname=127.0.0.1:1/agents" in str(refused.value)
    assert PASSWORD not in str(refused.value)
