"""From what the command line calls a database to a saver: a reading command's never writes to it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote

import threadmark
from threadmark import ConfigError, SaverProtocol
from threadmark_cli.exits import DatabaseError, RefusedError
from threadmark_cli.foreign import foreign_saver
from threadmark_cli.settings import URL_VARIABLE

_SQLITE = "sqlite://"
_READ_ONLY = "mode=ro"
_POSTGRES = ("postgres://", "postgresql://")


def url_of(given: str | None) -> str:
    """The URL of what was given, or of the environment. A path is that of a SQLite file."""
    found = given or os.environ.get(URL_VARIABLE)
    if not found:
        raise ConfigError(
            f"which database? Give its path or URL as the first argument or by --url, or set {URL_VARIABLE}"
        )
    return path_or_url(found)


def path_or_url(named: str) -> str:
    """The URL of what is named by a URL or by the path of a SQLite file."""
    if "://" in named or named == "memory:":
        return named
    return f"{_SQLITE}/{quote(named)}"


def shown_url(url: str) -> str:
    """The URL without a password, for messages."""
    user, at, rest = url.partition("://")[2].rpartition("@")
    scheme = url.partition("://")[0]
    return f"{scheme}://{user.partition(':')[0]}@{rest}" if at else url


def creating(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may make what is not there."""
    return threadmark.open(url, **options)


def open_for_writing(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that may change what is there. A SQLite file that is missing is not made, but an error."""
    _expect_file(url)
    if foreign_saver(url, file_of(url)) is not None:
        raise RefusedError(
            "this is LangGraph's own database, which is only read: `threadmark migrate` copies its threads to one of "
            "Threadmark's"
        )
    return threadmark.open(url, **options)


def open_for_reading(url: str, options: Mapping[str, Any]) -> SaverProtocol:
    """A saver that only reads. For LangGraph's own database it has the reading methods, and refuses the others."""
    _expect_file(url)
    if (foreign := foreign_saver(url, file_of(url))) is not None:
        return cast("SaverProtocol", foreign)
    if file_of(url) is not None and "?" not in url:
        url = f"{url}?{_READ_ONLY}"
    if url.startswith(_POSTGRES):
        options = {"read_only": True, **options}
    return threadmark.open(url, **options)


def file_of(url: str) -> Path | None:
    """The path of a SQLite URL's file."""
    if not url.startswith(f"{_SQLITE}/"):
        return None
    return Path(unquote(url.removeprefix(f"{_SQLITE}/").partition("?")[0]))


def _expect_file(url: str) -> None:
    path = file_of(url)
    if path is None:
        return
    if not path.exists():
        raise DatabaseError(f"there is no file {str(path)!r}")
    if not path.is_file():
        raise DatabaseError(f"{str(path)!r} is not a file")
