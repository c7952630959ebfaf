"""The settings of a Postgres saver: which database it uses, and how."""

import math
import os
from typing import Any, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

TCP_DEFAULTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Defaults for parameters of libpq, so that a connection whose other end is gone does not hang for ever.

The environment overrides the first of them (PGCONNECT_TIMEOUT). Keepalives detect the loss while nothing was sent, the
last one (in milliseconds) while sent data is not acknowledged.
"""

_UNPREPARED_USES = 1
"""How often a connection sends a statement before it is prepared, in the round trip of its next use.

Until then the server parses and plans each use, and it plans each of five more. A statement that is used once leaves
nothing behind.
"""

PATH_PARAMETERS = ("host", "hostaddr", "port", "dbname")
"""Parameters that name a database, and may be printed. They include no user and no password."""


def _without_credentials(key: str, value: str) -> str:
    """Return a parameter in printable form. In a password with a bare / or @, libpq finds a port or a host."""
    if key == "port" and not value.replace(",", "").isdigit():
        return "?"
    return value.rpartition("@")[2]


class Settings(NamedTuple):
    """The options of one saver that concern its database."""

    conninfo: str
    schema: str | None
    pool_size: int
    prepare: bool
    application_name: str
    timeout: float
    """Seconds for which an operation is tried again while the database cannot be reached."""
    combine: bool
    """Whether callers that add at the same time may share a statement."""
    slow: float = math.inf
    """Seconds from which a transaction is logged as slow."""
    read_only: bool = False
    """Whether tables are neither created nor updated."""

    def __str__(self) -> str:
        parameters = conninfo_to_dict(self.conninfo)
        parts = [
            (key, _without_credentials(key, str(parameters[key])))
            for key in PATH_PARAMETERS
            if parameters.get(key) is not None
        ]
        if self.schema is not None:
            parts.append(("schema", self.schema))
        return " ".join(["Postgres", *(f"{key}={value}" for key, value in parts)])

    def aimed_at(self, servers: str) -> "Settings":
        """Return these settings for one kind of the servers in the URL, by libpq's name for it."""
        return self._replace(conninfo=make_conninfo(self.conninfo, target_session_attrs=servers))

    def connecting(self) -> dict[str, Any]:
        """Return the parameters for a new connection."""
        parameters = conninfo_to_dict(self.conninfo)
        defaults = dict(TCP_DEFAULTS)
        if "PGCONNECT_TIMEOUT" in os.environ:  # libpq has no such variable for the others
            del defaults["connect_timeout"]
        return {
            **defaults,
            "application_name": self.application_name,
            **{key: value for key, value in parameters.items() if value is not None},
            "prepare_threshold": _UNPREPARED_USES if self.prepare else None,
            "autocommit": True,
            "client_encoding": "UTF8",  # psycopg returns text of a database without an encoding as bytes
        }
