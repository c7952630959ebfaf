"""The findings of `threadmark doctor`: about the packages, about a SQLite file, and from a saver's report."""

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from threadmark.runtime import compiled
from threadmark.runtime.files import MODES_TELL_WHO_READS
from threadmark_cli.output.quantities import bytes_text

Level = Literal["ok", "warning", "fault"]

PACKAGES = (
    "threadmark",
    "threadmark-speed",
    "threadmark-sqlite",
    "threadmark-postgres",
    "threadmark-redis",
    "threadmark-langgraph",
    "threadmark-store",
)
_EXTRAS = {
    "zstandard": "compresses larger pieces: pip install 'threadmark[zstd]'",
    "cryptography": "reads and writes sealed databases: pip install 'threadmark[crypto]'",
}
_LARGE_LOG = 256_000_000
"""Bytes of a SQLite file's log. It stays at a few megabytes if no transaction stays open."""
_OTHERS_READ = 0o004


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    level: Level
    finding: str
    way_out: str = ""
    """The remedy."""


def of_packages() -> Iterator[Finding]:
    """Whether the packages fit together, and which are there."""
    found = {name: each for name in (*PACKAGES, "threadmark-cli") if (each := _version(name)) is not None}
    python = f"Python {platform.python_version()}"
    if len(set(found.values())) > 1:
        different = ", ".join(f"{name} {each}" for name, each in found.items())
        yield Finding(
            "packages", "fault", f"{different} are not of one version", "install all of them in the same version"
        )
    else:
        names = ", ".join(name.removeprefix("threadmark-") for name in found)
        yield Finding("packages", "ok", f"{python}, threadmark {found.get('threadmark', '(not installed)')}: {names}")
    missing = [f"{name}, which {what}" for name, what in _EXTRAS.items() if _version(name) is None]
    for each in missing:
        yield Finding("packages", "ok", f"not installed: {each}")
    yield _implementation()


def _implementation() -> Finding:
    words = f"implementation: {compiled.implementation()}"
    if compiled.IS_BROKEN:
        return Finding("packages", "fault", words, "install threadmark-speed again, in the version of threadmark")
    if platform.python_implementation() == "CPython" and _version("threadmark-speed") is None:
        return Finding("packages", "warning", words, "install threadmark-speed in the version of threadmark")
    return Finding("packages", "ok", words)


def of_file(path: Path) -> Iterator[Finding]:
    """The permissions of a SQLite file, and the length of its log."""
    if not path.is_file():  # the connection says so
        return
    if MODES_TELL_WHO_READS and path.stat().st_mode & _OTHERS_READ:
        yield Finding("file", "warning", f"everybody on this machine may read {path}", f"chmod o= {path}")
    log = Path(f"{path.resolve()}-wal")
    size = log.stat().st_size if log.is_file() else 0
    if size > _LARGE_LOG:
        finding = f"its log has {bytes_text(size)}: some process keeps a transaction open"
        yield Finding("file", "warning", finding, "look for a reader that never ends, such as an open sqlite3 shell")


def of_report(report: Any, *, full: bool = True) -> Iterator[Finding]:
    """Facts of the saver's server or file, then warnings. `full` is whether Redis should be durable."""
    other = _WAY_OUT_OF_REDIS if hasattr(report, "servers") else _WAY_OUT
    for fact in _facts(report):
        yield Finding("database", "ok", fact)
    for server in getattr(report, "servers", ()) if full else ():
        if not server.waits_for_disk:
            yield Finding("settings", "warning", f"{server.address} {_NOT_DURABLE}", _HOW_TO_BE_DURABLE)
    for warning in report.warnings:
        yield Finding("settings", "warning", warning, _WAYS_OUT.get(_first_word(warning), other))
    tables = getattr(report, "other_tables", ()) or getattr(report, "langgraph_tables", ())
    if tables:
        more = f" and {len(tables) - _MOST_TABLES} more" if len(tables) > _MOST_TABLES else ""
        yield Finding("tables", "ok", f"tables that are not Threadmark's: {', '.join(tables[:_MOST_TABLES])}{more}")


_MOST_TABLES = 8

_WAY_OUT = "docs/how-to/operating.md and docs/reference/options.md say what each setting does"
_WAY_OUT_OF_REDIS = "docs/how-to/redis.md says which settings keep threads"
_NOT_DURABLE = (
    "acknowledges changes before they are on its disk, so a saver that writes is refused unless its durability is "
    "'memory'; it can be read"
)
_HOW_TO_BE_DURABLE = (
    "set appendonly yes and appendfsync always, or take Redis 7.2 or newer, or Valkey, with appendonly yes"
)
_WAYS_OUT = {
    "fsync": "set fsync = on in postgresql.conf",
    "full_page_writes": "set full_page_writes = on in postgresql.conf",
    "synchronous_commit": "set synchronous_commit = on, for the server, the database or the role",
}
"""By the first word of a warning."""


def _first_word(text: str) -> str:
    return text.partition(" ")[0]


def _facts(report: Any) -> Iterator[str]:
    if hasattr(report, "servers"):
        for server in report.servers:
            yield f"{server.address}: {_known(_of_redis(server))}"
        if report.format is not None:
            yield _form_of(report)
    elif hasattr(report, "sqlite"):
        yield _known([f"SQLite {report.sqlite}", *_of_format(report), _named("free", report.free_bytes)])
    else:
        durability = [
            f"{name} {getattr(report, name)}" for name in ("synchronous_commit", "fsync") if getattr(report, name)
        ]
        server = f"Postgres {report.server}" if report.server else "Postgres"
        yield _known([server, *_of_format(report), *durability])


def _of_redis(server: Any) -> Sequence[str]:
    facts = {
        "append-only file": server.append_only and f"fsync {server.fsync}",
        "eviction": server.eviction,
        "forbidden": ", ".join(server.forbidden),
    }
    return [server.server or "", *(f"{name}: {value}" for name, value in facts.items() if value)]


def _of_format(report: Any) -> list[str]:
    return [_form_of(report) if report.format is not None else "", _named("in all", report.bytes)]


def _form_of(report: Any) -> str:
    """The format, and the formats that readers and writers must know if they are not the same."""
    least = report.least_reader, report.least_writer
    if least == (report.format, report.format):
        return f"format {report.format}"
    return f"format {report.format}, written as format {least[1]}, readable from format {least[0]} on"


def _named(name: str, size: int | None) -> str:
    return f"{bytes_text(size)} {name}" if size else ""


def _known(facts: Sequence[str]) -> str:
    return ", ".join(filter(None, facts))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
