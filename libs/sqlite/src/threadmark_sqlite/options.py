"""The options of a `SqliteSaver`, as types."""

from typing import Literal, TypedDict

from threadmark.saver import SaverOptions

Durability = Literal["full", "normal"]
"""What a commit waits for: "full" survives a power cut, "normal" a crash of the process only."""


class FileOptions(TypedDict, total=False):
    """The options that only a SQLite saver has."""

    durability: Durability
    timeout: float


class SqliteOptions(FileOptions, SaverOptions, total=False):
    """All options of a SQLite saver."""
