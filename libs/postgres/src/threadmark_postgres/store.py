"""The store operations in SQL: one statement if possible, because each is a round trip."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from threadmark.backends import (
    TOMBSTONE_MICROSECONDS,
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
    all_held,
    from_column,
    greatest_id,
    nothing_held,
    to_column,
)
from threadmark_postgres import migrations
from threadmark_postgres.adding import BEGIN, AddingStore, keys_as_arrays
from threadmark_postgres.arrays import Blobs, Texts
from threadmark_postgres.columns import (
    checkpoint_columns,
    checkpoint_row,
    from_id_column,
    from_optional,
    optional,
    outline,
    run_number,
    write_row,
)
from threadmark_postgres.replica_store import PostgresReplicaStore
from threadmark_postgres.sql import adding, finding, listing, removing, reports, threads

_CHECKPOINT, _WRITE, _SEGMENT, _HEAD = range(4)
"""The kinds of rows that `functions/find_1.sql` gives."""

_DELETIONS = 25
"""Every so many deletions, one removes marks of threads that were deleted a day ago. On Citus that asks every node."""


class PostgresStore(AddingStore, PostgresReplicaStore, ReplicaStore):
    """The rows of every saver in one schema. None is the first schema of the connection's search path."""

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        """One call of a server function. It returns all segments of the newest checkpoint, unless that is held."""
        namespace, alone = to_column(ns), held is all_held
        known = optional(held()) if checkpoint_id is None and not alone else None
        asked = to_column(thread_id), namespace, optional(checkpoint_id), known, "rows" if alone else None
        # The header's segments of an older checkpoint name others, which the next statement reads.
        likely_last = alone or checkpoint_id is None
        rows = yield from self._execute(finding.FIND, *asked, likely_last=likely_last)
        found = newest = owner = None
        writes: list[WriteRow] = []
        segments: dict[bytes, bytes] = {}
        for kind, *columns in rows:
            _, channel, rank, _, idx, _, body, check, *_, task_id, _, head_owner, _ = columns
            if kind == _SEGMENT:
                segments[check] = body
            elif kind == _CHECKPOINT:
                found = columns
            elif kind == _HEAD:
                newest, owner = from_column(rank), from_optional(head_owner)
            else:
                task = (from_id_column(task_id), idx, from_column(rank), from_column(channel))
                writes.append(WriteRow(ns, "", *task, body, check))
        if found is None:
            return None if newest is None else Found(0, None, (), {}, newest, owner)
        *of_row, _, epoch, owner, expires_at = found
        row = checkpoint_row(thread_id, of_row)
        writes = [write._replace(checkpoint_id=row.outline.id) for write in writes]
        return Found(epoch, row, writes, segments, newest, from_optional(owner), expires_at)

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        """One statement, whatever their number."""
        rows = yield from self._execute(finding.SEGMENTS, to_column(thread_id), Blobs(keys), likely_last=True)
        return dict(rows)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        """One statement, with the segments of the headers."""
        names, namespace = Texts(sorted(map(to_column, {*thread_ids}))), to_column(ns)
        rows = yield from self._execute(finding.NEWEST_OF_THREADS, names, namespace)
        found: dict[str, Found] = {}
        heads: dict[str, tuple[str, str | None]] = {}
        segments: dict[str, dict[bytes, bytes]] = {}
        for name, kind, *of_row, _, epoch, owner, expires_at in rows:
            thread_id = from_column(name)
            _, _, rank, _, _, _, body, check = of_row
            if kind == _SEGMENT:
                segments.setdefault(thread_id, {})[check] = body
            elif kind == _HEAD:
                heads[thread_id] = from_column(rank), from_optional(owner)
            else:
                row = checkpoint_row(thread_id, of_row)
                found[thread_id] = Found(epoch, row, (), {}, None, from_optional(owner), expires_at)
        lost = {thread_id: Found(0, None, (), {}, None, owner) for thread_id, (_, owner) in heads.items()}
        return {
            thread_id: each._replace(
                segments=segments.get(thread_id, {}), newest=heads[thread_id][0] if thread_id in heads else None
            )
            for thread_id, each in {**lost, **found}.items()
        }

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        """One statement, whatever their number."""
        pairs = [(to_column(thread_id), key) for thread_id, keys in requested.items() for key in keys]
        found: dict[str, dict[bytes, bytes]] = {thread_id: {} for thread_id in requested}
        names, held = Texts(name for name, _ in pairs), Blobs(key for _, key in pairs)
        rows = yield from self._execute(finding.SEGMENTS_OF_THREADS, names, held, likely_last=True)
        for name, key, data in rows:
            found[from_column(name)][key] = data
        return found

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        """One statement, made of the clauses of the scope."""
        clauses, params = _numbered(scope, after, limit)
        rows = yield from self._execute(listing.PAGE.format(clauses=clauses), *params, likely_last=True)
        return [outline(from_column(thread_id), columns) for thread_id, *columns in rows]

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        """The same statement with more columns. A caller that reads whole rows needs their writes, too."""
        clauses, params = _numbered(scope, after, limit)
        rows = yield from self._execute(listing.PAGE_OF_ROWS.format(clauses=clauses), *params)
        return [checkpoint_row(from_column(thread_id), columns) for thread_id, *columns in rows]

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        """One statement, whatever their number."""
        rows = yield from self._execute(listing.ROWS, to_column(thread_id), *keys_as_arrays(keys))
        return [checkpoint_row(thread_id, columns) for columns in rows]

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        """One statement, whatever their number."""
        if keys is None:
            rows = yield from self._execute(listing.WRITES_OF_THREAD, to_column(thread_id))
        else:
            rows = yield from self._execute(listing.WRITES, to_column(thread_id), *keys_as_arrays(keys))
        return [write_row(columns) for columns in rows]

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        """One recursive statement."""
        start = (to_column(thread_id), to_column(ns), limit)
        if checkpoint_id is None:
            rows = yield from self._execute(listing.CHAIN_FROM_NEWEST, *start)
        else:
            rows = yield from self._execute(listing.CHAIN, *start, to_column(checkpoint_id))
        return [checkpoint_row(thread_id, columns) for columns in rows]

    def epoch(self, thread_id: str) -> Program[int | None]:
        """The live thread's epoch."""
        rows = yield from self._execute(threads.EPOCH, to_column(thread_id))
        return next((epoch for (epoch,) in rows), None)

    def lock(self, thread_id: str) -> Program[int | None]:
        """Lock the thread's row, even if the thread was deleted."""
        ((epoch, live),) = yield from self._execute(threads.LOCK, to_column(thread_id))
        return epoch if live else None

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        """One statement."""
        ns, _, rank, *others, _ = checkpoint_columns(rows)
        yield from self._execute(removing.REWRITE_CHECKPOINTS, to_column(thread_id), ns, rank, *others)

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        """One statement."""
        rows = yield from self._execute(finding.SEGMENT_SIZES, to_column(thread_id))
        return dict(rows)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        """One call of a server function."""
        params = to_column(thread_id), *keys_as_arrays(keys), Blobs(segments)
        ((epoch,),) = yield from self._execute(removing.REMOVE, *params)
        return int(epoch)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """One statement."""
        rows = yield from self._execute(listing.HEADS, *_texts(thread_id, ns), likely_last=True)
        return [_head(columns) for columns in rows]

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """One statement."""
        rows = yield from self._execute(listing.COUNTED_HEADS, *_texts(thread_id, ns))
        return [_head(columns) for columns in rows]

    def damage(self) -> Program[list[tuple[str, str]]]:
        """Return rows whose thread is missing, and threads that listings miss or have in a wrong place."""
        rows = yield from self._execute(reports.LOST_ROWS)
        found = [(f"table threadmark_{kind}", f"{count} rows belong to no thread") for kind, count in rows]
        ((unlisted, misplaced),) = yield from self._execute(reports.UNLISTED)
        if unlisted:
            found.append(
                ("table threadmark_head", f"{unlisted} threads are in no listing: their rows are missing here")
            )
        if misplaced:
            found.append(("table threadmark_head", f"{misplaced} threads are listed at a wrong time"))
        return found

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        """One call of a server function, which now and then also forgets old deletions. Alone, it is a transaction."""
        forgotten = None if now % _DELETIONS else now - TOMBSTONE_MICROSECONDS
        params = to_column(thread_id), now, greatest_id(now), forgotten
        ((epoch, outcome),) = yield from self._execute(removing.DROP, *params, likely_last=True)
        if outcome == BEGIN:
            ((epoch, _),) = yield from self._execute(removing.DROP, *params)
        return None if epoch is None else int(epoch)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """The bytes never leave the server."""
        yield from self._execute(adding.COPY_SEGMENTS, to_column(source), to_column(target))

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        """One statement."""
        rows = yield from self._execute(listing.THREADS, to_column(after), limit)
        return [from_column(thread_id) for (thread_id,) in rows]

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        """One statement."""
        rows = yield from self._execute(reports.SAMPLE)
        return (bytes(rows[0][0]), bytes(rows[0][1])) if rows else None

    def upgrade(self, *, dry_run: bool) -> Program[UpgradeReport]:
        """One transaction, which writes of others wait for."""
        return migrations.upgrade(self._schema, dry_run=dry_run)

    def has_only_langgraph_data(self) -> Program[bool]:
        """One statement. It reads no table of LangGraph's, because the role may not be allowed to."""
        ((answer,),) = yield from self._execute(reports.HAS_ONLY_LANGGRAPH_DATA)
        return bool(answer)


