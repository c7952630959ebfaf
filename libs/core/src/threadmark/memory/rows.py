"""The tables as plain tuples, one entry for each thread, and back: what a memory saver keeps in a file.

What is known of a pair is an entry without a name, where there is a pair.

A thread that was deleted is among them for as long as the tables remember it. Of a lease only its token and who had it
is kept: it is over when the file is opened again, and the next token is greater.
"""

from typing import Any

from threadmark.memory.tables import Lease, Tables, Thread
from threadmark.replica_store import Copied, Replica
from threadmark.store import CheckpointRow, Outline, WriteRow
from threadmark.thread_store import LeaseRow, ThreadRow

ThreadEntry = tuple[str | None, tuple[Any, ...]]
"""A thread's id, and the rest of it: text, bytes, numbers, None, and tuples of these. None for what no thread has."""


def entries(tables: Tables) -> list[ThreadEntry]:
    """Return everything in the tables."""
    replica = tables.pair["replica"]
    pair: list[ThreadEntry] = [(None, tuple(replica))] if replica.term else []
    return pair + [(thread_id, _entry(thread)) for thread_id, thread in tables.threads.items()]


def tables_of(stored: list[ThreadEntry]) -> Tables:
    """Return the tables that hold these entries."""
    tables = Tables()
    for thread_id, entry in stored:
        if thread_id is None:
            tables.pair["replica"] = Replica(*entry)
        else:
            tables.threads[thread_id] = _thread(thread_id, *entry)
    return tables


def _entry(thread: Thread) -> tuple[Any, ...]:
    lease = thread.lease.row
    return (
        thread.epoch,
        thread.live,
        (thread.deleted_up_to, thread.removed_up_to),
        tuple(thread.row),
        thread.updated_at,
        (lease.token, lease.holder, lease.began),
        tuple((*row.outline, row.header, row.check, row.run_id) for row in thread.checkpoints.values()),
        tuple(tuple(row) for row in thread.writes.values()),
        tuple(thread.segments.items()),
        *_replicated(thread),
    )


def _replicated(thread: Thread) -> tuple[Any, ...]:
    """What is kept of a thread for replication; nothing of most."""
    if not thread.position and thread.copied is None:
        return ()
    return thread.position, thread.copied and tuple(thread.copied), tuple(thread.outbox.items())


def _thread(
    thread_id: str,
    epoch: int,
    live: bool,  # noqa: FBT001 - a part of an entry, in their order
    up_to: tuple[str, str],
    row: tuple[Any, ...],
    updated_at: int,
    lease: tuple[int, str, str | None],
    checkpoints: tuple[tuple[Any, ...], ...],
    writes: tuple[tuple[Any, ...], ...],
    segments: tuple[tuple[bytes, bytes], ...],
    position: int = 0,
    copied: tuple[int, int] | None = None,
    outbox: tuple[tuple[int, bytes], ...] = (),
    /,
) -> Thread:
    deleted_up_to, removed_up_to = up_to
    thread = Thread(thread_id, epoch, live=live, deleted_up_to=deleted_up_to)
    thread.state["removed_up_to"] = removed_up_to
    token, holder, began = lease
    thread.state["row"] = ThreadRow(*row)
    thread.state["updated"] = updated_at
    thread.state["lease"] = Lease(LeaseRow(token, 0, holder, began), ttl=0, ends=0)
    for *outline, header, check, run_id in checkpoints:
        checkpoint = CheckpointRow(Outline(*outline), header, check, run_id)
        thread.checkpoints[checkpoint.outline.key] = checkpoint
    for each in writes:
        write = WriteRow(*each)
        thread.writes[write.ns, write.checkpoint_id, write.task_id, write.idx] = write
    thread.segments = dict(segments)
    thread.state["position"] = position
    thread.state["copied"] = copied and Copied(*copied)
    thread.outbox = dict(outbox)
    return thread
