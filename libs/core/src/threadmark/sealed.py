"""Encryption at rest: a store around another store, which seals the bodies of rows when it adds them.

It opens them when it reads. What a row is found by stays readable: thread, namespace, checkpoint, task, channel and
times. Values, headers, checks and digests do not, and neither does metadata unless it is to be searched in SQL. A
sealed body is bound to its table and key, so a row that was moved or swapped does not open.
"""

from base64 import b85decode, b85encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgpack

from threadmark.digests import CHECK_SIZE, segment_key
from threadmark.errors import CorruptDataError
from threadmark.metadata import run_id_in
from threadmark.program import Program
from threadmark.sealed_threads import NOT_OPENED, SealedThreadStore
from threadmark.sealing import HOW_TO_SEAL, Keyring
from threadmark.store import (
    ANYONE,
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
    nothing_held,
)
from threadmark.stored import announced_size, expand

T = TypeVar("T")

NOT_SEALED = b"not sealed"
"""Stands for the check of a row that was stored without a keyring."""

_BATCH = 256
_EVERYTHING = 2**31 - 1


class SealedStore(SealedThreadStore, Store):
    """Another store, its rows sealed with a keyring."""

    def __init__(self, store: Store, keyring: Keyring, *, seal_metadata: bool) -> None:
        self._store = store
        self._keyring = keyring
        self._seal_metadata = seal_metadata

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        found = yield from self._store.find(thread_id, ns, checkpoint_id, held)
        return self._open_found(thread_id, found) if found else None

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        sealed = yield from self._store.segments(thread_id, keys)
        return self._open_segments(thread_id, sealed)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        found = yield from self._store.newest(thread_ids, ns)
        return {thread_id: self._open_found(thread_id, each) for thread_id, each in found.items()}

    def segments_of(self, wanted: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        sealed = yield from self._store.segments_of(wanted)
        return {thread_id: self._open_segments(thread_id, segments) for thread_id, segments in sealed.items()}

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        outlines = yield from self._store.page(self._searchable(scope), after, limit)
        return [self._open_outline(outline) for outline in outlines]

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        rows = yield from self._store.page_of_rows(self._searchable(scope), after, limit)
        return None if rows is None else [self._open_row(row) for row in rows]

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        rows = yield from self._store.rows(thread_id, keys)
        return [self._open_row(row) for row in rows]

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        rows = yield from self._store.writes(thread_id, keys)
        return [self._open_write(thread_id, row) for row in rows]

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        rows = yield from self._store.chain(thread_id, ns, checkpoint_id, limit)
        return [self._open_row(row) for row in rows]

    def epoch(self, thread_id: str) -> Program[int | None]:
        return self._store.epoch(thread_id)

    def lock(self, thread_id: str) -> Program[int | None]:
        return self._store.lock(thread_id)

    def add(self, change: Change) -> Program[Added]:
        added = yield from self._store.add(self._seal_change(change))
        return self._open_added(change.thread_id, added)

    def replace(self, change: Change) -> Program[Added]:
        added = yield from self._store.replace(self._seal_change(change))
        return self._open_added(change.thread_id, added)

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        return self._store.rewrite(thread_id, [self._seal_row(row) for row in rows])

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._store.heads(thread_id, ns)

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._store.counted_heads(thread_id, ns)

    def damage(self) -> Program[list[tuple[str, str]]]:
        return self._store.damage()

    def mend(self) -> Program[None]:
        return self._store.mend()

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        return self._store.segment_sizes(thread_id)

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        return self._store.remove(thread_id, keys, segments)

    def forget(self, thread_id: str, keys: Sequence[Key], *, removes: bool) -> Program[None]:
        return self._store.forget(thread_id, keys, removes=removes)

    def drop(self, thread_id: str, now: int) -> Program[None]:
        return self._store.drop(thread_id, now)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """Seal each segment again for the other thread, because a sealed body is bound to its thread."""
        sizes = yield from self._store.segment_sizes(source)
        for keys in _batches(sorted(sizes)):
            sealed = yield from self._store.segments(source, keys)
            opened = self._open_segments(source, sealed)
            yield from self.add(_change(target, opened, (), ()))

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        return self._store.threads(after, limit)

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        return self._store.sample()

    def has_only_langgraph_data(self) -> Program[bool]:
        return self._store.has_only_langgraph_data()

    def reseal(self, thread_id: str, *, plain: bool) -> Program[int]:
        """Seal the rows of a thread again that were not sealed with the newest key. Returns how many there were.

        It is one transaction. A row is replaced by removing and adding it, so the thread's epoch grows, and a put that
        was prepared before is prepared again. With `plain`, rows that are not sealed yet are sealed as well.
        """
        if (yield from self._store.lock(thread_id)) is None:
            return 0
        threads = yield from self.reseal_thread(thread_id, plain=plain)
        segments = yield from self._reseal_segments(thread_id, plain=plain)
        return threads + segments + (yield from self._reseal_rows(thread_id, plain=plain))

    def _reseal_segments(self, thread_id: str, *, plain: bool) -> Program[int]:
        count = 0
        sizes = yield from self._store.segment_sizes(thread_id)
        for some in _batches(sorted(sizes)):
            stored = yield from self._store.segments(thread_id, some)
            opened = {key: data for key, data in stored.items() if plain and _is_plain_segment(key, data)}
            for key, data in stored.items():
                if key not in opened and not self._keyring.is_current(data):
                    opened[key] = self._keyring.open(data, _where("segment", thread_id, key))
            if opened:
                yield from self._store.remove(thread_id, (), sorted(opened))
                yield from self.add(_change(thread_id, opened, (), ()))
            count += len(opened)
        return count

    def _reseal_rows(self, thread_id: str, *, plain: bool) -> Program[int]:
        count = 0
        outlines = yield from self._store.page(Scope(thread_id), None, _EVERYTHING)
        writes = yield from self._store.writes(thread_id, None)
        for keys in _batches(sorted({outline.key for outline in outlines} | {row[:2] for row in writes})):
            rows = yield from self._store.rows(thread_id, keys)
            stale = self._stale_checkpoints(rows, [row for row in writes if row[:2] in keys], plain=plain)
            some_rows = [row for row in rows if row.outline.key in stale]
            some_writes = [row for row in writes if row[:2] in stale]
            opened_rows = [self._strictly_opened(row) for row in some_rows]
            opened_writes = [self._strictly_opened_write(thread_id, row) for row in some_writes]
            if stale:
                yield from self._store.remove(thread_id, sorted(stale), ())
                yield from self.add(_change(thread_id, {}, opened_rows, opened_writes))
            count += len(some_rows) + len(some_writes)
        return count

    def _stale_checkpoints(self, rows: Sequence[CheckpointRow], writes: Sequence[WriteRow], *, plain: bool) -> set[Key]:
        """Return the checkpoints with a row that another key sealed. They are replaced with all their writes."""
        stale = {row.outline.key for row in rows if self._is_stale(row.check, row.header, plain=plain)}
        return stale | {row[:2] for row in writes if self._is_stale(row.check, row.value, plain=plain)}

    def _is_stale(self, check: bytes, body: bytes, *, plain: bool) -> bool:
        if not check:
            return not self._keyring.is_current(body)
        if not plain:
            raise CorruptDataError(f"a row is not sealed: {HOW_TO_SEAL}")
        return True

    def _strictly_opened(self, row: CheckpointRow) -> CheckpointRow:
        """Open a row that must open. If it does not, the error leaves the whole thread as it is."""
        if row.check:
            opened = row
        else:
            self._keyring.open(row.header, _where("checkpoint", *row.outline[:3]))
            opened = self._open_row(row)
        return opened._replace(run_id=run_id_in(opened.outline.metadata))

    def _strictly_opened_write(self, thread_id: str, row: WriteRow) -> WriteRow:
        if row.check:
            return row
        self._keyring.open(row.value, _where("write", thread_id, *row[:4]))
        return self._open_write(thread_id, row)

    def _seal_change(self, change: Change) -> Change:
        thread_id = change.thread_id
        return change._replace(
            segments={
                key: self._keyring.seal(data, _where("segment", thread_id, key))
                for key, data in change.segments.items()
            },
            checkpoints=[self._seal_row(row) for row in change.checkpoints],
            writes=[self._seal_write(thread_id, row) for row in change.writes],
            beginning=self._seal_beginning(thread_id, change.beginning),
        )

    def _open_added(self, thread_id: str, added: Added) -> Added:
        if not added.replaced_writes:
            return added
        return added._replace(replaced_writes=[self._open_write(thread_id, row) for row in added.replaced_writes])

    def _seal_row(self, row: CheckpointRow) -> CheckpointRow:
        outline = row.outline
        header = self._keyring.seal(row.check + row.header, _where("checkpoint", *outline[:3]))
        if self._seal_metadata:
            sealed = self._keyring.seal(
                outline.metadata.encode("utf-8", "surrogatepass"), _where("metadata", *outline[:3])
            )
            outline = outline._replace(metadata=b85encode(sealed).decode())
        return CheckpointRow(outline, header, b"", None if self._seal_metadata else row.run_id)

    def _open_found(self, thread_id: str, found: Found) -> Found:
        return found._replace(
            row=self._open_row(found.row) if found.row else None,
            writes=[self._open_write(thread_id, row) for row in found.writes],
            segments=self._open_segments(thread_id, found.segments),
        )

    def _searchable(self, scope: Scope) -> Scope:
        """The scope without what only the saver can look for, because metadata is sealed."""
        return scope._replace(fragments=(), run_id=None) if self._seal_metadata else scope

    def _open_row(self, row: CheckpointRow) -> CheckpointRow:
        check, body = self._open_checked(row.check, row.header, _where("checkpoint", *row.outline[:3]))
        return CheckpointRow(self._open_outline(row.outline), body, check, row.run_id)

    def _open_outline(self, outline: Outline) -> Outline:
        if not self._seal_metadata:
            return outline
        try:
            sealed = b85decode(outline.metadata)
        except ValueError:
            sealed = b""
        metadata = self._open(sealed, _where("metadata", *outline[:3]))
        return outline._replace(metadata=metadata.decode("utf-8", "surrogatepass"))

    def _seal_write(self, thread_id: str, row: WriteRow) -> WriteRow:
        return row._replace(
            value=self._keyring.seal(row.check + row.value, _where("write", thread_id, *row[:4])), check=b""
        )

    def _open_write(self, thread_id: str, row: WriteRow) -> WriteRow:
        check, body = self._open_checked(row.check, row.value, _where("write", thread_id, *row[:4]))
        return row._replace(value=body, check=check)

    def _open_checked(self, check: bytes, body: bytes, where: bytes) -> tuple[bytes, bytes]:
        """Return the check of a row and its body. A sealed row has its check inside, and none beside it."""
        if check:
            return NOT_SEALED, b""
        opened = self._open(body, where)
        return (opened[:CHECK_SIZE], opened[CHECK_SIZE:]) if opened else (NOT_OPENED, b"")

    def _open_segments(self, thread_id: str, sealed: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        return {key: self._open(data, _where("segment", thread_id, key)) for key, data in sealed.items()}

    def _open(self, sealed: bytes, where: bytes) -> bytes:
        """Decrypt a body. Returns b"" if that fails: the reader's error then names the row."""
        try:
            return self._keyring.open(sealed, where)
        except CorruptDataError:
            return b""


def opens_segment(keyring: Keyring, thread_id: str, key: bytes, data: bytes) -> bool:
    """Whether bytes are the sealed segment of this thread with this key."""
    try:
        keyring.open(data, _where("segment", thread_id, key))
    except CorruptDataError:
        return False
    return True


def _is_plain_segment(key: bytes, data: bytes) -> bool:
    """Whether bytes are those of a segment that was named without a secret, and so stored without a keyring."""
    try:
        return segment_key(expand(data, announced_size(data))) == key
    except CorruptDataError:
        return False


def _where(table: str, *key: object) -> bytes:
    packed: bytes = msgpack.packb((table, *key), unicode_errors="surrogatepass")
    return packed


def _change(
    thread_id: str, segments: Mapping[bytes, bytes], checkpoints: Sequence[CheckpointRow], writes: Sequence[WriteRow]
) -> Change:
    """Return a change that relies on no epoch, and asks nobody who holds a lease: what is stored stays the same."""
    return Change(thread_id, None, 0, segments, checkpoints, writes, None, token=ANYONE)


def _batches(keys: Sequence[T]) -> Iterable[Sequence[T]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]
