"""The servers of URLs, clients and pools, the refused ones, and no password in any text."""

import asyncio
from typing import Any

import pytest
import redis
from redis import asyncio as aioredis
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.sentinel import Sentinel

from redis_backend import cluster, sentinel
from redis_backend.drivers import adding, driver_of, members
from redis_backend.processes import HOST, RedisProcess
from threadmark import ConfigError
from threadmark_redis.driver import servers_of_client, servers_of_url
from threadmark_redis.driver.connecting import Address, Servers

SECRET = "hunter2"  # noqa: S105 - made up


def _shape(servers: Servers) -> tuple[str, list[str], str]:
    return servers.layout, [str(address) for address in servers.addresses], servers.connecting.kind


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("redis://", ("single", ["localhost:6379"], "tcp")),
        ("redis://db.example", ("single", ["db.example:6379"], "tcp")),
        ("redis://db.example:7000/3", ("single", ["db.example:7000"], "tcp")),
        ("rediss://[::1]:7000", ("single", ["[::1]:7000"], "tls")),
        ("redis+cluster://a:1,b:2,c", ("cluster", ["a:1", "b:2", "c:6379"], "tcp")),
        ("rediss+cluster://a", ("cluster", ["a:6379"], "tls")),
        ("redis+sentinel://a,b:5/main/2", ("sentinel", ["a:26379", "b:5"], "tcp")),
        ("redis+unix:///run/redis.sock?db=1", ("single", ["/run/redis.sock"], "unix")),
        ("unix:///run/redis.sock", ("single", ["/run/redis.sock"], "unix")),
    ],
)
def test_a_url_leads_to(url: str, shape: object) -> None:
    assert _shape(servers_of_url(url)) == shape


def test_a_url_says_how_to_connect() -> None:
    url = f"redis://me:{SECRET}%40x@h/2?socket_timeout=3&client_name=agents&decode_responses=true&max_connections=9"
    parameters = servers_of_url(url).connecting.parameters
    assert parameters == {
        "username": "me",
        "password": f"{SECRET}@x",
        "db": 2,
        "socket_timeout": 3.0,
        "client_name": "agents",
    }


def test_sentinels_have_credentials_of_their_own() -> None:
    servers = servers_of_url(f"redis+sentinel://me:{SECRET}@a/main/1?sentinel_password=other&ssl_cert_reqs=none")
    assert servers.service == "main"
    assert servers.sentinels is not None
    assert servers.sentinels.parameters == {"password": "other", "ssl_cert_reqs": "none"}
    assert servers.connecting.parameters["password"] == SECRET


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"redis://me:{SECRET}/x@h", "path"),
        (f"redis://me:1?{SECRET}=1@h", "parameter"),
        (f"redis://me:{SECRET}#x@h", "#"),
        (f"redis://me:{SECRET}@h:99999", "host and port"),
        (f"redis://me:{SECRET}@h:0/1", "host and port"),
        (f"redis://me:{SECRET}@[::1", "host"),
        (f"redis://me:{SECRET}@h/one", "number of a database"),
        (f"redis://me:{SECRET}@h?db=x", "db"),
        (f"redis://me:{SECRET}@h?ttl=4", "only threadmark.open reads options"),
        (f"redis://me:{SECRET}@a,b", "several"),
        (f"redis+cluster://me:{SECRET}@a,b/1", "cluster"),
        (f"redis+sentinel://me:{SECRET}@a,b", "service"),
        (f"redis+unix://me:{SECRET}@/", "path"),
        (f"http://me:{SECRET}@h", "scheme"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_showing_it(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        servers_of_url(url)
    assert SECRET not in str(caught.value)
    assert "redis://user:password@host" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{SECRET}@db.example:7000/3",
        f"redis+cluster://me:{SECRET}@db.example:7000,db.example:7001",
        f"redis+sentinel://me:{SECRET}@db.example:7000/main?sentinel_password={SECRET}",
        f"redis+unix:///db.example?password={SECRET}",
    ],
)
def test_a_driver_shows_where_it_is_and_no_password(url: str) -> None:
    driver = driver_of(url)
    assert "db.example" in str(driver)
    assert SECRET not in str(driver)
    assert SECRET not in repr(vars(driver))
    driver.close()


async def _use(client: object, key: bytes) -> None:
    """Store bytes that are no text with both APIs, and read them back."""
    driver = driver_of(client)
    assert driver.run(adding(key, b"\xff")) == 1
    assert await driver.arun(adding(key, b"\xff")) == 0
    assert driver.run(members(key)) == await driver.arun(members(key)) == [[b"\xff"]]
    await driver.aclose()


