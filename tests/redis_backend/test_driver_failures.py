"""Connections that break, servers that refuse: the steps that are repeated, the errors, and the driver's recovery."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import redis

from patience import wait_until
from ports import free_port
from redis_backend.drivers import ECHO, adding, driver_of, echoing, members, running
from redis_backend.processes import FORGETFUL, HOST, RedisProcess
from redis_backend.proxy import Proxy
from threadmark import ClosedError, ConfigError, StoreError, TransientStoreError
from threadmark.backends import Pause, play
from threadmark.program import Transaction
from threadmark_redis.driver import RedisDriver, Settings, durability_of, servers_of_url
from threadmark_redis.driver.failures import Refused
from threadmark_redis.driver.router import Router
from threadmark_redis.driver.topology import Answered, Exchange
from threadmark_redis.steps import RunEach

Call = Callable[[RedisDriver, Transaction[Any]], Any]


def _blocking(driver: RedisDriver, transaction: Transaction[Any]) -> Any:
    return driver.run(transaction)


def _on_a_loop(driver: RedisDriver, transaction: Transaction[Any]) -> Any:
    return asyncio.run(driver.arun(transaction))


BOTH = pytest.mark.parametrize("call", [_blocking, _on_a_loop])


def _in_the_end(call: Call, driver: RedisDriver, transaction: Transaction[Any]) -> Any:
    """Repeat a call of a driver that has little time: on a busy machine any call may take longer."""
    answers: list[Any] = []

    def is_answered() -> bool:
        with suppress(TransientStoreError):
            answers.append(call(driver, transaction))
        return bool(answers)

    wait_until(is_answered, "it is never answered in time")
    return answers[0]


@pytest.fixture(scope="module")
def own() -> Iterator[RedisProcess]:
    """A server that the tests may disturb."""
    with RedisProcess(FORGETFUL) as process:
        yield process.start()


@BOTH
def test_a_connection_that_the_server_killed_is_replaced(own: RedisProcess, key: bytes, call: Call) -> None:
    driver = driver_of(own.url)
    assert call(driver, adding(key, 1)) == 1
    own.command("CLIENT", "KILL", "TYPE", "normal")
    assert call(driver, adding(key, 2)) == 1
    assert call(driver, members(key)) == [[b"1", b"2"]]
    driver.close()


def test_idle_connections_of_a_loop_are_replaced_when_they_were_killed(own: RedisProcess, key: bytes) -> None:
    driver = driver_of(own.url)

    async def body() -> None:
        await asyncio.gather(*(driver.arun(adding(key, number)) for number in range(8)))
        own.command("CLIENT", "KILL", "TYPE", "normal")
        await asyncio.gather(*(driver.arun(adding(key, number)) for number in range(8, 16)))
        assert await driver.arun(members(key)) == [sorted(str(each).encode() for each in range(16))]
        await driver.aclose()

    asyncio.run(body())


@BOTH
def test_a_change_whose_reply_was_lost_is_made_once(proxy: Proxy, key: bytes, call: Call) -> None:
    driver = driver_of(proxy.url)
    call(driver, adding(key, 1))
    proxy.lose_reply("EVALSHA")
    assert call(driver, adding(key, 2)) == 0, "it was made by the attempt whose reply was lost"
    assert call(driver, members(key)) == [[b"1", b"2"]]
    driver.close()


@BOTH
def test_scripts_that_the_server_has_lost_are_sent_again(own: RedisProcess, key: bytes, call: Call) -> None:
    driver = driver_of(own.url)
    assert call(driver, adding(key, 1)) == 1
    own.command("SCRIPT", "FLUSH")
    assert call(driver, adding(key, 2)) == 1
    assert call(driver, members(key)) == [[b"1", b"2"]]
    driver.close()


def test_a_lost_script_is_sent_with_its_text_once(server: RedisProcess, proxy: Proxy, key: bytes) -> None:
    driver = driver_of(proxy.url)
    transaction = running("return {redis.call('EXISTS', KEYS[1]), 'once'}", [key])
    for _ in range(3):
        assert driver.run(transaction) == [0, b"once"]
    sent = [name for name in proxy.commands if name.startswith("EVAL")]
    assert sent == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"]
    driver.close()
    assert server.client.ping()


def test_a_script_that_is_lost_again_before_the_last_of_several_calls_is_sent_with_each(key: bytes) -> None:
    """Someone flushes the scripts all the time."""
    settings = Settings(servers_of_url("redis://server"), durability_of("memory"), 1, 30.0)
    router = Router(settings)

    def answer(asked: Exchange | Pause) -> Answered:
        assert isinstance(asked, Exchange), "it need not wait"
        lost = Refused("NOSCRIPT", "No matching script")
        replies = {"EVALSHA": lost, "EVAL": 1, "PING": b"PONG"}
        return Answered([replies.get(str(command[0]), [None] * 3) for command in asked.commands])

    calls = RunEach(ECHO, [([key], [number]) for number in range(3)])
    assert play(router.answer(calls, router.retries()), answer) == [1, 1, 1]


@BOTH
def test_a_server_that_is_started_anew_is_waited_for(key: bytes, call: Call) -> None:
    with RedisProcess({"save": '""', "appendonly": "yes", "appendfsync": "always"}) as server:
        server.start()
        driver = driver_of(server.url)
        call(driver, adding(key, 1))
        server.kill()
        again = threading.Timer(0.2, server.start)
        again.start()
        assert call(driver, adding(key, 2)) == 1
        again.join()
        assert call(driver, members(key)) == [[b"1", b"2"]]
        driver.close()


@BOTH
def test_a_server_that_stays_away_is_a_transient_error_and_the_driver_goes_on(key: bytes, call: Call) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        driver = driver_of(server.url, timeout=0.2)
        call(driver, adding(key, 1))
        server.kill()
        with pytest.raises(TransientStoreError, match=r"could not be used for 0\.2 s") as caught:
            call(driver, adding(key, 2))
        assert isinstance(caught.value.__cause__, redis.ConnectionError)
        server.start()
        assert _in_the_end(call, driver, adding(key, 2)) == 1
        driver.close()


@BOTH
def test_a_server_that_was_never_there_is_not_waited_for(key: bytes, call: Call) -> None:
    driver = driver_of(f"redis://{HOST}:{free_port()}", timeout=60)
    begun = time.monotonic()
    with pytest.raises(TransientStoreError, match="never had a connection"):
        call(driver, adding(key, 1))
    assert time.monotonic() - begun < 30
    driver.close()


@BOTH
def test_a_server_that_does_not_answer_is_not_waited_for_without_end(own: RedisProcess, key: bytes, call: Call) -> None:
    with Proxy(own.port) as proxy:
        driver = driver_of(f"{proxy.url}?socket_timeout=0.1", timeout=0.3)
        _in_the_end(call, driver, adding(key, 1))
        with proxy.holding(), pytest.raises(TransientStoreError, match="Timeout"):
            call(driver, adding(key, 2))
        assert _in_the_end(call, driver, adding(key, 2)) in (0, 1)
        assert _in_the_end(call, driver, members(key)) == [[b"1", b"2"]]
        driver.close()


@BOTH
def test_a_script_that_keeps_the_server_busy_is_waited_for(key: bytes, call: Call) -> None:
    with RedisProcess({**FORGETFUL, "lua-time-limit": "1"}) as server:
        server.start()
        driver = driver_of(server.url)
        call(driver, adding(key, 1))
        # It writes nothing, so it may be killed, and it ends only then.
        with ThreadPoolExecutor() as pool:
            busy = pool.submit(_keep_busy, server)
            wait_until(lambda: _is_busy(server), "no script keeps the server busy")
            working = pool.submit(call, driver, adding(key, 2))
            time.sleep(0.05)
            server.command("SCRIPT", "KILL")
            assert working.result(60) == 1
            busy.result(60)
        driver.close()


def _keep_busy(server: RedisProcess) -> None:
    with redis.Redis(host=HOST, port=server.port, socket_timeout=60) as client, pytest.raises(redis.ResponseError):
        client.eval("while true do end", 0)


def _is_busy(server: RedisProcess) -> bool:
    try:
        server.command("GET", "x")
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


@BOTH
def test_a_master_that_has_become_a_replica_is_waited_for(key: bytes, call: Call) -> None:
    with RedisProcess(FORGETFUL) as server, RedisProcess(FORGETFUL) as other:
        server.start()
        other.start()
        driver = driver_of(server.url, timeout=30)
        call(driver, adding(key, 1))
        server.command("REPLICAOF", HOST, other.port)
        again = threading.Timer(0.2, server.command, ["REPLICAOF", "NO", "ONE"])
        again.start()
        assert call(driver, adding(key, 2)) == 1
        again.join()
        driver.close()


def test_a_replica_for_good_is_a_transient_error_that_says_so(key: bytes) -> None:
    with RedisProcess(FORGETFUL) as server, RedisProcess(FORGETFUL) as replica:
        server.start()
        replica.start()
        replica.command("REPLICAOF", HOST, server.port)
        driver = driver_of(replica.url, timeout=0.1)
        with pytest.raises(TransientStoreError, match="READONLY"):
            driver.run(adding(key, 1))
        driver.close()


@BOTH
def test_too_many_connections_are_waited_for(key: bytes, call: Call) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        driver = driver_of(server.url)
        call(driver, adding(key, 0))
        server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        server.client.config_set("maxclients", 1)
        again = threading.Timer(0.2, server.client.config_set, ["maxclients", 100])
        again.start()
        assert call(driver, adding(key, 1)) == 1
        again.join()
        driver.close()


@BOTH
def test_a_full_server_is_an_error_that_names_maxmemory(own: RedisProcess, key: bytes, call: Call) -> None:
    driver = driver_of(own.url)
    assert call(driver, adding(key, 1)) == 1
    own.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreError, match=r"OOM .*raise maxmemory") as caught:
            call(driver, adding(key, 2))
    finally:
        own.client.config_set("maxmemory", "0")
    assert not isinstance(caught.value, TransientStoreError)
    assert isinstance(caught.value.__cause__, redis.ResponseError)
    assert call(driver, adding(key, 2)) == 1
    driver.close()


@BOTH
def test_a_change_that_is_too_long_is_an_error_that_names_the_setting(
    own: RedisProcess, key: bytes, call: Call
) -> None:
    """The server would close the connection, and the driver take that for an outage."""
    own.client.config_set("proto-max-bulk-len", "1mb")
    try:
        driver = driver_of(own.url)
        with pytest.raises(StoreError, match=r"has 20,000,000 bytes.* takes 1,048,576 .*proto-max-bulk-len") as caught:
            call(driver, adding(key, b"x" * 20_000_000))
        assert not isinstance(caught.value, TransientStoreError)
        assert call(driver, adding(key, b"x" * 2**20)) == 1
        driver.close()
    finally:
        own.client.config_set("proto-max-bulk-len", "512mb")


@BOTH
def test_a_forbidden_script_is_an_error_that_names_the_command(own: RedisProcess, key: bytes, call: Call) -> None:
    own.command("ACL", "SETUSER", "noscripts", "on", ">secret", "~*", "+@all", "-@scripting")
    driver = driver_of(f"redis://noscripts:secret@{HOST}:{own.port}")
    with pytest.raises(StoreError, match=r"NOPERM .*evalsha.*needs EVALSHA and EVAL") as caught:
        call(driver, adding(key, 1))
    assert "secret" not in str(caught.value)
    ((_, runs_scripts),) = driver.survey()
    assert not runs_scripts
    driver.close()


@BOTH
def test_a_wrong_password_is_an_error_at_once(own: RedisProcess, key: bytes, call: Call) -> None:
    driver = driver_of(f"redis://someone:wrong@{HOST}:{own.port}", timeout=60)
    with pytest.raises(StoreError, match="user and password") as caught:
        call(driver, adding(key, 1))
    assert not isinstance(caught.value, TransientStoreError)
    driver.close()


def test_a_missing_password_is_an_error_at_once(key: bytes) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        client = server.client
        client.config_set("requirepass", "secret")
        driver = driver_of(server.url, timeout=60)
        with pytest.raises(StoreError, match=r"NOAUTH.*user and password"):
            driver.run(adding(key, 1))
        driver.close()


def test_keys_of_another_application_are_an_error_that_names_the_prefix(own: RedisProcess, key: bytes) -> None:
    own.client.set(key, "theirs")
    driver = driver_of(own.url)
    with pytest.raises(StoreError, match="another prefix"):
        driver.run(adding(key, 1))
    assert driver.run(echoing(key, b"well")) == b"well"
    driver.close()


def test_what_is_tried_again_is_logged_without_what_is_stored(
    proxy: Proxy, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    driver = driver_of(proxy.url)
    driver.run(adding(key, 1))
    proxy.lose_reply("EVALSHA")
    with caplog.at_level(logging.INFO, "threadmark.redis"):
        driver.run(adding(key, b"hidden"))
    assert "trying again" in caplog.text
    assert "failed attempts: 1, callers: 1" in caplog.text
    assert "hidden" not in caplog.text
    driver.close()


def test_a_pool_whose_connections_are_all_in_use_says_so(own: RedisProcess, key: bytes) -> None:
    with Proxy(own.port) as proxy:
        driver = driver_of(proxy.url, timeout=0.3, pool_size=1)

        async def body() -> None:
            await driver.arun(adding(key, 1))
            with proxy.holding():
                waiting = asyncio.create_task(driver.arun(adding(key, 2)))
                await asyncio.sleep(0)
                with pytest.raises(TransientStoreError, match=r"all 1 connections .*larger pool_size"):
                    await driver.arun(adding(key, 3))
            assert await waiting == 1
            await driver.aclose()

        asyncio.run(body())


def test_a_closed_driver_says_so(own: RedisProcess, key: bytes) -> None:
    driver = driver_of(own.url)
    driver.run(adding(key, 1))
    driver.close()
    driver.close()
    with pytest.raises(ClosedError):
        driver.run(adding(key, 2))
    with pytest.raises(ClosedError):
        asyncio.run(driver.arun(adding(key, 2)))


def test_closing_leaves_no_connection_behind(key: bytes) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        driver = driver_of(server.url)

        async def body() -> None:
            await asyncio.gather(*(driver.arun(adding(key, number)) for number in range(4)))
            await asyncio.to_thread(driver.run, adding(key, 5))

        asyncio.run(body())
        driver.run(adding(key, 6))
        driver.close()
        wait_until(lambda: server.client.info("clients")["connected_clients"] == 1, "a connection is left")


def test_a_node_of_a_cluster_is_named_as_one(key: bytes) -> None:
    with RedisProcess({**FORGETFUL, "cluster-enabled": "yes"}) as node:
        node.start()
        driver = driver_of(node.url, timeout=0.1)
        with pytest.raises((ConfigError, TransientStoreError), match=r"redis\+cluster://|CLUSTERDOWN"):
            driver.run(adding(key, 1))
        driver.close()
