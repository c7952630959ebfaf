"""The format of a database, which one key has from the first switch on, and how a running process learns of a switch.

Redis has no tables to change, so a format has no structure: only the written form differs. A process reads the key when
it begins, and again before a step if that was `READ_AGAIN` seconds ago. `upgrade` names the format, and then waits for
longer than that, before anything is written in it. For a process that stood still between its look and its change, each
thread that has something of a later format says so in its head (`FORM` in lua/thread.lua), and scripts refuse to change
it.
"""

import time
from typing import NamedTuple

from threadmark.backends import Format, Program, SchemaError, UpgradeReport
from threadmark_redis.columns import int_or_none, to_bytes
from threadmark_redis.keys import format_key
from threadmark_redis.steps import Command, commands, run, script


class Step(NamedTuple):
    """A change of the written form."""

    number: int
    least_reader: int
    """The least format that a process must know to read it."""
    least_writer: int
    """The same to write."""
    release: str
    """The first version of Threadmark that writes it."""


STEPS = (Step(1, 1, 1, "0.1.0"),)

CURRENT = STEPS[-1].number

READ_AGAIN = 10.0
"""Seconds after which a process reads the format again."""

_MARGIN = 5.0
"""Seconds that a change may be on its way."""

_MOMENT = b"0.5"

SWITCH = script("switch", "thread")

REMAINING = script("remaining", "thread")


class KnownFormat:
    """The format of a database as one saver knows it."""

    def __init__(self, prefix: str, database: object, *, is_kept: bool) -> None:
        self.asking = _asking(to_bytes(prefix))
        self._database = database
        self._found = Format(1, 1, 1)
        self._is_kept = is_kept
        """Whether the database has a format. A cache has none."""
        self._until = float("-inf")

    def is_due(self) -> bool:
        """Return whether it must be read before the next step."""
        return self._is_kept and time.monotonic() >= self._until

    def note(self, asked: float, columns: list[bytes | None]) -> None:
        """Note an answer to a question that was sent at the moment `asked` of the monotonic clock."""
        self._found = Format(*map(max, self._found, _format_in(columns)))  # a server that took over may lack the key
        self._until = asked + READ_AGAIN
        self.expect(writes=False)

    def expect(self, *, writes: bool) -> None:
        """Raise SchemaError if this release must not read, or `writes` and must not."""
        self._found.expect_known(CURRENT, self._database, "threadmark-redis", writes=writes)


def stored_format(prefix: bytes) -> Program[Format]:
    """Return the format of a database. Before the first switch nothing is stored about it."""
    (columns,) = yield from commands([_asking(prefix)])
    return _format_in(columns)


def _asking(prefix: bytes) -> Command:
    return b"HMGET", format_key(prefix), b"n", b"r", b"w"


def _format_in(columns: list[bytes | None]) -> Format:
    return Format(*(int_or_none(column) or 1 for column in columns))


def upgrade(prefix: bytes, *, dry_run: bool) -> Program[UpgradeReport]:
    """Name the newest format, in which nothing is written before every process has read that."""
    found, newest = (yield from stored_format(prefix)), STEPS[-1]
    report = UpgradeReport(found.least_writer, max(found.least_writer, newest.least_writer), newest.release)
    if not dry_run and (newest.least_reader, newest.least_writer) > found[1:]:
        yield from run(SWITCH, (format_key(prefix),), (*newest[:3], int((READ_AGAIN + _MARGIN) * 1_000_000)))
    return report


def awaits_others(prefix: bytes) -> Program[bool]:
    """Let the server wait for a moment if there are processes that may not have read the last switch."""
    if not (yield from run(REMAINING, (format_key(prefix),), (), writes=False)):
        return False
    yield from commands([(b"BZPOPMIN", format_key(prefix) + b":wait", _MOMENT)])  # a key that never exists
    return True


def later_form_error(thread_id: str) -> SchemaError:
    """Return the error about a thread that only processes of a later release may change."""
    return SchemaError(
        f"thread {thread_id!r} has data of a later format, and this release knows formats up to {CURRENT}: "
        "upgrade threadmark-redis"
    )
