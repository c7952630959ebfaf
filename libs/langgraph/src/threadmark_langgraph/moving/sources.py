"""What is to be moved.

The checkpoints of LangGraph's own savers are found by their tables, those of ours by their outlines, so that one that
cannot be read hides no other. Any other saver lists them.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from threadmark import Saver
from threadmark.program import Operation, Transaction, run
from threadmark.store import Outline as StoredOutline
from threadmark.store import Scope, Store
from threadmark_langgraph.checkpointer import Checkpointer
from threadmark_langgraph.sends import lacks_sends, with_sends

T = TypeVar("T")


class Outline(NamedTuple):
    """A checkpoint's place, and its parent."""

    thread_id: str
    ns: str
    id: str
    parent: str | None

    def config(self, checkpoint_id: str | None) -> RunnableConfig:
        """The configuration of a checkpoint in the same namespace; None names no checkpoint."""
        configurable = {"thread_id": self.thread_id, "checkpoint_ns": self.ns}
        return {"configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


class Source(Protocol):
    """Where checkpoints come from."""

    def outlines(self) -> list[Outline]:
        """All checkpoints, in any order."""

    def paths(self, outline: Outline, found: CheckpointTuple) -> dict[str, str]:
        """The task path of each task whose writes are pending, as far as it is known."""

    def strays(self) -> list[Outline]:
        """Checkpoints that are not there, though writes of theirs are; as far as it is known."""


def read(saver: BaseCheckpointSaver[Any], outline: Outline) -> CheckpointTuple | None:
    """The checkpoint, in an old format with its packets: some of LangGraph's savers leave them with the parent."""
    found = saver.get_tuple(outline.config(outline.id))
    if found is None or found.parent_config is None or not lacks_sends(found):
        return found
    return with_sends(found, saver.get_tuple(found.parent_config))


def source_of(saver: BaseCheckpointSaver[Any]) -> Source:
    """The way to read this saver that keeps most of what it holds."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(saver).__mro__}
    if "langgraph.checkpoint.sqlite.SqliteSaver" in names:
        return _Tables(lambda: saver.cursor(transaction=False), "writes", "?")  # type: ignore[attr-defined]  # checked by its name
    if "langgraph.checkpoint.postgres.PostgresSaver" in names:
        return _Tables(lambda: _postgres_cursor(saver), "checkpoint_writes", "%s")
    return _Outlined(saver) if isinstance(saver, Checkpointer) else _Listed(saver)


class _Tables:
    """The tables of LangGraph's savers for SQLite and Postgres, which have the same columns."""

    def __init__(self, cursor: Any, writes: str, mark: str) -> None:
        self._cursor = cursor
        self._paths = (
            f"SELECT DISTINCT task_id, task_path FROM {writes} "
            f"WHERE thread_id = {mark} AND checkpoint_ns = {mark} AND checkpoint_id = {mark}"
        )
        self._strays = (
            f"SELECT DISTINCT thread_id, checkpoint_ns, checkpoint_id FROM {writes} WHERE NOT EXISTS "
            f"(SELECT 1 FROM checkpoints WHERE checkpoints.thread_id = {writes}.thread_id "
            f"AND checkpoints.checkpoint_ns = {writes}.checkpoint_ns "
            f"AND checkpoints.checkpoint_id = {writes}.checkpoint_id) ORDER BY 1, 2, 3"
        )

    def outlines(self) -> list[Outline]:
        return [Outline(*row) for row in self._rows(_CHECKPOINTS)]

    def paths(self, outline: Outline, found: CheckpointTuple) -> dict[str, str]:
        if not found.pending_writes:
            return {}
        return dict(self._rows(self._paths, outline[:3]))

    def strays(self) -> list[Outline]:
        return [Outline(thread_id, ns, gone, None) for thread_id, ns, gone in self._rows(self._strays)]

    def _rows(self, statement: str, values: Iterable[str] = ()) -> Iterator[tuple[Any, ...]]:
        with self._cursor() as cursor:
            rows = cursor.execute(statement, tuple(values)).fetchall()
        # The connection is the user's, and so is the shape of its rows.
        yield from (tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows)


def holds_checkpoints(path: str) -> bool:
    """Whether this file is a SQLite database with LangGraph's tables."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute(_TABLE).fetchone() is not None
        except sqlite3.OperationalError:
            raise  # locked, for example
        except sqlite3.DatabaseError:
            return False


_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'checkpoints'"
_CHECKPOINTS = "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints"


class _Listed:
    """Any saver, through LangGraph's interface, which does not tell task paths."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self._saver = saver

    def outlines(self) -> list[Outline]:
        return [_outline(found) for found in self._saver.list(None)]

    def paths(self, outline: Outline, found: CheckpointTuple) -> dict[str, str]:  # noqa: ARG002 - as the protocol has it
        tasks = list(dict.fromkeys(task_id for task_id, _, _ in found.pending_writes or ()))
        # Where the order is not that of the tasks' ids it came from their paths: any that keep it will do.
        return {} if tasks == sorted(tasks) else {task_id: f"{place:08d}" for place, task_id in enumerate(tasks)}

    def strays(self) -> list[Outline]:
        return []


class _Outlined(_Listed):
    """A Threadmark saver."""

    def __init__(self, saver: Checkpointer) -> None:
        super().__init__(saver)
        self._stored = saver.saver

    def outlines(self) -> list[Outline]:
        return _run(self._stored, _outlines)

    def strays(self) -> list[Outline]:
        return _run(self._stored, _strays)


def _run(saver: Saver, operation: Callable[[Store], Operation[T]]) -> T:
    return run(saver._driver, operation(saver._kit.store))  # noqa: SLF001 - no method of a saver reads outlines alone


def _outlines(store: Store) -> Operation[list[Outline]]:
    found: list[Outline] = []
    last: StoredOutline | None = None
    more = True
    while more:
        page = yield Transaction(partial(store.page, Scope(), last, _PAGE), writes=False)
        found += [Outline(each.thread_id, each.ns, each.id, each.parent) for each in page]
        more, last = len(page) == _PAGE, page[-1] if page else None
    return found


def _strays(store: Store) -> Operation[list[Outline]]:
    written: set[tuple[str, str, str]] = set()
    threads: list[str] = [""]
    while threads:
        threads = yield Transaction(partial(store.threads, threads[-1], _PAGE), writes=False)
        for thread_id in threads:
            rows = yield Transaction(partial(store.writes, thread_id, None), writes=False)
            written.update((thread_id, row.ns, row.checkpoint_id) for row in rows)
    # Looked for last, so that a checkpoint that has just come is none.
    there = {outline[:3] for outline in (yield from _outlines(store))}
    return [Outline(*place, None) for place in sorted(written - there)]


_PAGE = 4096


def _outline(found: CheckpointTuple) -> Outline:
    place = found.config["configurable"]
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    return Outline(str(place["thread_id"]), place["checkpoint_ns"], place["checkpoint_id"], parent)


class _Borrowed(AbstractContextManager[Any]):
    """A cursor on a connection of a pool."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        self._lent = self._pool.connection()
        return self._lent.__enter__().cursor()

    def __exit__(self, *error: object) -> None:
        self._lent.__exit__(*error)


def _postgres_cursor(saver: Any) -> Any:
    return _Borrowed(saver.conn) if hasattr(saver.conn, "getconn") else saver.conn.cursor()
