"""LangGraph's Postgres databases, read in transactions that may not write."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from threadmark import StoreError
from threadmark_cli.foreign import sql
from threadmark_cli.foreign.decoding import Decoder
from threadmark_cli.foreign.rows import Beside, Namespace, Reader, Ref, Stored, Write, WriteRef

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

_EMPTY = "empty"
"""LangGraph's mark of a version of a channel that has no value."""


class PostgresTables:
    """A database, at the search path of its URL. A connection lives for one transaction."""

    name = "the Postgres database"

    def __init__(self, url: str) -> None:
        self._url = url

    @classmethod
    def found_in(cls, url: str) -> "PostgresTables | None":
        """Return the tables of a database that has LangGraph's, and nothing of ours."""
        try:
            import psycopg
        except ImportError:  # opening it as ours names the package
            return None
        tables = cls(url)
        try:
            return tables if tables._reading(_has_only_theirs) else None
        except psycopg.Error:  # and reports the fault
            return None

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` in a transaction that reads one moment's rows."""
        import psycopg

        try:
            return self._reading(lambda connection: work(_PostgresReader(connection)))
        except psycopg.Error as error:
            raise StoreError(f"{self.name} cannot be read: {' '.join(str(error).split())}") from error

    def _reading(self, work: "Callable[[psycopg.Connection[tuple[Any, ...]]], T]") -> T:
        import psycopg

        with psycopg.connect(self._url, prepare_threshold=None) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            try:
                return work(connection)
            finally:
                connection.rollback()


def _has_only_theirs(connection: "psycopg.Connection[tuple[Any, ...]]") -> bool:
    ((theirs, ours),) = connection.execute(sql.POSTGRES_CONTENTS).fetchall()
    if theirs and ours:
        ((ours,),) = connection.execute(sql.HAS_OURS).fetchall()
    return bool(theirs and not ours)


class _PostgresReader:
    """The questions, on a connection."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection
        self._decoder = Decoder()

    def namespaces(self, thread_id: str | None) -> Sequence[Namespace]:
        rows = self._rows(sql.POSTGRES_NAMESPACES, {"thread_id": thread_id})
        return [Namespace(*row)._replace(bytes=int(row[-1])) for row in rows]

    def beside(self, thread_id: str | None) -> Mapping[str, Beside]:
        rows = self._rows(sql.POSTGRES_BESIDE, {"thread_id": thread_id})
        return {name: Beside(int(writes), int(size)) for name, writes, size in rows}

    def heads(self, thread_id: str | None) -> Sequence[tuple[str, str]]:
        return [(name, channel) for name, channel in self._rows(sql.POSTGRES_HEADS, {"thread_id": thread_id})]

    def refs(self, thread_id: str) -> Sequence[Ref]:
        return [Ref(*row) for row in self._rows(sql.POSTGRES_REFS, (thread_id,))]

    def write_refs(self, thread_id: str) -> Sequence[WriteRef]:
        return [WriteRef(*row) for row in self._rows(sql.POSTGRES_WRITE_REFS, (thread_id,))]

    def checkpoint(self, thread_id: str, ref: Ref, parent_versions: Mapping[str, Any]) -> Stored | None:
        row = self._connection.execute(sql.POSTGRES_CHECKPOINT, (thread_id, ref.ns, ref.id)).fetchone()
        if row is None:
            return None
        checkpoint, metadata = row
        if not isinstance(checkpoint, dict):
            return Stored(checkpoint, metadata, None)
        versions = checkpoint.get("channel_versions") or {}
        new = {channel: version for channel, version in versions.items() if parent_versions.get(channel) != version}
        blobs = self._rows(sql.POSTGRES_BLOBS, ([*new], [str(version) for version in new.values()], thread_id, ref.ns))
        values = {channel: self._decoder.value(kind, blob) for channel, kind, blob in blobs if kind != _EMPTY}
        # Small values stand in the checkpoint itself.
        found = {**checkpoint, "channel_values": {**(checkpoint.get("channel_values") or {}), **values}}
        return Stored(found, metadata, new)

    def writes(self, thread_id: str, ns: str, checkpoint_id: str) -> Sequence[Write]:
        from psycopg.rows import dict_row

        cursor = self._connection.cursor(row_factory=dict_row)
        rows = cursor.execute(sql.POSTGRES_WRITES, (thread_id, ns, checkpoint_id)).fetchall()
        return [
            Write(
                row["task_id"],
                row.get("task_path") or "",
                row["idx"],
                row["channel"],
                self._decoder.value(row["type"], row["blob"]),
            )
            for row in rows
        ]

    def _rows(self, statement: LiteralString, values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()
