"""The report on a saver's servers, which `RedisSaver.report` returns."""

from collections.abc import Iterable
from typing import NamedTuple

from threadmark.backends import Format, implementation
from threadmark_redis.driver.facts import Facts


class ServerReport(NamedTuple):
    """A report on one server. A field is None if the server or its provider does not tell."""

    address: str
    server: str | None
    """Name and version, such as "Redis 7.0.15"."""
    is_cluster: bool | None
    runs_scripts: bool
    """Whether the server runs scripts. Without them a saver stores nothing."""
    append_only: bool | None
    """Whether the server writes an append-only file."""
    fsync: str | None
    """The setting appendfsync: "always", "everysec" or "no"."""
    waits_for_disk: bool
    """Whether a saver with durability "full" has a change on the disk when it is acknowledged."""
    eviction: str | None
    """The setting maxmemory-policy."""
    max_memory: int | None
    """The setting maxmemory in bytes, 0 for no limit."""
    forbidden: tuple[str, ...]
    """Commands that would tell more and that the server refuses."""


class RedisReport(NamedTuple):
    """A report on the server that a saver stores on, or on every master of a cluster."""

    servers: tuple[ServerReport, ...]
    warnings: tuple[str, ...]
    """Settings that may lose threads or keep the saver from storing any."""
    implementation: str
    """Which code this process runs: "compiled (contract 10)", or "Python" and why."""
    format: int | None = None
    """The format of the database; this and the following two are None if it cannot be read."""
    least_reader: int | None = None
    """The least format that a process must know to read."""
    least_writer: int | None = None
    """The same to write. It is the format in which processes write."""


def server_report(facts: Facts, *, runs_scripts: bool) -> ServerReport:
    """Return the report on one server."""
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


def full_report(found: Iterable[tuple[Facts, bool]], warnings: Iterable[str], stored: Format | None) -> RedisReport:
    """Return the report on all servers, with warnings."""
    servers = tuple(server_report(facts, runs_scripts=runs) for facts, runs in found)
    mute = (f"{each.address} runs no scripts, and so stores no threads" for each in servers if not each.runs_scripts)
    return RedisReport(servers, (*warnings, *mute), implementation(), *(stored or ()))
