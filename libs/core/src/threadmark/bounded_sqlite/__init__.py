"""Reading SQLite files that somebody may have crafted, for whatever keeps something in one."""

from threadmark.bounded_sqlite.bounds import (
    FEW,
    MUCH,
    BoundedConnection,
    expect_plain_tables,
    expect_plausible,
    fetched,
    reset_steps,
)

__all__ = [
    "FEW",
    "MUCH",
    "BoundedConnection",
    "expect_plain_tables",
    "expect_plausible",
    "fetched",
    "reset_steps",
]
