"""What a saver's servers say about themselves, as `RedisSaver.report` returns it."""

from collections.abc import Iterable
from typing import NamedTuple

from threadmark.runtime.compiled import STATE
from threadmark_redis.driver.facts import Facts


class ServerReport(NamedTuple):
    """What one server says about itself. None is what it, or its provider, does not say."""

    address: str
    server: str | None
    """Its name and version, such as "Redis 7.0.15"."""
    is_cluster: bool | None
    runs_scripts: bool
    """Whether it runs scripts, without which a saver stores nothing."""
    append_only: bool | None
    """Whether it writes an append-only file."""
    fsync: str | None
    """Its appendfsync: "always", "everysec" or "no"."""
    waits_for_disk: bool
    """Whether a change is on its disk when it is acknowledged, if the saver's durability is "full"."""
    eviction: str | None
    """Its maxmemory-policy."""
    max_memory: int | None
    """Its maxmemory in bytes, 0 for no limit."""
    forbidden: tuple[str, ...]
    """Commands that would say more, and that it does not answer."""


class RedisReport(NamedTuple):
    """What is known of the servers that a saver stores on: of the one, or of every master of a cluster."""

    servers: tuple[ServerReport, ...]
    warnings: tuple[str, ...]
    """What may lose threads, or keep the saver from storing any."""
    compiled: str = STATE
    """Whether this process uses the compiled part of core, in words."""


def server_report(facts: Facts, *, runs_scripts: bool) -> ServerReport:
    """Return what a server has said."""
    return ServerReport(
        address=facts.address,
        server=facts.server,
        is_cluster=facts.is_cluster,
        runs_scripts=runs_scripts,
        append_only=facts.append_only,
        fsync=facts.fsync,
        waits_for_disk=facts.syncs_before_replying or facts.waits_for_disk,
        eviction=facts.eviction,
        max_memory=facts.max_memory,
        forbidden=facts.forbidden,
    )


def full_report(found: Iterable[tuple[Facts, bool]], warnings: Iterable[str]) -> RedisReport:
    """Return what all servers have said, with what is wrong."""
    servers = tuple(server_report(facts, runs_scripts=runs) for facts, runs in found)
    mute = (f"{each.address} runs no scripts, and so stores no threads" for each in servers if not each.runs_scripts)
    return RedisReport(servers, (*warnings, *mute))