@pytest.mark.parametrize("decodes", [False, True])
def test_a_blocking_client_or_pool_serves_both_apis_and_stays_as_it_is(
    server: RedisProcess, prefix: str, *, decodes: bool
) -> None:
    client = redis.Redis(host=HOST, port=server.port, decode_responses=decodes)
    asyncio.run(_use(client, f"{prefix}{{a}}".encode()))
    asyncio.run(_use(client.connection_pool, f"{prefix}{{b}}".encode()))
    assert client.ping()
    assert client.connection_pool.connection_kwargs["decode_responses"] is decodes
    client.close()


@pytest.mark.parametrize("decodes", [False, True])
def test_an_asyncio_client_or_pool_serves_both_apis_and_any_loop(
    server: RedisProcess, prefix: str, *, decodes: bool
) -> None:
    client = aioredis.Redis(host=HOST, port=server.port, decode_responses=decodes)
    asyncio.run(_use(client, f"{prefix}{{a}}".encode()))
    asyncio.run(_use(client.connection_pool, f"{prefix}{{b}}".encode()))


def test_a_client_of_another_database_leads_there(server: RedisProcess, prefix: str) -> None:
    client = redis.Redis(host=HOST, port=server.port, db=5)
    key = f"{prefix}{{a}}".encode()
    asyncio.run(_use(client, key))
    assert client.exists(key) == 1
    assert server.client.exists(key) == 0
    client.close()


def test_a_clusters_client_serves_both_apis(prefix: str) -> None:
    shared = cluster.shared()
    client = shared.client()
    asyncio.run(_use(client, f"{prefix}{{a}}".encode()))
    client.close()

    async def of_asyncio() -> None:
        theirs = aioredis.RedisCluster(host=HOST, port=shared.nodes[1].port)
        await _use(theirs, f"{prefix}{{b}}".encode())
        await theirs.aclose()

    asyncio.run(of_asyncio())


def test_a_client_of_sentinels_serves_both_apis(prefix: str) -> None:
    places = [(HOST, process.port) for process in sentinel.shared().sentinels]
    theirs: Any = Sentinel(places, db=1)  # type: ignore[no-untyped-call]  # redis-py types none of its Sentinels
    client = theirs.master_for(sentinel.NAME)
    asyncio.run(_use(client, f"{prefix}{{a}}".encode()))
    assert servers_of_client(client).addresses == tuple(Address(*place) for place in places)
    with pytest.raises(ConfigError, match="master_for"):
        servers_of_client(theirs.slave_for(sentinel.NAME))
    for_asyncio: Any = AsyncSentinel(places)  # type: ignore[no-untyped-call]  # as above
    asyncio.run(_use(for_asyncio.master_for(sentinel.NAME), f"{prefix}{{b}}".encode()))


def test_the_socket_and_tls_of_a_client_are_kept() -> None:
    on_socket = servers_of_client(redis.Redis(unix_socket_path="/run/redis.sock", db=2))
    assert _shape(on_socket) == ("single", ["/run/redis.sock"], "unix")
    assert str(on_socket).endswith("db=2")
    secure = redis.Redis.from_url(f"rediss://me:{SECRET}@db.example:7000", ssl_cert_reqs="none")
    assert _shape(servers_of_client(secure)) == ("single", ["db.example:7000"], "tls")
    assert servers_of_client(secure).connecting.parameters["ssl_cert_reqs"] == "none"
    assert SECRET not in str(servers_of_client(secure))
    clustered = aioredis.RedisCluster.from_url("rediss://db.example:7000")
    assert _shape(servers_of_client(clustered)) == ("cluster", ["db.example:7000"], "tls")


def test_what_is_no_client_of_redis_is_refused() -> None:
    with pytest.raises(ConfigError, match="got int"):
        servers_of_client(6379)

    class Own(redis.Connection):
        pass

    pool = redis.ConnectionPool(connection_class=Own)
    with pytest.raises(ConfigError, match="Own"):
        servers_of_client(pool)
    with pytest.raises(ConfigError, match="ssl_validate_ocsp"):
        servers_of_client(redis.Redis(ssl=True, ssl_validate_ocsp=True))
    with pytest.raises(ConfigError, match="cluster-announce-ip"):
        servers_of_client(aioredis.RedisCluster("db.example", address_remap=lambda place: place))
