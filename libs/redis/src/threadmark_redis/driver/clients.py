"""Clients and pools that you made: the servers and connection parameters that they have. They are never used."""

from collections.abc import Iterable, Mapping
from typing import Any

import redis
from redis import asyncio as aioredis
from redis.asyncio import sentinel as aiosentinel
from redis.sentinel import SentinelConnectionPool, SentinelManagedConnection, SentinelManagedSSLConnection

from threadmark.backends import ConfigError
from threadmark_redis.driver.connecting import PARAMETERS, Address, Connecting, Kind, Servers

_KINDS: dict[type[Any], Kind] = {
    redis.Connection: "tcp",
    redis.SSLConnection: "tls",
    redis.UnixDomainSocketConnection: "unix",
    SentinelManagedConnection: "tcp",
    SentinelManagedSSLConnection: "tls",
    aioredis.Connection: "tcp",
    aioredis.SSLConnection: "tls",
    aioredis.UnixDomainSocketConnection: "unix",
    aiosentinel.SentinelManagedConnection: "tcp",
    aiosentinel.SentinelManagedSSLConnection: "tls",
}

_OWN_WAYS = ("redis_connect_func", "ssl_validate_ocsp", "ssl_validate_ocsp_stapled", "ssl_ocsp_context")

_SENTINEL_POOLS = (SentinelConnectionPool, aiosentinel.SentinelConnectionPool)


def servers_of_client(client: Any) -> Servers:
    """Return the servers of a client or a pool. Raises ConfigError for anything else."""
    if isinstance(client, (redis.RedisCluster, aioredis.RedisCluster)):
        return _of_cluster(client)
    if isinstance(client, (redis.Redis, aioredis.Redis)):
        client = client.connection_pool
    if isinstance(client, _SENTINEL_POOLS):
        return _of_sentinels(client)
    if isinstance(client, (redis.ConnectionPool, aioredis.ConnectionPool)):
        connecting = _connecting(client)
        return Servers("single", (_address(connecting.kind, client.connection_kwargs),), connecting)
    raise ConfigError(
        f"expected a URL, or a client or a pool of redis-py, got {type(client).__name__}: "
        "write 'redis://user:password@host:6379/0'"
    )


def _of_cluster(client: Any) -> Servers:
    manager = client.nodes_manager
    nodes: Iterable[Any] = manager.startup_nodes.values()
    parameters = dict(manager.connection_kwargs)
    if getattr(manager, "address_remap", None) is not None:
        raise ConfigError(
            "the client changes the addresses that the cluster's nodes tell (address_remap), and the saver would not: "
            "have each node announce the one by which you reach it (cluster-announce-ip, cluster-announce-port)"
        )
    connection_class = parameters.get("connection_class", object)
    tls = parameters.get("ssl") or issubclass(connection_class, (redis.SSLConnection, aioredis.SSLConnection))
    addresses = tuple(Address(node.host, int(node.port)) for node in nodes)
    return Servers("cluster", addresses, Connecting("tls" if tls else "tcp", _plain(parameters)))


def _of_sentinels(pool: Any) -> Servers:
    if not pool.is_master:
        raise ConfigError("this pool leads to replicas, which take no writes: give one of `Sentinel.master_for`")
    pools = [client.connection_pool for client in pool.sentinel_manager.sentinels]
    addresses = tuple(_address("tcp", each.connection_kwargs) for each in pools)
    return Servers("sentinel", addresses, _connecting(pool), str(pool.service_name), _connecting(pools[0]))


def _connecting(pool: Any) -> Connecting:
    kind = _KINDS.get(pool.connection_class)
    if kind is None:
        raise ConfigError(
            f"the client opens its connections with a class of its own, {pool.connection_class.__name__}, which the "
            "saver would not use: give a URL, or a client that has redis-py's own connections"
        )
    _expect_no_own_ways(pool.connection_kwargs)
    return Connecting(kind, _plain(pool.connection_kwargs))


def _expect_no_own_ways(parameters: Mapping[str, Any]) -> None:
    """Raise ConfigError for options that make a connection safe and that the saver's connections would lack."""
    found = [name for name in _OWN_WAYS if parameters.get(name)]
    if found:
        raise ConfigError(
            f"the client connects with {found[0]}, which the saver would not use, because asyncio has no such "
            "parameter, or none that is the same: give a URL, or a client without it"
        )


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name in PARAMETERS and value is not None}


def _address(kind: Kind, parameters: Mapping[str, Any]) -> Address:
    if kind == "unix":
        return Address(str(parameters["path"]), 0)
    return Address(str(parameters.get("host") or "localhost"), int(parameters.get("port") or 6379))
