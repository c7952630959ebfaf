"""From a database on the command line to a saver: a reading command's never writes to it."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import parse_qsl, quote, unquote

import threadmark
from threadmark import ConfigError, Saver, SaverProtocol, StoreError
from threadmark_cli.exits import DatabaseError, RefusedError
from threadmark_cli.foreign.opening import in_file, in_postgres
from threadmark_cli.settings import URL_VARIABLE, is_url

if TYPE_CHECKING:
    from threadmark_cli.foreign.saver import ForeignSaver

_SQLITE = "sqlite://"
_READ_ONLY = "mode=ro"
_PLAIN = "/\\:"
"""What stays as it is in the URL of a path: it is shown, and a path of Windows has the last two."""
_POSTGRES = ("postgres://", "postgresql://")
_REDIS = ("redis://", "rediss://", "redis+", "rediss+")
_PARTS: Mapping[str, Sequence[str]] = {"replicated": ("primary", "secondary"), "cached": ("saver",)}
"""The parameters that name databases, by the scheme."""


_ONLY_READ = (
    "this is LangGraph's own database, which is only read: `threadmark migrate` copies its threads to one of "
    "Threadmark's"
)


def url_of(database: str | None) -> str:
    """The URL of the argument, or of the environment. A path is that of a SQLite file."""
    found = database or os.environ.get(URL_VARIABLE)
    if not found:
        raise ConfigError(
            f"which database? Give its path or URL as the first argument or by --url, or set {URL_VARIABLE}"
        )
    return path_or_url(found)


def path_or_url(named: str) -> str:
    """The URL of a database, from a URL or from the path of a SQLite file."""
    if is_url(named):
        return named
    if "password=" in named:  # it is not printed
        raise ConfigError("expected a path or a URL, got a list of parameters: write postgresql://user@host/database")
    return f"{_SQLITE}/{quote(named, safe=_PLAIN)}"


def printable_url(url: str) -> str:
    """The URL without possible passwords, for messages: neither that of the user, nor parameters."""
    parts = parts_of(url)
    if parts:
        return f"{url.partition(':')[0]}: {' and '.join(map(printable_url, parts))}"
    url = url.partition("?")[0]
    user, at, rest = url.partition("://")[2].rpartition("@")
    scheme = url.partition("://")[0]
    return f"{scheme}://{user.partition(':')[0]}@{rest}" if at else url


def parts_of(url: str) -> list[str]:
    """The URLs of the databases that the URL of a pair or of a cached saver names. There are none in others."""
    beginning, _, query = url.partition("?")
    names = _PARTS.get(beginning.partition(":")[0], ())
    return [text for name, text in parse_qsl(query) if name in names]


def creating(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may create the database."""
    return threadmark.open(url, **options)


def open_for_writing(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may change an existing database. A SQLite file that is missing is not made, but an error."""
    _expect_parts(url, with_tables=False)
    opened = _opened(url, url, options)
    if opened.langgraphs is not None:
        raise RefusedError(_ONLY_READ)
    return cast("SaverProtocol", opened.ours)


def open_for_reading(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that only reads. For LangGraph's own database it has the reading methods, and refuses the others.

    A saver over a pair may copy the changes that wait for the other database, as any saver over it does.
    """
    _expect_parts(url, with_tables=True)
    read_only = url
    if file_of(url) is not None and _READ_ONLY not in url:
        read_only = f"{url}{'&' if '?' in url else '?'}{_READ_ONLY}"
    if url.startswith(_POSTGRES):
        options = {"read_only": True, **options}
    if url.startswith(_REDIS) and "durability=" not in url:
        options = {"durability": "memory", **options}  # a database that is only read need not reach a disk
    opened = _opened(url, read_only, options)
    return cast("SaverProtocol", opened.langgraphs if opened.ours is None else opened.ours)


def _expect_parts(url: str, *, with_tables: bool) -> None:
    """Raise an error for a database of a pair that is missing, or LangGraph's: the pair would make it, or its tables.

    One that cannot be reached is left to the pair, which may go on with the other one.
    """
    for part in parts_of(url):
        with suppress(StoreError), open_for_reading(part, {}) as saver:
            if not isinstance(saver, Saver):
                raise RefusedError(_ONLY_READ)
            if with_tables and not saver.has_tables():
                raise DatabaseError(f"{printable_url(part)} has no tables of Threadmark: `threadmark setup` makes them")


class _Opened(NamedTuple):
    """A database: one of the two is there."""

    ours: SaverProtocol | None = None
    langgraphs: "ForeignSaver | None" = None


def _opened(url: str, how: str, options: Mapping[str, Any]) -> _Opened:
    """Open a database as ours, or if it has nothing but LangGraph's tables as that. Nothing is made by looking.

    Args:
        url: The database.
        how: The same, with the options of opening.
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
        thread = f": the database comes before the thread, unless --url or {URL_VARIABLE} names it"
        raise DatabaseError(f"there is no file {str(path)!r}{'' if path.suffix else thread}")
    if not path.is_file():
        raise DatabaseError(f"{str(path)!r} is not a file")
