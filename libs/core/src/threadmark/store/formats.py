"""The format of a database, and which releases may use it: two of them work side by side (docs/how-to/upgrade.md).

A database has a structure, which grows by numbered steps, and a form in which rows are written. A step never disturbs a
process of an earlier release. `upgrade` then switches to the new form, and with it raises the least format that a
process must know to write, or even to read.
"""

from typing import NamedTuple, Protocol

from threadmark.errors import SchemaError
from threadmark.model import UpgradeReport
from threadmark.program import Program


class Format(NamedTuple):
    """The format of a database."""

    number: int
    """The last step; 0 if there are no tables."""
    least_reader: int
    """The least format that a process must know to read."""
    least_writer: int
    """The same to write. It is the format in which every process writes, however many later ones it knows."""

    def expect_known(self, current: int, database: object, package: str, *, writes: bool) -> None:
        """Raise SchemaError if a process that knows formats up to `current` must not read, or write where it may."""
        known = f"this release knows formats up to {current}: upgrade {package}"
        if self.least_reader > current:
            raise SchemaError(
                f"{database} has format {self.number}, which takes at least format {self.least_reader} to read, and "
                f"{known}"
            )
        if writes and self.least_writer > current:
            raise SchemaError(
                f"{database} has format {self.number} and is written in format {self.least_writer}, and {known}; "
                "until then it can only be read, on SQLite and Postgres with a read-only saver"
            )


class FormatStore(Protocol):
    """The operations of a backend on its format. One with a single format, such as memory, leaves them as they are."""

    def upgrade(self, *, dry_run: bool) -> Program[UpgradeReport]:  # noqa: ARG002 - of those that have something to do
        """Switch to the newest form that this release writes. With `dry_run` nothing is changed."""
        yield from ()
        return UpgradeReport(1, 1)

    def awaits_others(self) -> Program[bool]:
        """Wait for a moment if a process may not have noticed a switch yet. Returns whether to ask again."""
        yield from ()
        return False
