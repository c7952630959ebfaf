"""The schema of the tables, in statements that leave it open."""

import re
from functools import lru_cache

from threadmark.backends import ConfigError

_TABLE = re.compile(r"\btm\.")

_LONGEST_NAME = 63
"""In bytes. The server cuts a longer one, and then there is no schema of the name that was asked for."""


@lru_cache(maxsize=512)
def in_schema(statement: str, schema: str | None) -> str:
    """Return the statement with its tables in this schema. With None the connection's search path decides."""
    prefix = "threadmark_" if schema is None else f"{quoted(schema)}.threadmark_"
    return _TABLE.sub(lambda _: prefix, statement)


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    if not isinstance(name, str):
        raise ConfigError(f"{name!r} cannot be the name of a schema: give a string")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name!r} cannot be the name of a schema, as it is no text: {error.reason}") from error
    if not name or "\x00" in name:
        raise ConfigError(f"{name!r} cannot be the name of a schema")
    if size > _LONGEST_NAME:
        raise ConfigError(
            f"{name!r} cannot be the name of a schema: it takes {size} bytes, of which Postgres keeps {_LONGEST_NAME}"
        )
    return '"' + name.replace('"', '""') + '"'
