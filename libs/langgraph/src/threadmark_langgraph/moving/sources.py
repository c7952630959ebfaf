"""Lists of the checkpoints to move.

Checkpoints of LangGraph's own savers are listed from their tables, and Threadmark's from their rows, so that one that
cannot be read does not hide others. Any other saver lists them through its interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from threadmark import Saver
from threadmark.names import MESSAGES_NS
from threadmark.program import Operation, read_existing, run
from threadmark.program import read as reading
from threadmark.saver.batches import proven_batches
from threadmark.saver.paging import Pages
from threadmark.store.contract import Scope, Store
from threadmark.types import CheckpointRef
from threadmark_langgraph.checkpointer import Checkpointer
from threadmark_langgraph.moving import sql
from threadmark_langgraph.moving.conflicts import Ranks
from threadmark_langgraph.sends import lacks_sends, with_sends

_PAGE = 4096


def config_of(ref: CheckpointRef, checkpoint_id: str | None) -> RunnableConfig:
    """Return the config of a checkpoint in the same namespace as another. None names no checkpoint."""
    configurable = {"thread_id": ref.thread_id, "checkpoint_ns": ref.ns}
    return {"configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


class TaskOrder(NamedTuple):
    """The order of a task among the others, and of its writes, which no `CheckpointTuple` has."""

    path: str
    places: tuple[int, ...] = ()
    """The places of its writes to ordinary channels, ascending; empty if they are not known.

    A write's place is that in the call of `put_writes`, in which an answer to the task may have come before it. A task
    that runs once more stores its writes in the same places, and so once.
    """


Orders = Mapping[str, TaskOrder]
"""The order of each task with pending writes, by its id, as far as it is known."""


class Source(Protocol):
    """A saver that checkpoints come from or go to."""

    def has_tables(self) -> bool:
        """Return whether the tables exist, as far as that is known. Nothing is created."""

    def make(self) -> None:
        """Create the tables, if the saver leaves that to you."""

    def refs(self) -> list[CheckpointRef]:
        """Return all checkpoints, in any order."""

    def orders(self, ref: CheckpointRef, found: CheckpointTuple) -> Orders:
        """Return the order of each task with pending writes."""

    def orphan_writes(self) -> list[CheckpointRef]:
        """Return the missing checkpoints of pending writes, as far as they are known."""

    def ranks(self) -> Ranks:
        """Return the sort keys of checkpoints that need not sort by their ids, as far as they are known."""


def read(saver: BaseCheckpointSaver[Any], ref: CheckpointRef) -> CheckpointTuple | None:
    """Return the checkpoint. In an old format its packets are added, which may be with the parent."""
    found = saver.get_tuple(config_of(ref, ref.id))
    if found is None or found.parent_config is None or not lacks_sends(found):
        return found
    return with_sends(found, saver.get_tuple(found.parent_config))


def source_of(saver: BaseCheckpointSaver[Any]) -> Source:
    """Return the source that keeps most of a saver's content."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(saver).__mro__}
    if "langgraph.checkpoint.sqlite.SqliteSaver" in names:
        return _SqliteTables(saver)
    if "langgraph.checkpoint.postgres.PostgresSaver" in names:
        return _PostgresTables(saver)
    return _Threadmarks(saver) if isinstance(saver, Checkpointer) else _Listed(saver)


class _Tables(ABC):
    """The tables of LangGraph's savers for SQLite and Postgres, which have the same columns."""

    def __init__(self, saver: Any, writes: str, mark: str) -> None:
        self._saver = saver
        self._writes, self._mark = writes, mark
        self._orphan_writes = sql.ORPHAN_WRITES.format(writes=writes)

    @abstractmethod
    def has_tables(self) -> bool:
        """Return whether the tables exist."""

    def make(self) -> None:
        self._saver.setup()

    def refs(self) -> list[CheckpointRef]:
        return [CheckpointRef(*row) for row in self._rows(sql.CHECKPOINTS)] if self.has_tables() else []

    def orders(self, ref: CheckpointRef, found: CheckpointTuple) -> Orders:
        if not found.pending_writes:
            return {}
        return _orders(self._rows(self._places, ref[:3]))

    def orphan_writes(self) -> list[CheckpointRef]:
        rows = self._rows(self._orphan_writes) if self.has_tables() else ()
        return [CheckpointRef(thread_id, ns, gone, None) for thread_id, ns, gone in rows]

    def ranks(self) -> Ranks:
        return {}

    @cached_property
    def _places(self) -> str:
        path = "task_path" if self._has_paths() else "''"
        return sql.PLACES.format(writes=self._writes, path=path, mark=self._mark)

    def _has_paths(self) -> bool:
        return True

    @abstractmethod
    def _cursor(self) -> AbstractContextManager[Any]:
        """Return a cursor on the saver's connection."""

    def _rows(self, statement: str, values: Iterable[str] = ()) -> Iterator[tuple[Any, ...]]:
        with self._cursor() as cursor:
            rows = cursor.execute(statement, tuple(values)).fetchall()
        # The user made the connection and chose the shape of its rows.
        yield from (tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows)


