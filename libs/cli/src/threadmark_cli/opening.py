"""From what the command line calls a database to a saver: a reading command's never writes to it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, unquote

import threadmark
from threadmark import ConfigError, SaverProtocol
from threadmark_cli.exits import DatabaseError, RefusedError
from threadmark_cli.foreign.opening import in_file, in_postgres
from threadmark_cli.settings import URL_VARIABLE

if TYPE_CHECKING:
    from threadmark_cli.foreign.saver import ForeignSaver

_SQLITE = "sqlite://"
_READ_ONLY = "mode=ro"
_PLAIN = "/\\:"
"""What stays as it is in the URL of a path: it is shown, and a path of Windows has the last two."""
_POSTGRES = ("postgres://", "postgresql://")
_REDIS = ("redis://", "rediss://", "redis+", "rediss+")


def url_of(database: str | None) -> str:
    """The URL of what was given, or of the environment. A path is that of a SQLite file."""
    found = database or os.environ.get(URL_VARIABLE)
    if not found:
        raise ConfigError(
            f"which database? Give its path or URL as the first argument or by --url, or set {URL_VARIABLE}"
        )
    return path_or_url(found)


def path_or_url(named: str) -> str:
    """The URL of what is named by a URL or by the path of a SQLite file."""
    if "://" in named or named == "memory:" or named.startswith("cached:"):
        return named
    if "password=" in named:  # it is not shown
        raise ConfigError("expected a path or a URL, got a list of parameters: write postgresql://user@host/database")
    return f"{_SQLITE}/{quote(named, safe=_PLAIN)}"


def printable_url(url: str) -> str:
    """The URL without what may be a password, for messages: neither that of the user, nor parameters."""
    url = url.partition("?")[0]
    user, at, rest = url.partition("://")[2].rpartition("@")
    scheme = url.partition("://")[0]
    return f"{scheme}://{user.partition(':')[0]}@{rest}" if at else url


def creating(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may make what is not there."""
    return threadmark.open(url, **options)


def open_for_writing(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may change what is there. A SQLite file that is missing is not made, but an error."""
    opened = _opened(url, url, options)
    if opened.langgraphs is not None:
        raise RefusedError(
            "this is LangGraph's own database, which is only read: `threadmark migrate` copies its threads to one of "
            "Threadmark's"
        )
    return cast("SaverProtocol", opened.ours)


def open_for_reading(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that only reads. For LangGraph's own database it has the reading methods, and refuses the others."""
    read_only = url
    if file_of(url) is not None and _READ_ONLY not in url:
        read_only = f"{url}{'&' if '?' in url else '?'}{_READ_ONLY}"
    if url.startswith(_POSTGRES):
        options = {"read_only": True, **options}
    if url.startswith(_REDIS) and "durability=" not in url:
        options = {"durability": "memory", **options}  # what is only read need not reach a disk
    opened = _opened(url, read_only, options)
    return cast("SaverProtocol", opened.langgraphs if opened.ours is None else opened.ours)


class _Opened(NamedTuple):
    """A database: one of the two is there."""

    ours: SaverProtocol | None = None
    langgraphs: "ForeignSaver | None" = None


def _opened(url: str, how: str, options: Mapping[str, Any]) -> _Opened:
    """Open a database as ours, or if it has nothing but LangGraph's tables as that. Nothing is made by looking.

    Args:
        url: What leads to it.
        how: The same, with what it is to be opened with.
        options: Those of the saver.
    """
    file = file_of(url)
    if file is not None:
        expect_file(file)
        foreign = in_file(file)
        return _Opened(ours=threadmark.open(how, **options)) if foreign is None else _Opened(langgraphs=foreign)
    saver = threadmark.open(how, **options)
    if not url.startswith(_POSTGRES) or "schema" in options:  # LangGraph's saver has no option for a schema
        return _Opened(ours=saver)
    try:
        foreign = None if saver.has_tables() and not saver.has_only_langgraph_data() else in_postgres(url)
    except BaseException:
        saver.close()
        raise
    if foreign is None:
        return _Opened(ours=saver)
    saver.close()
    return _Opened(langgraphs=foreign)


def file_of(url: str) -> Path | None:
    """The path of a SQLite URL's file."""
    if not url.startswith(f"{_SQLITE}/"):
        return None
    return Path(unquote(url.removeprefix(f"{_SQLITE}/").partition("?")[0]))


def expect_file(path: Path) -> None:
    """Raise DatabaseError if a SQLite file is not there."""
    if not path.exists():
        raise DatabaseError(f"there is no file {str(path)!r}")
    if not path.is_file():
        raise DatabaseError(f"{str(path)!r} is not a file")
