"""Types for the options of a `SqliteSaver`."""

from typing import Literal, TypedDict

from threadmark.backends import SaverOptions

Durability = Literal["full", "normal"]
"""What a commit waits for: "full" survives a power cut, "normal" only a crash of the process."""


class FileOptions(TypedDict, total=False):
    """Options that only a SQLite saver has."""

    durability: Durability
    timeout: float
    slow: float | None


class SqliteOptions(FileOptions, SaverOptions, total=False):
    """All options of a SQLite saver."""
