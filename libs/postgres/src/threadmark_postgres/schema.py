"""Where the tables are: the name of their schema, in statements that leave it open."""

import re
from functools import lru_cache

from threadmark.errors import ConfigError

_TABLE = re.compile(r"\btm\.")


@lru_cache(maxsize=512)
def in_schema(statement: str, schema: str | None) -> str:
    """The statement with its tables in this schema; None leaves it to the connection's search path."""
    prefix = "threadmark_" if schema is None else f"{quoted(schema)}.threadmark_"
    return _TABLE.sub(lambda _: prefix, statement)


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    if not name or "\x00" in name:
        raise ConfigError(f"{name!r} cannot be the name of a schema")
    return '"' + name.replace('"', '""') + '"'