def _head(columns: Sequence[Any]) -> Head:
    thread_id, ns, newest, checkpoints = columns
    return Head(from_column(thread_id), from_column(ns), from_column(newest), checkpoints)


def _texts(*names: str | None) -> list[str | None]:
    return [None if name is None else to_column(name) for name in names]


def _numbered(scope: Scope, after: Outline | None, limit: int) -> tuple[str, list[Any]]:
    """Return the conditions of a page and the parameters of its statement."""
    clauses: list[str] = [listing.PAGE_OF_ALL]
    params: list[Any] = [limit]
    for clause, values in _clauses(scope, after):
        numbers = range(len(params) + 1, len(params) + 1 + len(values))
        clauses.append(clause.format(*numbers))
        params += values
    return " AND ".join(clauses), params


def _clauses(scope: Scope, after: Outline | None) -> Iterator[tuple[str, list[Any]]]:
    if scope.thread_id is not None:
        yield listing.PAGE_OF_THREAD, [to_column(scope.thread_id)]
    if scope.ns is not None:
        yield listing.PAGE_OF_NAMESPACE, [to_column(scope.ns)]
    if scope.checkpoint_id is not None:
        yield listing.PAGE_WITH_ID, [to_column(scope.checkpoint_id)]
    if scope.before is not None:
        yield listing.PAGE_BEFORE, [to_column(scope.before)]
    if scope.run_id is not None:
        yield listing.PAGE_OF_RUN, [run_number(scope.run_id)]
    if scope.owner is not None:
        yield listing.PAGE_OF_OWNER, [to_column(scope.owner)]
    for fragment in scope.fragments:
        yield listing.PAGE_WITH_FRAGMENT, [to_column(fragment)]
    if after is not None:
        yield listing.PAGE_AFTER, [to_column(text) for text in (after.rank, after.thread_id, after.ns)]
