"""The backends that LangGraph's face is tested on; each opens checkpointers on the data of one test."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from threadmark_langgraph import Checkpointer, InMemorySaver, SqliteSaver


class Backend(NamedTuple):
    """A name, and what opens a checkpointer on the database of one test."""

    name: str
    open: Callable[[Path], Checkpointer]
    lasting: bool = True
    """Whether a second checkpointer opened on the same folder finds what the first stored."""


def _memory(folder: Path) -> Checkpointer:  # noqa: ARG001 - nothing to keep
    return InMemorySaver()


def _sqlite(folder: Path) -> Checkpointer:
    folder.mkdir(exist_ok=True)
    return SqliteSaver(folder / "checkpoints.db")


BACKENDS = [Backend("memory", _memory, lasting=False), Backend("sqlite", _sqlite)]
"""A new backend plugs in here, and every test of this face runs on it."""
