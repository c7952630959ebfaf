"""The store operations in SQL. A thread has a small number, so that its long name is stored in one row only."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from threadmark.backends import (
    MESSAGES_NS,
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Program,
    ReplicaStore,
    Scope,
    UpgradeReport,
    WriteRow,
    deleted_up_to,
    nothing_held,
    to_column,
)
from threadmark_sqlite import migrations
from threadmark_sqlite.adding import (
    added,
    admitted,
    insert,
    old_headers,
    remove_checkpoints,
    thread_of,
    twice,
)
from threadmark_sqlite.at_once import Adder
from threadmark_sqlite.columns import (
    as_number,
    checkpoint_row,
    found_of,
    from_blob_column,
    from_id_column,
    from_text_column,
    id_column,
    name,
    outline,
    rewriting_columns,
    write_rows,
    writes_of,
)
from threadmark_sqlite.placeholders import chunks, with_pairs, with_placeholders
from threadmark_sqlite.replica_store import SqliteReplicaStore, noted
from threadmark_sqlite.sql import adding, finding, listing, removing, reports
from threadmark_sqlite.steps import Direct, execute, execute_alone, executemany
from threadmark_sqlite.thread_store import SqliteThreadStore


class SqliteStore(SqliteThreadStore, SqliteReplicaStore, ReplicaStore):
    """The rows of every saver on one database."""

    longest_pack = 800  # a row with its key that exceeds 1,002 bytes takes an extra page of 4 KB

    def __init__(self) -> None:
        self._add_at_once = Adder()
        """Does the work of `add` in ordinary cases."""

    def find(
        self,
        thread_id: str,
        ns: str,
        checkpoint_id: str | None,
        held: Callable[[], str | None] = nothing_held,  # noqa: ARG002 - segments never come along here
    ) -> Program[Found | None]:
        thread, namespace = to_column(thread_id), to_column(ns)
        if checkpoint_id is None:
            rows = yield from execute_alone(finding.FIND_NEWEST, (thread, namespace) * 3)
            if not rows:
                rows = yield from execute(finding.FIND_NEWEST_WITHOUT_HEAD, (thread, namespace))
        else:
            asked = (thread, namespace, id_column(checkpoint_id))
            rows = yield from execute_alone(finding.FIND, (thread, namespace, *twice(checkpoint_id), *asked, *asked))
            if rows and rows[0][0] is None:  # the change only has writes
                return None
        if not rows:
            return None
        found = found_of(thread_id, ns, rows, checkpoint_id is None)
        if checkpoint_id is not None or found.row is None:
            return found
        found_id = found.row.outline.id
        if rows[0][1] == (column := id_column(found_id)):
            return found
        asked = (thread, namespace, column)  # the writes of the change belong to another checkpoint
        writes = yield from execute(finding.WRITES_OF_CHECKPOINT, (*asked, *asked))
        return found._replace(writes=writes_of(ns, found_id, writes))

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        found: dict[bytes, bytes] = {}
        for some in chunks(keys):
            rows = yield from execute(with_placeholders(finding.SEGMENTS, some), (to_column(thread_id), *some))
            found.update((key, from_blob_column(data)) for key, data in rows)
        return found

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        columns = {to_column(thread_id): thread_id for thread_id in thread_ids}
        namespace = to_column(ns)
        found: dict[str, Found] = {}
        for some in chunks(list(columns)):
            rows = yield from execute(with_placeholders(finding.NEWEST_OF_THREADS, some), (namespace, *some))
            found.update((columns[row[0]], found_of(columns[row[0]], ns, [row[1:]])) for row in rows)
        for column, thread_id in columns.items():
            if thread_id not in found:
                rows = yield from execute(finding.FIND_NEWEST_WITHOUT_HEAD, (column, namespace))
                found.update((thread_id, found_of(thread_id, ns, [row])) for row in rows)
        return found

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        found: dict[str, dict[bytes, bytes]] = {thread_id: {} for thread_id in requested}
        columns = {to_column(thread_id): thread_id for thread_id in requested}
        pairs = [(column, key) for column, thread_id in columns.items() for key in requested[thread_id]]
        for some in chunks(pairs):
            rows = yield from execute(with_pairs(finding.SEGMENTS_OF_THREADS, some), tuple(chain.from_iterable(some)))
            for column, key, data in rows:
                found[columns[column]][key] = from_blob_column(data)
        return found

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        clauses, params = _clauses(scope, after)
        rows = yield from execute(listing.PAGE.format(clauses=" AND ".join(clauses)), (*params, limit))
        return [outline(name(thread_id), columns) for thread_id, *columns in rows]

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        clauses, params = _clauses(scope, after)
        rows = yield from execute(listing.PAGE_OF_ROWS.format(clauses=" AND ".join(clauses)), (*params, limit))
        return [checkpoint_row(name(thread_id), columns) for thread_id, *columns in rows]

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        found: list[CheckpointRow] = []
        for ns, ids in _by_namespace(keys):
            for some in chunks([to_column(one) for one in ids]):
                asked = (to_column(thread_id), to_column(ns), *some)
                rows = yield from execute(with_placeholders(listing.ROWS, some), (*asked, *asked))
                found += [checkpoint_row(thread_id, columns) for columns in rows]
        return found

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        thread = to_column(thread_id)
        if keys is None:
            rows = yield from execute(listing.WRITES_OF_THREAD, (thread, thread))
            return write_rows(rows)
        found: list[WriteRow] = []
        for ns, ids in _by_namespace(keys):
            for some in chunks([id_column(one) for one in ids]):
                asked = (thread, to_column(ns), *some)
                rows = yield from execute(with_placeholders(listing.WRITES_OF_CHECKPOINTS, some), (*asked, *asked))
                found += write_rows(rows)
        return found

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        thread, namespace = to_column(thread_id), to_column(ns)
        if checkpoint_id is None:
            rows = yield from execute(listing.CHAIN_OF_NEWEST, (thread, namespace, limit))
        else:
            rows = yield from execute(listing.CHAIN, (thread, namespace, *twice(checkpoint_id), limit))
        return [checkpoint_row(thread_id, columns) for columns in rows]

    def epoch(self, thread_id: str) -> Program[int | None]:
        thread = yield from thread_of(thread_id)
        return thread.epoch if thread is not None and thread.live else None

    def lock(self, thread_id: str) -> Program[int | None]:
        return self.epoch(thread_id)  # no other transaction writes during this one

    def add(self, change: Change) -> Program[Added]:
        made: Added | None = yield Direct(self._add_at_once, change)
        return made if made is not None else (yield from _add(change))

    def replace(self, change: Change) -> Program[Added]:
        admission = yield from admitted(change, replaces=True)
        if isinstance(admission, Added):
            return admission
        thread = admission.thread
        old = yield from old_headers(thread.number, change.checkpoints)
        keys = [(thread.number, to_column(ns), *twice(checkpoint_id)) for ns, checkpoint_id in old]
        yield from remove_checkpoints(to_column(change.thread_id), keys)
        rows = change.checkpoints
        replaced = any(old.get(row.outline.key, row.header) != row.header for row in rows)
        if replaced:
            yield from execute(removing.NEXT_EPOCH, ("", thread.number))
        made = added(admission, change, (yield from insert(thread, change)), replaced=replaced)
        return (yield from noted(change, made))

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        ((thread, *_),) = yield from execute(adding.THREAD, (to_column(thread_id),))
        yield from executemany(removing.REWRITE_CHECKPOINT, [rewriting_columns(thread, row) for row in rows])

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._heads(listing.HEADS, listing.HEADS_OF_NAMESPACE, thread_id, ns)

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._heads(listing.COUNTED_HEADS, listing.COUNTED_OF_NAMESPACE, thread_id, ns)

    def damage(self) -> Program[list[tuple[str, str]]]:
        """Return rows whose thread is missing, and the results of SQLite's own check of pages and indexes.

        Also returned are threads without the head that lists them, or whose row lacks its minute.
        """
        lost = yield from execute(reports.LOST_ROWS)
        found = [(f"table {table}", f"{count} rows belong to no thread") for table, count in lost if count]
        ((unlisted, misplaced),) = yield from execute(reports.UNLISTED)
        if unlisted:
            found.append(
                ("table threadmark_head", f"{unlisted} threads are in no listing: their rows are missing here")
            )
        if misplaced:
            found.append(("table threadmark_thread", f"{misplaced} threads are listed at a wrong time"))
        structure = yield from execute(reports.CHECK_STRUCTURE)
        return found + [("the database file", str(line)) for (line,) in structure if line != "ok"]

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        rows = yield from execute(finding.SEGMENT_SIZES, (to_column(thread_id),))
        return {key: size for key, size in rows if isinstance(key, bytes)}  # a damaged column may have any type

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        ((thread, epoch, *_),) = yield from execute(adding.THREAD, (to_column(thread_id),))
        locations = [(thread, to_column(ns), checkpoint_id) for ns, checkpoint_id in keys]
        yield from remove_checkpoints(to_column(thread_id), [(*location, *twice(key)) for *location, key in locations])
        written_for = [(*location, id_column(key)) for *location, key in locations]
        yield from executemany(removing.REMOVE_WRITES, written_for)
        yield from executemany(removing.REMOVE_RECORDS, written_for)
        yield from executemany(removing.REMOVE_SEGMENT, [(thread, key) for key in segments])
        gone = max((checkpoint_id for ns, checkpoint_id in keys if ns != MESSAGES_NS), default="")
        yield from execute(removing.NEXT_EPOCH, (to_column(gone), thread))
        return as_number(epoch) + 1

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        thread = yield from thread_of(thread_id)
        if thread is None:
            return None
        number = thread.number
        greatest = yield from execute(removing.GREATEST_IDS, (number, number))
        written = yield from execute(removing.WRITTEN_FOR, (number,))
        ids = [from_id_column(column) for (column,) in written]
        ids += [from_text_column(column) for (column,) in (*greatest, (thread.deleted_up_to,)) if column is not None]
        for statement in removing.EMPTY_THREAD:
            yield from execute(statement, (number,))
        yield from execute(removing.REMOVE_HEADS, (to_column(thread_id),))
        yield from execute(removing.BURY_THREAD, (to_column(deleted_up_to(ids, now)), now, number))
        yield from execute(removing.FORGET_BURIED, (now - TOMBSTONE_MICROSECONDS,))
        return thread.epoch if thread.live else None

    def copy_segments(self, source: str, target: str) -> Program[None]:
        yield from execute(adding.COPY_SEGMENTS, (to_column(source), to_column(target)))

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        rows = yield from execute(listing.THREADS, (to_column(after), to_column(after), limit))
        return [from_text_column(thread_id) for (thread_id,) in rows]

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        rows = yield from execute(reports.SAMPLE)
        return (from_blob_column(rows[0][0]), from_blob_column(rows[0][1])) if rows else None

    def upgrade(self, *, dry_run: bool) -> Program[UpgradeReport]:
        return migrations.upgrade(dry_run=dry_run)

    def has_only_langgraph_data(self) -> Program[bool]:
        ((tables,),) = yield from execute(reports.LANGGRAPH_TABLES)
        return bool(tables) and bool((yield from execute(reports.HAS_ONLY_LANGGRAPH_DATA)))

    def _heads(self, statement: str, of_namespace: str, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        asked = {listing.HEADS_OF_THREAD: thread_id, of_namespace: ns}
        clauses = {clause: to_column(name) for clause, name in asked.items() if name is not None}
        rows = yield from execute(
            statement.format(clauses=" AND ".join([listing.HEADS_OF_ALL, *clauses])), tuple(clauses.values())
        )
        return [
            Head(from_text_column(name), from_text_column(ns), from_text_column(rank), n) for name, ns, rank, n in rows
        ]


def _by_namespace(keys: Sequence[Key]) -> Iterable[tuple[str, list[str]]]:
    """Return the ids of checkpoints by namespace."""
    ids: dict[str, list[str]] = {}
    for ns, checkpoint_id in keys:
        ids.setdefault(ns, []).append(checkpoint_id)
    return ids.items()


def _clauses(scope: Scope, after: Outline | None) -> tuple[list[str], list[Any]]:
    clauses: list[str] = [listing.PAGE_ALL]
    params: list[Any] = []
    if scope.thread_id is not None:
        clauses.append(listing.PAGE_OF_THREAD)
        params.append(to_column(scope.thread_id))
    if scope.ns is not None:
        clauses.append(listing.PAGE_OF_NAMESPACE)
        params.append(to_column(scope.ns))
    if scope.checkpoint_id is not None:
        clauses.append(listing.PAGE_WITH_ID)
        params.extend(twice(scope.checkpoint_id))
    if scope.before is not None:
        clauses.append(listing.PAGE_BEFORE)
        params.append(to_column(scope.before))
    if scope.owner is not None:
        clauses.append(listing.PAGE_OF_OWNER)
        params.append(to_column(scope.owner))
    for fragment in scope.fragments:
        clauses.append(listing.PAGE_WITH_FRAGMENT)
        params.append(fragment)
    if after is not None:
        clauses.append(listing.PAGE_AFTER)
        params.extend(map(to_column, (after.rank, after.thread_id, after.ns)))
    return clauses, params


def _add(change: Change) -> Program[Added]:
    admission = yield from admitted(change, replaces=False)
    if isinstance(admission, Added):
        return admission
    made = added(admission, change, (yield from insert(admission.thread, change)))
    if change.entry is None and change.copied is None:
        return made
    return (yield from noted(change, made))
