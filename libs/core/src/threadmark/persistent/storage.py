"""A file of keys and values, in an order: read whole when it is opened; a sync stores the differences."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from threadmark.bounded_sqlite import expect_plain_tables, fetched
from threadmark.errors import (
    ClosedError,
    CorruptDataError,
    SchemaError,
    SerializationError,
    StoreError,
    located,
    short_repr,
)
from threadmark.persistent import sql
from threadmark.persistent.claim import Claim
from threadmark.persistent.connection import CREATE, READ, WRITE, look, transact
from threadmark.persistent.entries import Contents, Draft, Row, Slot, contents_of, decoded, draft
from threadmark.runtime.processes import reset_after_fork
from threadmark.serde import Serializer

Flag = Literal["r", "w", "c", "n"]


class _Read(NamedTuple):
    """The content of a file."""

    rows: list[Row]
    digest: bytes


class Storage:
    """An open file: any number of objects may read it, one object of one process may write to it.

    After a failed sync, the digest in the file decides whether the file has the contents before the sync or those that
    it was about to store.
    """

    def __init__(self, path: str, flag: Flag, kind: str, serde: Serializer) -> None:
        """Open the file. `kind` names its purpose: a file with another purpose is refused."""
        self.path = path
        self._flag = flag
        self._kind = kind
        self._serde = serde
        self._lock = threading.RLock()
        self._claim: Claim | None = None
        self._closed = ""
        self._settled = contents_of({})
        self._pending: Contents | None = None
        _expect_place(path, flag)
        if flag != "r":
            self._claim = Claim(path)
        reset_after_fork(self)

    def read(self) -> list[tuple[Any, Any]]:
        """Bring the file to a state that can be synced to, and return its content: once, before anything else."""
        _expect_ours(self.path)
        if self._flag == "r":
            found = transact(self.path, _reading(self.path), partial(_read, self.path, self._kind), writes=False)
        else:
            mode = WRITE if self._flag == "w" else CREATE
            found = transact(self.path, mode, partial(_read_or_create, self.path, self._kind), writes=True)
        if self._flag == "n":
            self._settled = Contents({}, found.digest, stale=True)
            return []
        items: dict[Any, Any] = {}
        with located(repr(self.path)):
            for row in found.rows:
                _add(items, *decoded(row, self._serde))
            self._settled = contents_of({row.key: Slot(row.position, row.digest) for row in found.rows})
            if self._settled.digest != found.digest:
                raise CorruptDataError("entries are missing, or are not those that were stored last")
        return list(items.items())

    def store(self, snapshot: Callable[[], Iterable[tuple[Any, Any]]]) -> None:
        """Store these keys and values in the file, in this order. When this returns, they are on the disk.

        `snapshot` is called when it is this call's turn: of two calls, the later one stores the newer data.
        """
        with self._lock:
            self.expect_open()
            if not Path(self.path).exists():
                raise StoreError(f"{self.path!r} {_REPLACED}")
            self._settle()
            with located(repr(self.path)):
                made = draft(self._settled, snapshot(), self._serde)
            self._pending = made.contents
            self._transact(partial(_write, draft=made, stale=self._settled.stale, kind=self._kind))
            self._settled = made.contents
            self._pending = None

    def expect_open(self) -> None:
        """Raise an error if nothing can be stored here."""
        if self._closed:
            raise ClosedError(f"{self.path!r} {self._closed}")
        if self._flag == "r":
            raise StoreError(f"{self.path!r} was opened with flag 'r': nothing in it can be changed; open it with 'w'")

    @property
    def is_open(self) -> bool:
        """Whether it was not closed yet."""
        return not self._closed

    def close(self) -> None:
        """Let others open the file. You may call it again."""
        with self._lock:
            self._closed = self._closed or "was closed: open it again"
            if self._claim is not None:
                self._claim.release()

    def _reset_after_fork(self) -> None:
        """In the child of a fork: the file is the parent's, which goes on with it."""
        self._lock = threading.RLock()
        self._closed = self._closed or "belongs to the process that opened it, of which this one is a fork"
        if self._claim is not None:
            self._claim.abandon()

    def _settle(self) -> None:
        """Find the state left by a sync that did not return."""
        if self._pending is not None:
            if transact(self.path, WRITE, _digest_in, writes=False) == self._pending.digest:
                self._settled = self._pending
            self._pending = None

    def _transact(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Run `work` in a transaction, in the file as it was left here."""
        expected = self._settled.digest

        def checked(connection: sqlite3.Connection) -> None:
            if _digest_in(connection) != expected:
                raise StoreError(f"{self.path!r} {_REPLACED}")
            work(connection)

        transact(self.path, WRITE, checked, writes=True)


_REPLACED = (
    "is not the file that was opened, or another program has changed it: nothing was stored; put the file back, or "
    "store what is in memory in another file"
)


def _expect_place(path: str, flag: Flag) -> None:
    """Raise an error if the file does not exist and is not to be made, or cannot be used as the flag says."""
    place = Path(path)
    if place.is_dir():
        raise StoreError(f"{path!r} cannot be opened: it is a folder")
    if not place.parent.is_dir():
        raise StoreError(f"{path!r} cannot be opened: there is no folder {str(place.parent)!r}")
    if place.exists():
        if flag != "r" and not os.access(path, os.W_OK):
            raise StoreError(f"{path!r} may not be written to: open it with flag 'r' to read it")
    elif flag in ("r", "w"):
        raise StoreError(f"{path!r} does not exist: flag 'c' makes it where it is missing")


def _expect_ours(path: str) -> None:
    """Raise an error for another application's file, before anything is locked in it or made next to it."""
    if Path(path).exists() and Path(path).stat().st_size > 0:
        try:
            is_foreign = not look(path, partial(_is_made, path)) and look(path, _tables) > 0
        except sqlite3.Error:
            return  # whether it is damaged, or was just being made, is seen when it is read under a lock
        if is_foreign:
            raise SchemaError(f"{path!r} is a SQLite database of another application: choose another file")


def _reading(path: str) -> str:
    """Return how to open a file to read it. A process with write access undoes the rest of an interrupted sync."""
    return WRITE if os.access(path, os.W_OK) else READ


def _is_made(path: str, connection: sqlite3.Connection) -> bool:
    """Whether the file was made by this module. Raises SchemaError if it is of another application or release."""
    ((application_id,),) = connection.execute(sql.GET_APPLICATION_ID)
    if application_id not in (0, sql.APPLICATION_ID):
        raise SchemaError(
            f"{path!r} belongs to another application (application_id {application_id:#x}): choose another file"
        )
    if application_id == 0:
        return False
    ((number,),) = connection.execute(sql.GET_FORMAT)
    if number != sql.FORMAT:
        raise SchemaError(
            f"{path!r} has format {number}, and this release knows format {sql.FORMAT}: upgrade threadmark"
        )
    expect_plain_tables(connection, ("entry", "contents"), path)
    return True


def _tables(connection: sqlite3.Connection) -> int:
    ((count,),) = connection.execute(sql.COUNT_TABLES)
    return int(count)


def _read_or_create(path: str, kind: str, connection: sqlite3.Connection) -> _Read:
    """Make the tables if the file is empty. Returns its content."""
    if not _is_made(path, connection) and not _tables(connection):
        for statement in sql.CREATE:
            connection.execute(statement)
        connection.execute(sql.SET_CONTENTS, (kind, contents_of({}).digest))
    return _read(path, kind, connection)


def _read(path: str, kind: str, connection: sqlite3.Connection) -> _Read:
    if not _is_made(path, connection):
        raise SchemaError(f"{path!r} has no dictionary in it: choose another file")
    found = connection.execute(sql.GET_CONTENTS).fetchall()
    if len(found) != 1:
        raise CorruptDataError("the file is damaged: it does not say what it contains", repr(path))
    ((there, digest),) = found
    if there != kind.encode():
        raise SchemaError(f"{path!r} does not hold a {kind}, but a {_text(there)}: choose another file")
    return _Read([Row(*row) for row in fetched(connection.execute(sql.GET_ENTRIES))], digest)


def _text(stored: object) -> str:
    """The purpose that the file names, which may be damaged."""
    return stored.decode(errors="replace") if isinstance(stored, bytes) else short_repr(stored)


def _digest_in(connection: sqlite3.Connection) -> object:
    found = connection.execute(sql.GET_CONTENTS).fetchone()
    return found and found[1]


def _write(connection: sqlite3.Connection, *, draft: Draft, stale: bool, kind: str) -> None:
    if stale:
        connection.execute(sql.DELETE_ENTRIES)
    elif not draft.rows and not draft.gone:
        return
    connection.executemany(sql.DELETE_ENTRY, [(position,) for position in draft.gone])
    connection.executemany(sql.SET_ENTRY, draft.rows)
    connection.execute(sql.SET_CONTENTS, (kind, draft.contents.digest))


def _add(items: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry that was read. Raises SerializationError if its key cannot be one."""
    with located(f"key {short_repr(key)}"):
        try:
            known = key in items
        except TypeError as error:
            raise SerializationError(f"it comes back from the serializer as no key: {error}") from error
        if known:
            raise SerializationError("another key equals it, since its class was changed or another serializer is used")
    items[key] = value
