"""Drivers without a store: small scripts in separate transactions, in both APIs."""

from collections.abc import Sequence
from functools import partial
from hashlib import sha1
from typing import Any

from threadmark.program import Program, Transaction
from threadmark_redis.driver import RedisDriver, Settings, durability_of, servers_of_client, servers_of_url
from threadmark_redis.steps import Script, commands, run


def script(text: str) -> Script:
    """A script of a test's own."""
    return Script("test", text, sha1(text.encode(), usedforsecurity=False).hexdigest())


ADD = script("return redis.call('SADD', KEYS[1], ARGV[1])")
"""A second call changes nothing, as with every script of the store. It returns whether it was the first."""

ECHO = script("return ARGV[1]")


def driver_of(
    where: Any, *, durability: str = "memory", timeout: float = 30.0, pool_size: int = 4, expires: bool = False
) -> RedisDriver:
    """A driver for a URL or a client."""
    servers = servers_of_url(where) if isinstance(where, str) else servers_of_client(where)
    settings = Settings(servers, durability_of(durability), pool_size, timeout, grace=1000, expires=expires)
    return RedisDriver(settings)


def running(text_or_script: str | Script, keys: Sequence[bytes], *args: bytes | int) -> Transaction[Any]:
    """A transaction that runs one script."""
    step_script = script(text_or_script) if isinstance(text_or_script, str) else text_or_script
    return Transaction(run, (step_script, keys, args), writes=True)


def adding(key: bytes, member: bytes | int) -> Transaction[Any]:
    """A transaction that adds a member to a set."""
    return running(ADD, [key], member)


def echoing(key: bytes, text: bytes) -> Transaction[Any]:
    """A transaction that is answered with this text, by the server of the key."""
    return Transaction(partial(run, ECHO, [key], [text], writes=False), writes=False)


def members(*keys: bytes) -> Transaction[Any]:
    """A transaction that reads sets in one step, sorted."""
    return Transaction(_members, (keys,), writes=False)


def _members(keys: Sequence[bytes]) -> Program[list[list[bytes]]]:
    replies = yield from commands([("SMEMBERS", key) for key in keys])
    return [sorted(reply) for reply in replies]