class _SqliteTables(_Tables):
    def __init__(self, saver: Any) -> None:
        super().__init__(saver, "writes", "?")

    def has_tables(self) -> bool:
        with closing(self._saver.conn.cursor()) as cursor:
            return cursor.execute(sql.SQLITE_HAS_TABLES).fetchone() is not None

    def _has_paths(self) -> bool:
        """Whether a release from 3.1.2 on made the table of writes, or has written to it. Older ones kept no paths."""
        with closing(self._saver.conn.cursor()) as cursor:
            return cursor.execute(sql.SQLITE_HAS_TASK_PATHS).fetchone() is not None

    def _cursor(self) -> AbstractContextManager[Any]:
        """Return the saver's own cursor, which creates the tables and updates old ones."""
        cursor: AbstractContextManager[Any] = self._saver.cursor(transaction=False)
        return cursor


class _PostgresTables(_Tables):
    def __init__(self, saver: Any) -> None:
        super().__init__(saver, "checkpoint_writes", "%s")

    def has_tables(self) -> bool:
        return bool(list(self._rows(sql.POSTGRES_HAS_TABLES)))

    def _cursor(self) -> AbstractContextManager[Any]:
        connection = self._saver.conn
        cursor: AbstractContextManager[Any]
        cursor = _Borrowed(connection) if hasattr(connection, "getconn") else connection.cursor()
        return cursor


class _Listed:
    """Any saver, through LangGraph's interface, which does not tell task paths and places."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self._saver = saver

    def has_tables(self) -> bool:
        return True

    def make(self) -> None:
        """Do nothing: this saver's way to create tables is unknown."""

    def refs(self) -> list[CheckpointRef]:
        return [_ref_to(found) for found in self._saver.list(None)]

    def orders(self, ref: CheckpointRef, found: CheckpointTuple) -> Orders:  # noqa: ARG002 - as the protocol has it
        tasks = list(dict.fromkeys(task_id for task_id, _, _ in found.pending_writes or ()))
        # An order other than that of the tasks' ids came from their paths. Any paths with the same order will do.
        if tasks == sorted(tasks):
            return {}
        return {task_id: TaskOrder(f"{index:08d}") for index, task_id in enumerate(tasks)}

    def orphan_writes(self) -> list[CheckpointRef]:
        return []

    def ranks(self) -> Ranks:
        return {}


class _Threadmarks(_Listed):
    """A Threadmark saver."""

    def __init__(self, saver: Checkpointer) -> None:
        super().__init__(saver)
        self._stored = saver.saver

    def has_tables(self) -> bool:
        return self._stored.has_tables()

    def refs(self) -> list[CheckpointRef]:
        """Return all checkpoints except the messages of conversations, which `messages.py` moves."""
        return [ref for ref in self._stored.list_checkpoint_refs() if ref.ns != MESSAGES_NS]

    def orders(self, ref: CheckpointRef, found: CheckpointTuple) -> Orders:
        """Return the orders as they are stored: a task that writes after this move has its place among the others."""
        stored = self._stored
        if not found.pending_writes or not isinstance(stored, Saver):  # a proxy does not return task paths
            return super().orders(ref, found)
        store = stored._context.store  # noqa: SLF001 - no public method returns task paths and places
        rows = run(stored._driver, reading(store.writes, ref.thread_id, [(ref.ns, ref.id)]))  # noqa: SLF001 - see above
        return _orders((row.task_id, row.task_path, row.idx) for row in proven_batches(ref.thread_id, rows))

    def orphan_writes(self) -> list[CheckpointRef]:
        return list(self._stored.list_orphan_writes())

    def ranks(self) -> Ranks:
        """Return the ranks that are not ids: some follow from checkpoints that were removed, or are no parents."""
        stored = self._stored
        if not isinstance(stored, Saver):
            return {}
        return run(stored._driver, _ranks_in(stored._context.store))  # noqa: SLF001 - no public method returns ranks


def _orders(places: Iterable[tuple[str, str, int]]) -> Orders:
    """Return the orders of tasks from the ids, paths and places of their writes."""
    paths: dict[str, str] = {}
    ordinary: dict[str, list[int]] = {}
    for task_id, path, place in places:
        paths[task_id] = path
        ordinary.setdefault(task_id, []).extend([place] if place >= 0 else [])
    return {task_id: TaskOrder(path, tuple(sorted(ordinary[task_id]))) for task_id, path in paths.items()}


def _ranks_in(store: Store) -> Operation[Ranks]:
    ranks: dict[tuple[str, str, str], str] = {}
    pages = Pages(Scope(), _PAGE)
    while pages.more:
        page = pages.read((yield from read_existing(store.page, *pages.request)))
        ranks.update({(each.thread_id, each.ns, each.id): each.rank for each in page if each.rank != each.id})
    return ranks


def _ref_to(found: CheckpointTuple) -> CheckpointRef:
    identity = found.config["configurable"]
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    return CheckpointRef(str(identity["thread_id"]), identity["checkpoint_ns"], identity["checkpoint_id"], parent)


class _Borrowed(AbstractContextManager[Any]):
    """A cursor on a connection of a pool."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._borrowed = self._pool.connection()
        return self._borrowed.__enter__().cursor()

    def __exit__(self, *error: object) -> None:
        self._borrowed.__exit__(*error)
