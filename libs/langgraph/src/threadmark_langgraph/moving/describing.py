"""The description of a thread (owner, title, metadata, expiry), which also moves between two Threadmark savers."""

from collections.abc import Container, Iterator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from threadmark.types import UNSET, ThreadInfo
from threadmark_langgraph.checkpointer import Checkpointer

_PAGE = 500


def describe(source: BaseCheckpointSaver[Any], target: BaseCheckpointSaver[Any], thread_id: str) -> None:
    """Create a thread in the target with the source's description, unless the target already has the thread.

    This comes before the first checkpoint, so that a move that is stopped leaves no thread without its owner.
    """
    if not isinstance(source, Checkpointer) or not isinstance(target, Checkpointer):
        return
    found = source.saver.get_thread(thread_id)
    if found is None or not (found.owner or found.title is not None or found.metadata or found.expires_at):
        return
    if target.saver.get_thread(thread_id) is None:
        create(target, found)


def create(target: Checkpointer, found: ThreadInfo) -> None:
    """Create a thread with the description of another one."""
    target.saver.create_thread(
        found.id,
        title=found.title,
        metadata=found.metadata,
        owner=found.owner or UNSET,
        expires_at=found.expires_at or UNSET,
    )


def threads_except(saver: Checkpointer, known: Container[str]) -> Iterator[ThreadInfo]:
    """Yield the threads that have no checkpoint and are not among the known ones."""
    cursor = None
    while True:
        page = saver.saver.list_threads(sort="id", limit=_PAGE, cursor=cursor)
        yield from (each for each in page.threads if each.id not in known and not each.checkpoints)
        if (cursor := page.cursor) is None:
            return
