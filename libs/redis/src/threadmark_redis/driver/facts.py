"""The greeting of a new connection, and the facts in the server's answers.

Storing threads needs none of these facts: a command that the provider forbids leaves a fact unknown. Only
`durability="full"` may then be unprovable, and its error names the option that does without.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadmark.backends import ConfigError
from threadmark_redis.driver.connecting import Address
from threadmark_redis.driver.failures import Refused, passes
from threadmark_redis.driver.settings import Settings
from threadmark_redis.steps import Command

GREETING: Sequence[Command] = (
    ("INFO",),
    ("CONFIG", "GET", "*appendfsync*"),  # with it no-appendfsync-on-rewrite: there are no two patterns before Redis 7
    ("WAITAOF", 1, 0, 1),  # waits for a millisecond if the server knows it and has an append-only file
    ("CONFIG", "GET", "proto-max-bulk-len"),
)
"""Sent once on every new connection: a server that was restarted or has taken over may be another one."""


class Facts(NamedTuple):
    """A server's facts about itself. None means that the server does not tell."""

    address: str
    server: str | None
    """Name and version, such as "Redis 7.0.15"."""
    is_master: bool | None
    is_cluster: bool | None
    append_only: bool | None
    """Whether the server has an append-only file."""
    fsync: str | None
    """The setting appendfsync: "always", "everysec" or "no"."""
    fsync_pauses: bool | None
    """Whether the server omits fsync while it rewrites its files (no-appendfsync-on-rewrite)."""
    waits_for_disk: bool
    """Whether the server knows WAITAOF and has an append-only file."""
    eviction: str | None
    """The setting maxmemory-policy."""
    max_memory: int | None
    """The setting maxmemory in bytes, 0 for no limit."""
    longest_argument: int | None
    """The setting proto-max-bulk-len: the most bytes that an argument of a command may have."""
    forbidden: tuple[str, ...]
    """The commands of the greeting that the server refuses."""

    @property
    def syncs_before_replying(self) -> bool:
        """Whether every change is on the server's disk before it is acknowledged."""
        return bool(self.append_only) and self.fsync == "always" and self.fsync_pauses is False


def facts_of(address: Address, replies: Sequence[Any]) -> Facts:
    """Return the facts in the replies to `GREETING`."""
    about, configured, waited, limited = replies
    info = _lines(about) if isinstance(about, bytes) else {}
    config = {name: value for each in (configured, limited) if isinstance(each, list) for name, value in _pairs(each)}
    forbidden = [name for name, reply in (("INFO", about), ("CONFIG", configured)) if isinstance(reply, Refused)]
    fsync_pauses = config.get("no-appendfsync-on-rewrite")
    max_memory = info.get("maxmemory", "")
    longest = config.get("proto-max-bulk-len", "")
    return Facts(
        address=str(address),
        server=_name(info),
        is_master=info["role"] == "master" if "role" in info else None,
        is_cluster=info["cluster_enabled"] == "1" if "cluster_enabled" in info else None,
        append_only=info["aof_enabled"] == "1" if "aof_enabled" in info else None,
        fsync=config.get("appendfsync"),
        fsync_pauses=fsync_pauses == "yes" if fsync_pauses else None,
        waits_for_disk=isinstance(waited, list),
        eviction=info.get("maxmemory_policy"),
        max_memory=int(max_memory) if max_memory.isdigit() else None,
        longest_argument=int(longest) if longest.isdigit() else None,
        forbidden=tuple(forbidden),
    )


