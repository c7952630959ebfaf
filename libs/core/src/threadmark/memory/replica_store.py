"""The operations for replication, on dictionaries."""

from collections.abc import Sequence

from threadmark.memory.tables import Tables, Thread, newest, with_tables
from threadmark.program import Program
from threadmark.store.contract import now
from threadmark.store.replica import (
    LONG_MARK,
    Copied,
    Entry,
    Replica,
    RowMarks,
    Summary,
    Waiting,
    mark_of,
    sum_of_marks,
)


class MemoryReplicaStore:
    """The operations for replication, on dictionaries."""

    def replica(self) -> Program[Replica]:
        return with_tables(lambda tables: tables.pair["replica"])

    def set_replica(self, replica: Replica) -> Program[Replica]:
        def call(tables: Tables) -> Replica:
            if replica.term >= tables.pair["replica"].term:
                tables.set(tables.pair, "replica", replica)
            return tables.pair["replica"]

        return with_tables(call)

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        def call(tables: Tables) -> int | None:
            if tables.pair["replica"].term > term:
                return None
            return add_entry(tables, _thread(tables, thread_id), body)

        return with_tables(call)

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        def call(tables: Tables) -> list[Entry]:
            some = tables.threads if thread_id is None else {thread_id} & tables.threads.keys()
            entries = [Entry(name, *item) for name in some for item in tables.threads[name].outbox.items()]
            return sorted(entries, key=lambda entry: (entry.position, entry.thread_id))[:limit]

        return with_tables(call)

    def waiting(self) -> Program[Waiting]:
        def call(tables: Tables) -> Waiting:
            positions = [position for thread in tables.threads.values() for position in thread.outbox]
            return Waiting(len(positions), min(positions, default=0))

        return with_tables(call)

    def settle(self, thread_id: str, position: int) -> Program[None]:
        def call(tables: Tables) -> None:
            outbox = tables.threads[thread_id].outbox if thread_id in tables.threads else {}
            for each in [each for each in outbox if each <= position]:
                tables.unset(outbox, each)

        return with_tables(call)

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        def call(tables: Tables) -> dict[str, int]:
            known = {name: tables.threads[name].position for name in thread_ids if name in tables.threads}
            return {name: position for name, position in known.items() if position}

        return with_tables(call)

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        def call(tables: Tables) -> dict[str, Copied]:
            known = {name: tables.threads[name].state["copied"] for name in thread_ids if name in tables.threads}
            return {name: copied for name, copied in known.items() if copied is not None}

        return with_tables(call)

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        return with_tables(lambda tables: tables.set(_thread(tables, thread_id).state, "copied", copied))

    def marks(self, thread_id: str) -> Program[RowMarks]:
        def call(tables: Tables) -> RowMarks:
            thread = tables.threads.get(thread_id) or Thread(thread_id, 0, live=False)
            rows = thread.checkpoints.items()
            return RowMarks(
                {key: (row.outline.rank, (row.check or row.header)[-LONG_MARK:]) for key, row in rows},
                {row[:4]: (row.check or row.value)[-LONG_MARK:] for row in thread.every_write},
                {key: (len(data), data[-LONG_MARK:]) for key, data in thread.segments.items()},
            )

        return with_tables(call)

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        def call(tables: Tables) -> list[Summary]:
            names = sorted(name for name, thread in tables.threads.items() if thread.live and name > after)
            return [_summary(tables.threads[name]) for name in names[:limit]]

        return with_tables(call)


def add_entry(tables: Tables, thread: Thread, body: bytes) -> int:
    """Add an entry to the outbox. Returns its position."""
    position = max(thread.position + 1, now())
    tables.set(thread.state, "position", position)
    tables.set(thread.outbox, position, body)
    return position


def _thread(tables: Tables, thread_id: str) -> Thread:
    """A thread, which is made, but not live, if there is none."""
    if thread_id not in tables.threads:
        tables.set(tables.threads, thread_id, Thread(thread_id, now(), live=False))
    return tables.threads[thread_id]


def _summary(thread: Thread) -> Summary:
    row = newest(thread, "")
    marks = [mark_of(each.check, each.header) for each in thread.checkpoints.values()]
    marks += [mark_of(each.check, each.value) for each in thread.every_write]
    return Summary(
        thread.row.thread_id,
        thread.epoch,
        thread.position,
        row.outline.rank if row else "",
        len(thread.checkpoints),
        sum(map(len, thread.writes.values())),
        sum_of_marks([*marks, mark_of(thread.row.check)]),
    )
