"""Cursors: where the next page of a listing begins, as text that fits into a URL."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from json import dumps, loads
from typing import Any

from threadmark.errors import ConfigError, shown
from threadmark.names import as_text

_BITS = 63
"""Of a number in a database, without its sign."""


def new_cursor(*parts: str | int) -> str:
    """Return the cursor that has these parts."""
    return urlsafe_b64encode(dumps(parts, ensure_ascii=True).encode()).decode()


def parts_of_cursor(cursor: object, kinds: Sequence[type]) -> Sequence[Any]:
    """Return the parts of a cursor, one of each kind. Raises ConfigError for what is no such cursor."""
    try:
        parts = loads(urlsafe_b64decode(as_text(cursor, "cursor")))
    except (ValueError, RecursionError) as error:
        raise _error(cursor) from error
    if type(parts) is not list or [*map(type, parts)] != [*kinds]:
        raise _error(cursor)
    if any(type(part) is int and part.bit_length() > _BITS for part in parts):
        raise _error(cursor)
    return parts


def _error(cursor: object) -> ConfigError:
    return ConfigError(f"{shown(cursor)} is no cursor: give the one of the page before")
