"""Where the database is and how it is used."""

import math
import os
from typing import Any, NamedTuple

from psycopg.conninfo import conninfo_to_dict

# A connection whose other end is gone without a word must not hang for ever. Whoever names these in the URL (or the
# first in the environment, PGCONNECT_TIMEOUT) wins. Keepalives find out while nothing was sent, the last one (in
# milliseconds) while what was sent is not acknowledged.
_LIVELINESS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

PATH_PARAMETERS = ("host", "hostaddr", "port", "dbname")
"""What names a database, and may be shown. No user, and no password."""


def _without_credentials(key: str, value: str) -> str:
    """A parameter as it may be shown. Of a password with a bare / or @, libpq takes parts for a port or a host."""
    if key == "port" and not value.replace(",", "").isdigit():
        return "?"
    return value.rpartition("@")[2]


class Settings(NamedTuple):
    """What a saver was told about its database."""

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

    def __str__(self) -> str:
        given = conninfo_to_dict(self.conninfo)
        shown = [
            (key, _without_credentials(key, str(given[key]))) for key in PATH_PARAMETERS if given.get(key) is not None
        ]
        if self.schema is not None:
            shown.append(("schema", self.schema))
        return " ".join(["Postgres", *(f"{key}={value}" for key, value in shown)])

    def connecting(self) -> dict[str, Any]:
        """The parameters of a new connection."""
        given = conninfo_to_dict(self.conninfo)
        threshold: dict[str, Any] = {} if self.prepare else {"prepare_threshold": None}
        liveliness = dict(_LIVELINESS)
        if "PGCONNECT_TIMEOUT" in os.environ:  # libpq has no such variable for the others
            del liveliness["connect_timeout"]
        return {
            **liveliness,
            "application_name": self.application_name,
            **{key: value for key, value in given.items() if value is not None},
            **threshold,
            "autocommit": True,
            "client_encoding": "UTF8",  # of a database without an encoding, psycopg would give text as bytes
        }
