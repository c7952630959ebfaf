"""Conversion of commands to bytes, and of replies to the driver's types."""

from collections.abc import Mapping, Sequence
from typing import Any

from redis import exceptions

from threadmark.backends import ConfigError
from threadmark_redis.driver.facts import Facts, expect_short, proofs
from threadmark_redis.driver.failures import Refused, failure_of
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import ASKING, Answered, Exchange
from threadmark_redis.steps import Command

# redis-py's name and version, which each connection sends. Otherwise each reads them from files, in 0.4 ms.
try:
    from redis.driver_info import DriverInfo

    _DRIVER_INFO: Mapping[str, Any] = {"driver_info": DriverInfo()}
except ImportError:  # before redis-py 7.2
    _DRIVER_INFO = {}

BROKEN = (exceptions.RedisError, OSError)
"""Errors of redis-py for a connection that cannot be opened or breaks. `failures` tells them apart."""


def made(connection_class: Any, arguments: Mapping[str, Any], retry: Any) -> Any:
    """Return a connection of redis-py, which is opened later. Raises ConfigError for parameters that it lacks."""
    try:
        return connection_class(**arguments, **_DRIVER_INFO, retry=retry)
    except TypeError as error:
        raise ConfigError(f"this release of redis-py cannot connect so: {error}") from error


def packed(commands: Sequence[Command]) -> bytes:
    """Return the bytes of commands."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for each in command:
            data = each if isinstance(each, bytes) else str(each).encode()
            parts += (b"$%d\r\n" % len(data), data, b"\r\n")
    return b"".join(parts)


def refused(error: exceptions.ResponseError) -> Refused:
    """Return a reply that is an error."""
    found = failure_of(error)
    return found if isinstance(found, Refused) else Refused("ERR", found.text)


def whole(asked: Exchange, facts: Facts | None, settings: Settings) -> Sequence[Command]:
    """Return all commands of an exchange, including the proofs after a change. Raises RefusedError for a long one."""
    if facts is not None:
        expect_short(asked.commands, facts)
    if asked.change is None or facts is None:
        return asked.commands
    # Where a slot arrives, each command for its keys must be announced.
    asking = asked.commands[:1] if asked.commands[0] == ASKING else ()
    return [*asked.commands, *asking, *proofs(asked.change, facts, settings)]


def answered(asked: Exchange, replies: Sequence[Any], facts: Facts | None) -> Answered:
    """Return the replies to an exchange."""
    count = len(asked.commands)
    return Answered(replies[:count], replies[count:], facts)
