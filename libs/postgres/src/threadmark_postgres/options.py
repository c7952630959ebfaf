"""Types for the options of a `PostgresSaver`."""

from typing import Literal, TypedDict

from threadmark.backends import SaverOptions

ReadFrom = Literal["primary", "replica"]


class ConnectionOptions(TypedDict, total=False):
    """Options that only a Postgres saver has."""

    schema: str | None
    pool_size: int
    prepare: bool
    application_name: str
    timeout: float
    slow: float | None
    combine: bool
    read_only: bool
    read_from: ReadFrom
    max_staleness: float | None


class PostgresOptions(ConnectionOptions, SaverOptions, total=False):
    """All options of a Postgres saver."""
