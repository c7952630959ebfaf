"""LangGraph's SQLite files, read without a change to them and without a file beside them."""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from threadmark import StoreError
from threadmark_cli.foreign import sql
from threadmark_cli.foreign.decoding import decoded
from threadmark_cli.foreign.rows import Namespace, Reader, Ref, Stored, Write, WriteRef

T = TypeVar("T")


class SqliteTables:
    """A file. A connection lives for one transaction."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.name = f"SQLite database {path!r}"

    @classmethod
    def found_in(cls, path: str) -> "SqliteTables | None":
        """Return the tables of a file that has LangGraph's, and nothing of ours."""
        if not Path(path).is_file():
            return None
        tables = cls(path)
        try:
            return tables if tables._reading(_has_only_theirs) else None
        except sqlite3.Error:  # who opens it as ours says what is wrong with it
            return None

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` in a transaction that reads one moment's rows. It may be called again from the beginning."""
        try:
            return self._reading(lambda connection: work(_SqliteReader(connection)))
        except sqlite3.Error as error:
            raise StoreError(f"{self.name} cannot be read: {error}") from error

    def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a connection that cannot write.

        Even a read-only connection creates files for the log of a database that has one. Where the log is empty, SQLite
        is told that the file does not change, and needs none; if somebody writes meanwhile, the read is done again. A
        log that holds something has its files already.
        """
        for _ in range(_LOOKS):
            before = self._seen()
            if before is None:
                break
            try:
                result = self._once(work, "mode=ro&immutable=1")
            except sqlite3.Error:
                if self._seen() == before:
                    raise
            else:
                if self._seen() == before:
                    return result
        return self._once(work, "mode=ro")

    def _once(self, work: Callable[[sqlite3.Connection], T], how: str) -> T:
        uri = f"file:{quote(str(Path(self._path).absolute()))}?{how}"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_TIMEOUT)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            connection.row_factory = sqlite3.Row
            connection.execute(sql.BEGIN_SQLITE)
            return work(connection)

    def _seen(self) -> tuple[int, ...] | None:
        """Return a stamp that changes when the file is written, or None if there is a log or a journal to read."""
        if any(_size(f"{self._path}{suffix}") for suffix in ("-wal", "-journal")):
            return None
        look = Path(self._path).stat()
        if abs(time.time_ns() - look.st_mtime_ns) < _TICK * 1e9:
            time.sleep(_TICK)  # or the next write could have the same time
        return look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns


_LOOKS = 5
_TICK = 0.03
"""Seconds in which a file system may give two changes of a file the same time."""

_TIMEOUT = 10.0
"""Seconds to wait for a lock."""


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _has_only_theirs(connection: sqlite3.Connection) -> bool:
    theirs, ours = connection.execute(sql.SQLITE_CONTENTS).fetchone()
    return bool(theirs and not (ours and connection.execute(sql.HAS_OURS).fetchone()[0]))


class _SqliteReader:
    """The questions, on a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def namespaces(self, thread_id: str | None) -> Sequence[Namespace]:
        rows = self._connection.execute(sql.SQLITE_NAMESPACES, {"thread_id": thread_id})
        return [Namespace(*row) for row in rows]

    def bytes_beside(self, thread_id: str | None) -> Mapping[str, int]:
        return {row[0]: row[1] for row in self._connection.execute(sql.SQLITE_BYTES, {"thread_id": thread_id})}

    def heads(self, thread_id: str | None) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._connection.execute(sql.SQLITE_HEADS, {"thread_id": thread_id})]

    def refs(self, thread_id: str) -> Sequence[Ref]:
        return [Ref(*row) for row in self._connection.execute(sql.SQLITE_REFS, (thread_id,))]

    def write_refs(self, thread_id: str) -> Sequence[WriteRef]:
        return [WriteRef(*row) for row in self._connection.execute(sql.SQLITE_WRITE_REFS, (thread_id,))]

    def checkpoint(
        self,
        thread_id: str,
        ref: Ref,
        parent_versions: Mapping[str, Any],  # noqa: ARG002 - each row holds all values
    ) -> Stored | None:
        row = self._connection.execute(sql.SQLITE_CHECKPOINT, (thread_id, ref.ns, ref.id)).fetchone()
        if row is None:
            return None
        return Stored(decoded(row["type"], row["checkpoint"]), _metadata(row["metadata"]), None)

    def writes(self, thread_id: str, ns: str, checkpoint_id: str) -> Sequence[Write]:
        rows = self._connection.execute(sql.SQLITE_WRITES, (thread_id, ns, checkpoint_id)).fetchall()
        return [
            Write(
                row["task_id"],
                row["task_path"] if "task_path" in row.keys() else "",  # noqa: SIM118 - `in row` asks the values
                row["idx"],
                row["channel"],
                decoded(row["type"], row["value"]),
            )
            for row in rows
        ]


def _metadata(stored: Any) -> Any:
    """The metadata of a row, which is JSON; as text where it is not."""
    try:
        return json.loads(stored) if stored else {}
    except (ValueError, RecursionError):
        return stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)