class RefusedError(Exception):
    """A server does not accept a connection for now, or at all."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused)
        self.refused = refused


def admitted(address: Address, replies: Sequence[Any], settings: Settings) -> Facts:
    """Return the facts in the replies to `GREETING`.

    Raises RefusedError if the connection is of no use now, ConfigError if it can never be as durable as required.
    """
    for reply in replies:
        if isinstance(reply, Refused) and (passes(reply) or reply.code in ("NOAUTH", "WRONGPASS")):
            raise RefusedError(reply)
    if isinstance(replies[0], bytes) and b"\nloading:1" in replies[0]:
        # Until it has finished, it also says that it has no append-only file.
        raise RefusedError(Refused("LOADING", f"{address} reads what it has on its disk"))
    facts = facts_of(address, replies)
    if facts.is_master is False and settings.servers.layout == "sentinel":
        raise RefusedError(Refused("REPLICA", f"{address} says that it is a replica"))
    if facts.is_master is not False:  # a replica takes no changes
        _check_durability(facts, settings)
    return facts


def _check_durability(facts: Facts, settings: Settings) -> None:
    if not settings.durability.disk or facts.syncs_before_replying or facts.waits_for_disk:
        return
    if facts.append_only is False:
        found = "has no append-only file (appendonly no)"
    elif facts.fsync is None:
        found = "does not tell whether it waits for its disk (it forbids CONFIG GET, and has no WAITAOF)"
    elif facts.fsync == "always":
        found = "spares its disk while it rewrites files (no-appendfsync-on-rewrite yes)"
    else:
        found = f"acknowledges changes before they are on its disk (appendfsync {facts.fsync}), and has no WAITAOF"
    raise ConfigError(
        f"durability='full' cannot be kept: {facts.address} {found}. Set 'appendonly yes', 'appendfsync always' and "
        "'no-appendfsync-on-rewrite no' in its configuration, or take Redis 7.2 or newer, or Valkey, with 'appendonly "
        "yes'; or open the saver with durability='memory', and the server loses what its own settings let it lose"
    )


def expect_short(asked: Sequence[Command], facts: Facts) -> None:
    """Raise RefusedError for an argument that is too long: the server would only close the connection."""
    most = facts.longest_argument
    if most is None:
        return
    longest = max((len(each) for command in asked for each in command if isinstance(each, bytes)), default=0)
    if longest > most:
        raise RefusedError(
            Refused("TOOLONG", f"a change or a key has {longest:,} bytes, and the server takes {most:,} at once")
        )


def proofs(key: bytes, facts: Facts, settings: Settings) -> list[Command]:
    """Return the commands to send after a change, so that their replies tell where it is stored.

    WAIT and WAITAOF only consider the last change of their own connection. A change that an earlier attempt has made,
    whose reply was lost, does not count there: so the proofs begin with a change that vanishes at once.

    That key ends like no other one: behind a namespace of items stands a single letter, which is never an f.
    """
    milliseconds = settings.proof_milliseconds
    mark: Command = ("SET", key + b":proof", b"", "PX", 1)
    if settings.durability.replicas:
        return [mark, ("WAIT", settings.durability.replicas, milliseconds)]
    if settings.durability.disk and not facts.syncs_before_replying:
        return [mark, ("WAITAOF", 1, 0, milliseconds)]
    return []


def unproven(replies: Sequence[Any], settings: Settings) -> Refused | None:
    """Return the gap in the replies to `proofs`, None if there is none."""
    for reply in replies:
        if isinstance(reply, Refused):
            return reply
    if not replies:
        return None
    reached = replies[-1]
    if settings.durability.replicas:
        required = settings.durability.replicas
        return None if reached >= required else Refused("UNPROVEN", f"{reached} of {required} replicas have it")
    return None if reached[0] >= 1 else Refused("UNPROVEN", "it is not on the server's disk yet")


def warnings_about(facts: Facts, *, expires: bool) -> list[str]:
    """Return warnings about a server. `expires` says whether the saver's threads have an expiry."""
    found = []
    evicts = facts.eviction not in (None, "noeviction")
    if evicts and (expires or str(facts.eviction).startswith("allkeys-")):
        found.append(
            f"{facts.address} may evict threads when its memory is full (maxmemory-policy {facts.eviction}): "
            "set maxmemory-policy noeviction"
        )
    if facts.is_master is False:
        found.append(f"{facts.address} is a replica, which takes no writes: give the address of its master")
    return found


def _name(info: Mapping[str, str]) -> str | None:
    version = info.get("valkey_version") or info.get("redis_version")
    name = info.get("server_name", "valkey" if "valkey_version" in info else "redis")
    return f"{name.capitalize()} {version}" if version else None


def _lines(reply: bytes) -> dict[str, str]:
    lines = reply.decode("utf-8", "replace").splitlines()
    return {name: value for name, colon, value in (line.partition(":") for line in lines) if colon}


def _pairs(reply: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    texts = [each.decode("utf-8", "replace") for each in reply]
    return zip(texts[::2], texts[1::2], strict=True)
