"""Moving messages of conversations between two Threadmark savers. LangGraph's savers have no place for them."""

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from threadmark import Conversations
from threadmark.interfaces.operations.conversations import message_in
from threadmark.names import MESSAGES_NS
from threadmark.types import CheckpointRef
from threadmark_langgraph.checkpointer import Checkpointer

NO_PLACE = "it is the last message of a conversation, and LangGraph's savers have no place for messages"

_BATCH = 100


def message_refs(saver: Any) -> list[CheckpointRef]:
    """Return the messages of a saver; none unless it is a Threadmark saver."""
    if not isinstance(saver, Checkpointer):
        return []
    return [ref for ref in saver.saver.list_checkpoint_refs() if ref.ns == MESSAGES_NS]


def last_of_each(refs: Collection[CheckpointRef], source: Checkpointer) -> Iterator[CheckpointRef]:
    """Return the last message of each thread, which stands for all of them if they cannot be moved."""
    for thread_id in sorted({ref.thread_id for ref in refs}):
        found = next(source.saver.list(_config(thread_id), limit=1), None)
        if found is not None:
            yield CheckpointRef(thread_id, MESSAGES_NS, found.checkpoint["id"], None)


def move_messages(source: Checkpointer, target: Checkpointer, thread_id: str, there: Collection[str]) -> int:
    """Append the messages of a thread that the target lacks, in their order. Returns how many."""
    found = [each for each in source.saver.list(_config(thread_id)) if each.checkpoint["id"] not in there]
    conversations = Conversations(target.saver)
    for run_id, of_run in groupby(reversed(found), key=lambda each: each.metadata.get("run_id")):
        messages = [message_in(each) for each in of_run]
        for start in range(0, len(messages), _BATCH):
            conversations.put_messages({"thread_id": thread_id, "run_id": run_id}, messages[start : start + _BATCH])
    return len(found)


def _config(thread_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": MESSAGES_NS}}
