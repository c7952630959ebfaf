"""LangGraph's own savers, each on new data of one test, and checkpoints to put into any saver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite

from langgraph_parity.backends import cluster
from threadmark import new_id


def location(thread_id: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def new_database(folder: Path) -> str:
    """The URL of a Postgres database without tables."""
    return cluster().database("new" + "".join(filter(str.isalnum, folder.name)).lower())


@contextmanager
def their_sqlite(folder: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """LangGraph's saver on a new file."""
    with TheirSqlite.from_conn_string(str(folder / "theirs.db")) as saver:
        yield saver


@contextmanager
def their_postgres(folder: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """LangGraph's saver on a new database."""
    name = "theirs" + "".join(filter(str.isalnum, folder.name))
    with TheirPostgres.from_conn_string(cluster().database(name.lower())) as saver:
        saver.setup()
        yield saver


@contextmanager
def their_memory(folder: Path) -> Iterator[BaseCheckpointSaver[Any]]:  # noqa: ARG001 - it needs none
    """LangGraph's saver in memory, of which only the public interface is used."""
    yield TheirMemory()


THEIRS: list[Callable[[Path], Any]] = [their_sqlite, their_postgres, their_memory]


def checkpoint(values: dict[str, Any], version: int = 1) -> Checkpoint:
    """A checkpoint of which every channel has this version."""
    versions: Any = dict.fromkeys(values, version)
    return {**empty_checkpoint(), "v": 4, "id": new_id(), "channel_values": values, "channel_versions": versions}


def store(saver: BaseCheckpointSaver[Any], config: Any, stored: Checkpoint) -> Any:
    """Put a checkpoint whose values are all new; its config."""
    return saver.put(config, stored, {"step": 0}, stored["channel_versions"])


def channels(saver: BaseCheckpointSaver[Any], config: Any) -> Any:
    """The values of the checkpoint that this config names."""
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]
