"""LangGraph's SQLite files, read without a change to them and without a new file next to them."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from threadmark import StoreError
from threadmark_cli.foreign import sql
from threadmark_cli.foreign.decoding import Decoder
from threadmark_cli.foreign.rows import Beside, Namespace, Reader, Ref, Stored, Write, WriteRef
from threadmark_cli.sqlite_files import read_file

T = TypeVar("T")


class SqliteTables:
    """A file. A connection lives for one transaction."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.name = f"SQLite database {path!r}"

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` in a transaction that reads one moment's rows. It may be called again from the beginning."""
        try:
            return read_file(Path(self._path), lambda connection: work(_SqliteReader(connection)))
        except sqlite3.Error as error:
            raise StoreError(f"{self.name} cannot be read: {error}") from error


class _SqliteReader:
    """The questions, on a connection. Rows whose ids are not text are left out: nothing can name them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._decoder = Decoder()

    def namespaces(self, thread_id: str | None) -> Sequence[Namespace]:
        rows = self._connection.execute(sql.SQLITE_NAMESPACES, {"thread_id": thread_id})
        return [Namespace(*row) for row in rows if _are_ids(row[0], row[1])]

    def beside(self, thread_id: str | None) -> Mapping[str, Beside]:
        rows = self._connection.execute(sql.SQLITE_BESIDE, {"thread_id": thread_id})
        return {name: Beside(writes, size) for name, writes, size in rows if _are_ids(name)}

    def heads(self, thread_id: str | None) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._connection.execute(sql.SQLITE_HEADS, {"thread_id": thread_id})]

    def refs(self, thread_id: str) -> Sequence[Ref]:
        rows = self._connection.execute(sql.SQLITE_REFS, (thread_id,))
        return [
            Ref(ns, checkpoint_id, parent if _are_ids(parent) else None, stamp)
            for ns, checkpoint_id, parent, stamp in rows
            if _are_ids(ns, checkpoint_id)
        ]

    def write_refs(self, thread_id: str) -> Sequence[WriteRef]:
        rows = self._connection.execute(sql.SQLITE_WRITE_REFS, (thread_id,))
        return [WriteRef(*row) for row in rows if _are_ids(*row[:3])]

    def checkpoint(
        self,
        thread_id: str,
        ref: Ref,
        parent_versions: Mapping[str, Any],  # noqa: ARG002 - each row holds all values
    ) -> Stored | None:
        row = self._connection.execute(sql.SQLITE_CHECKPOINT, (thread_id, ref.ns, ref.id)).fetchone()
        if row is None:
            return None
        return Stored(self._decoder.value(row["type"], row["checkpoint"]), _metadata(row["metadata"]), None)

    def writes(self, thread_id: str, ns: str, checkpoint_id: str) -> Sequence[Write]:
        rows = self._connection.execute(sql.SQLITE_WRITES, (thread_id, ns, checkpoint_id)).fetchall()
        return [
            Write(
                row["task_id"],
                row["task_path"] if "task_path" in row.keys() else "",  # noqa: SIM118 - `in row` asks the values
                row["idx"],
                row["channel"],
                self._decoder.value(row["type"], row["value"]),
            )
            for row in rows
            if _are_ids(row["task_id"], row["channel"])
        ]


def _are_ids(*found: Any) -> bool:
    """Whether these are text, as LangGraph writes them. A column of SQLite takes anything, whatever its type is."""
    return all(isinstance(each, str) and not _HALF.search(each) for each in found)


_HALF = re.compile("[\ud800-\udfff]")
"""The reading of bytes that are not UTF-8."""


def _metadata(stored: Any) -> Any:
    """The metadata of a row, which is JSON; as text if it is not."""
    try:
        return json.loads(stored) if stored else {}
    except (ValueError, TypeError, RecursionError):
        return stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)
