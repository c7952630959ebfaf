"""Encryption at rest: a store around another store, which seals the bodies of rows when it adds them.

It opens them when it reads. The keys of rows stay readable: thread, namespace, checkpoint, task, channel and times.
Values, headers, checks and digests do not, and neither does metadata unless it is to be searched in SQL. A sealed body
is bound to its table and key, so a row that was moved or swapped does not open. Unless it is a segment, it is also
bound to an incarnation of its thread, so that a row of another life of the thread does not open either. Segments are
named by their content, and are found by the rows that name them.
"""

from base64 import b85decode, b85encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from threadmark.encryption.threads import SealedThreadStore
from threadmark.errors import CorruptDataError
from threadmark.format.incarnations import Incarnation, KnownIncarnations
from threadmark.metadata import run_id_in
from threadmark.program import Program
from threadmark.saver.kit import (
    CHECK_SIZE,
    HOW_TO_SEAL,
    NOT_OPENED,
    NOT_SEALED,
    OF_ANOTHER_LIFE,
    announced_size,
    expand,
    segment_key,
)
from threadmark.sealing import Cipher, incarnation_of, row_name
from threadmark.store.contract import (
    ANYONE,
    Added,
    Change,
    CheckpointRow,
    Found,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
    nothing_held,
    was_added,
)
from threadmark.store.threads import expect_sound_thread, is_unfinished

T = TypeVar("T")

_BATCH = 256
_EVERYTHING = 2**31 - 1


class Incarnations:
    """Those of the threads that some rows belong to, and whether one of these rows belongs to none of them."""

    def __init__(self, found: Mapping[str, Incarnation | None]) -> None:
        self._found = found
        self.missed = False

    def cover(self, thread_id: str, row: Incarnation | None) -> bool:
        """Whether a row of this thread belongs to it."""
        incarnation = self._found.get(thread_id)
        is_covered = incarnation is not None and incarnation.covers(row)
        self.missed |= not is_covered
        return is_covered


class SealedStore(SealedThreadStore):
    """Another store, its rows sealed with a keyring.

    Which incarnation a thread has is remembered, and read again if a row belongs to another one. In the view of an
    owner it is read each time, from the thread's row, which proves whose the thread is.
    """

    def __init__(
        self,
        store: Store,
        cipher: Cipher,
        *,
        seal_metadata: bool,
        known: KnownIncarnations,
        owner: str | None = None,
    ) -> None:
        super().__init__(store)
        self._cipher = cipher
        self._seal_metadata = seal_metadata
        self._known = known
        self._owner = owner

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        found = yield from self._store.find(thread_id, ns, checkpoint_id, held)
        if found is None:
            return None
        known = self._known.get(thread_id)
        if known and known.epoch == found.epoch and self._owner is None:
            incarnations = Incarnations({thread_id: known.incarnation})
            opened = self._open_found(thread_id, found, incarnations)
            if known.is_committed and not incarnations.missed:
                return opened
        read = yield from self._read_incarnations([thread_id])
        incarnation = read.get(thread_id)
        if incarnation is not None:
            self._known.note(thread_id, found.epoch, incarnation, is_committed=True)
        return self._open_found(thread_id, found, Incarnations(read))

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        sealed = yield from self._store.segments(thread_id, keys)
        return self._open_segments(thread_id, sealed)

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        found = yield from self._store.newest(thread_ids, ns)
        return (
            yield from self._with_incarnations(
                found, lambda known: {name: self._open_found(name, each, known) for name, each in found.items()}
            )
        )

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        sealed = yield from self._store.segments_of(requested)
        return {thread_id: self._open_segments(thread_id, segments) for thread_id, segments in sealed.items()}

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        outlines = yield from self._store.page(self._searchable(scope), after, limit)
        names = {outline.thread_id for outline in outlines}
        return (
            yield from self._with_incarnations(
                names, lambda known: [self._open_outline(outline, known) for outline in outlines]
            )
        )

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        rows = yield from self._store.page_of_rows(self._searchable(scope), after, limit)
        return None if rows is None else (yield from self._opened_rows(rows))

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        rows = yield from self._store.rows(thread_id, keys)
        return (yield from self._opened_rows(rows))

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        rows = yield from self._store.writes(thread_id, keys)
        names = [thread_id] if rows else []
        return (
            yield from self._with_incarnations(
                names, lambda known: [self._open_write(thread_id, row, known) for row in rows]
            )
        )

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        rows = yield from self._store.chain(thread_id, ns, checkpoint_id, limit)
        return (yield from self._opened_rows(rows))

    def add(self, change: Change) -> Program[Added]:
        """Seal it for the thread's incarnation, which the epoch proves, and if that is not as expected, lock first."""
        life = yield from self._life(change)
        if life is not None:
            epoch, incarnation = life
            added = yield from self._store.add(self._seal_change(change._replace(epoch=epoch), incarnation))
            if change.epoch is not None or added.refused is not None or added.epoch == epoch:
                return self._open_added(change.thread_id, added, incarnation)
        return (yield from self._change_locked(self._store.add, change))

    def replace(self, change: Change) -> Program[Added]:
        return self._change_locked(self._store.replace, change)

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        incarnation = yield from self._expected_incarnation(thread_id)
        yield from self._store.rewrite(thread_id, [self._seal_row(row, incarnation) for row in rows])

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        """Remove them, and let the next change of this process know the new epoch."""
        known = self._known.get(thread_id)
        before = (yield from self._store.epoch(thread_id)) if known else None
        epoch = yield from self._store.remove(thread_id, keys, segments)
        if known and known.epoch == before:
            self._known.note(thread_id, epoch, known.incarnation, is_committed=False)
        return epoch

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        self._known.forget(thread_id)
        return self._store.drop(thread_id, now)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """Seal each segment again for the other thread, because a sealed body is bound to its thread."""
        sizes = yield from self._store.segment_sizes(source)
        for keys in _batches(sorted(sizes)):
            sealed = yield from self._store.segments(source, keys)
            opened = self._open_segments(source, sealed)
            yield from self.add(_change(target, opened, (), ()))

    def reseal(self, thread_id: str, *, plain: bool) -> Program[int]:
        """Seal the rows of a thread again that were not sealed with the newest key. Returns how many there were.

        It is one transaction. A row is replaced by removing and adding it, so the thread's epoch grows, and a put that
        was prepared before is prepared again. With `plain`, rows that are not sealed yet are sealed as well.
        """
        epoch = yield from self._store.lock(thread_id)
        if epoch is None:
            return 0
        threads = yield from self.reseal_thread(thread_id, epoch, plain=plain)
        segments = yield from self._reseal_segments(thread_id, plain=plain)
        return threads + segments + (yield from self._reseal_rows(thread_id, plain=plain))

    def _reseal_segments(self, thread_id: str, *, plain: bool) -> Program[int]:
        count = 0
        sizes = yield from self._store.segment_sizes(thread_id)
        for some in _batches(sorted(sizes)):
            stored = yield from self._store.segments(thread_id, some)
            opened = {key: data for key, data in stored.items() if plain and _is_plain_segment(key, data)}
            for key, data in stored.items():
                if key not in opened and not self._cipher.is_current(data):
                    opened[key] = self._cipher.open(data, row_name("segment", thread_id, key))
            if opened:
                yield from self.remove(thread_id, (), sorted(opened))
                yield from self.add(_change(thread_id, opened, (), ()))
            count += len(opened)
        return count

    def _reseal_rows(self, thread_id: str, *, plain: bool) -> Program[int]:
        count = 0
        incarnation = yield from self._expected_incarnation(thread_id)
        outlines = yield from self._store.page(Scope(thread_id), None, _EVERYTHING)
        writes = yield from self._store.writes(thread_id, None)
        for keys in _batches(sorted({outline.key for outline in outlines} | {row[:2] for row in writes})):
            rows = yield from self._store.rows(thread_id, keys)
            stale = self._stale_checkpoints(rows, [row for row in writes if row[:2] in keys], plain=plain)
            some_rows = [row for row in rows if row.outline.key in stale]
            some_writes = [row for row in writes if row[:2] in stale]
            opened_rows = [self._strictly_opened(row, incarnation) for row in some_rows]
            opened_writes = [self._strictly_opened_write(thread_id, row, incarnation) for row in some_writes]
            if stale:
                yield from self.remove(thread_id, sorted(stale), ())
                yield from self.add(_change(thread_id, {}, opened_rows, opened_writes))
            count += len(some_rows) + len(some_writes)
        return count

    def _stale_checkpoints(self, rows: Sequence[CheckpointRow], writes: Sequence[WriteRow], *, plain: bool) -> set[Key]:
        """Return the checkpoints with a row that another key sealed. They are replaced with all their writes."""
        stale = {
            row.outline.key
            for row in rows
            if self._is_stale(row.check, row.header, plain=plain) or self._metadata_must_change(row.outline)
        }
        return stale | {row[:2] for row in writes if self._is_stale(row.check, row.value, plain=plain)}

    def _is_stale(self, check: bytes, body: bytes, *, plain: bool) -> bool:
        if not check:
            return not self._cipher.is_current(body)
        if not plain:
            raise CorruptDataError(f"a row is not sealed: {HOW_TO_SEAL}")
        return True

    def _strictly_opened(self, row: CheckpointRow, incarnation: Incarnation) -> CheckpointRow:
        """Open a row that must open. If it does not, the error leaves the whole thread as it is."""
        if row.check:
            opened = row
        else:
            self._expect_covered(incarnation, row.header, row_name("checkpoint", *row.outline[:3]))
            opened = self._open_row(row, Incarnations({row.outline.thread_id: incarnation}))
            if self._metadata_must_change(row.outline):
                metadata = self._opened_metadata(row.outline)
                opened = opened._replace(outline=row.outline._replace(metadata=metadata or row.outline.metadata))
        return opened._replace(run_id=run_id_in(opened.outline.metadata))

    def _metadata_must_change(self, outline: Outline) -> bool:
        """Whether metadata that is to be sealed is open, or the reverse: it was stored with another `seal_metadata`."""
        return (self._opened_metadata(outline) is None) is self._seal_metadata

    def _opened_metadata(self, outline: Outline) -> str | None:
        """Return metadata that is sealed as text, None if it is open."""
        try:
            opened = self._open(b85decode(outline.metadata), row_name("metadata", *outline[:3]))
        except ValueError:
            return None
        return opened.decode("utf-8", "surrogatepass") or None

    def _strictly_opened_write(self, thread_id: str, row: WriteRow, incarnation: Incarnation) -> WriteRow:
        if row.check:
            return row
        self._expect_covered(incarnation, row.value, row_name("write", thread_id, *row[:4]))
        return self._open_write(thread_id, row, Incarnations({thread_id: incarnation}))

    def _expect_covered(self, incarnation: Incarnation, body: bytes, where: bytes) -> None:
        self._cipher.open(body, where)
        if not incarnation.covers(incarnation_of(body)):
            raise CorruptDataError("a row was stored in another life of the thread, and put back")

    def _read_incarnations(self, thread_ids: Collection[str]) -> Program[dict[str, Incarnation | None]]:
        """Return the incarnations of these threads, as their rows name them.

        In the view of an owner, it raises CorruptDataError if the row of a thread of theirs is not as it was written.
        """
        outlines = yield from self._store.thread_outlines(sorted(thread_ids))
        for outline in outlines:
            if outline.row.owner is not None and outline.row.owner == self._owner:
                expect_sound_thread(self._open_thread(outline).row)
        return {outline.row.thread_id: self._incarnation_in(outline) for outline in outlines}

    def _expected_incarnation(self, thread_id: str) -> Program[Incarnation]:
        """Return the incarnation of a thread that is locked. Raises CorruptDataError if its row does not open."""
        read = yield from self._read_incarnations([thread_id])
        incarnation = read.get(thread_id)
        if incarnation is None:
            found = yield from self.thread(thread_id)
            if found is not None:
                expect_sound_thread(found.row)
            raise CorruptDataError("its own row is missing", f"thread {thread_id!r}")
        return incarnation

    def _life(self, change: Change) -> Program[tuple[int, Incarnation] | None]:
        """Return an epoch of the thread, and the incarnation to seal for in it; None if there is no such thread."""
        thread_id = change.thread_id
        known = self._known.sure(thread_id, change.epoch)
        if known is not None:
            epoch, incarnation, _ = known
            if self._owner is None:
                return epoch, incarnation
            read = yield from self._read_incarnations([thread_id])
            if read.get(thread_id) == incarnation:
                return epoch, incarnation
        found_epoch = yield from self._store.epoch(thread_id)
        if found_epoch is None or change.epoch not in (None, found_epoch):
            return None
        # Read after the epoch: if another life begins in between, the epoch is no longer the one to count on.
        found = (yield from self._read_incarnations([thread_id])).get(thread_id)
        if found is None:
            return None
        self._known.note(thread_id, found_epoch, found, is_committed=False)
        return found_epoch, found

    def _change_locked(self, change_store: Callable[[Change], Program[Added]], change: Change) -> Program[Added]:
        """Make a change of a thread that is locked, so that it keeps its incarnation until the transaction ends.

        A thread that is not there is locked as well, and begins with a new one.
        """
        thread_id = change.thread_id
        epoch = yield from self._store.lock(thread_id)
        if epoch is None:
            yield from self._store.lock_lease(thread_id)
            epoch = yield from self._store.lock(thread_id)  # another transaction may have begun it since
        incarnation = Incarnation.begun() if epoch is None else (yield from self._expected_incarnation(thread_id))
        added = yield from change_store(self._seal_change(change, incarnation))
        if epoch is None:  # this transaction may fail, and another one begin the thread in the same epoch
            self._known.forget(thread_id)
        elif was_added(change, added) or added.refused is None:
            self._known.note(thread_id, added.epoch, incarnation, is_committed=False)
        return self._open_added(thread_id, added, incarnation)

    def _seal_change(self, change: Change, incarnation: Incarnation) -> Change:
        thread_id = change.thread_id
        return change._replace(
            segments={
                key: self._cipher.seal(data, row_name("segment", thread_id, key))
                for key, data in change.segments.items()
            },
            checkpoints=[self._seal_row(row, incarnation) for row in change.checkpoints],
            writes=[self._seal_write(thread_id, row, incarnation) for row in change.writes],
            beginning=(
                self._seal_beginning(thread_id, change.beginning, incarnation)
                if change.epoch is None
                else change.beginning  # a change that counts on an epoch begins no thread
            ),
        )

    def _open_added(self, thread_id: str, added: Added, incarnation: Incarnation) -> Added:
        if not added.replaced_writes:
            return added
        known = Incarnations({thread_id: incarnation})
        return added._replace(
            replaced_writes=[self._open_write(thread_id, row, known) for row in added.replaced_writes]
        )

    def _seal_row(self, row: CheckpointRow, incarnation: Incarnation) -> CheckpointRow:
        outline = row.outline
        where, is_marked = row_name("checkpoint", *outline[:3]), is_unfinished(row.header, row.check)
        header = self._cipher.seal(row.check + row.header, where, incarnation, is_marked=is_marked)
        if self._seal_metadata:
            metadata = outline.metadata.encode("utf-8", "surrogatepass")
            sealed = self._cipher.seal(metadata, row_name("metadata", *outline[:3]), incarnation)
            outline = outline._replace(metadata=b85encode(sealed).decode())
        run_id = None if self._seal_metadata else row.run_id
        return row._replace(outline=outline, header=header, check=b"", run_id=run_id)

    def _with_incarnations(self, thread_ids: Collection[str], open_all: Callable[[Incarnations], T]) -> Program[T]:
        """Open rows of these threads with the remembered incarnations, and with fresh ones if a row does not fit."""
        if self._owner is None:
            known = {name: found.incarnation for name in thread_ids if (found := self._known.get(name)) is not None}
            incarnations = Incarnations(known)
            opened = open_all(incarnations)
            if not incarnations.missed:
                return opened
        read = (yield from self._read_incarnations(thread_ids)) if thread_ids else {}
        return open_all(Incarnations(read))

    def _opened_rows(self, rows: Sequence[CheckpointRow]) -> Program[list[CheckpointRow]]:
        names = {row.outline.thread_id for row in rows}
        return (yield from self._with_incarnations(names, lambda known: [self._open_row(row, known) for row in rows]))

    def _open_found(self, thread_id: str, found: Found, known: Incarnations) -> Found:
        return found._replace(
            row=self._open_row(found.row, known) if found.row else None,
            writes=[self._open_write(thread_id, row, known) for row in found.writes],
            segments=self._open_segments(thread_id, found.segments),
        )

    def _searchable(self, scope: Scope) -> Scope:
        """The scope without the filters that only the saver can apply, because metadata is sealed."""
        return scope._replace(fragments=(), run_id=None) if self._seal_metadata else scope

    def _open_row(self, row: CheckpointRow, known: Incarnations) -> CheckpointRow:
        thread_id = row.outline.thread_id
        where = row_name("checkpoint", *row.outline[:3])
        check, body = self._open_checked(thread_id, row.check, row.header, where, known)
        return row._replace(outline=self._open_outline(row.outline, known), header=body, check=check)

    def _open_outline(self, outline: Outline, known: Incarnations) -> Outline:
        if not self._seal_metadata:
            return outline
        try:
            sealed = b85decode(outline.metadata)
        except ValueError:
            sealed = b""
        metadata = self._open(sealed, row_name("metadata", *outline[:3]))
        if metadata and not known.cover(outline.thread_id, incarnation_of(sealed)):
            metadata = b""
        return outline._replace(metadata=metadata.decode("utf-8", "surrogatepass"))

    def _seal_write(self, thread_id: str, row: WriteRow, incarnation: Incarnation) -> WriteRow:
        where = row_name("write", thread_id, *row[:4])
        return row._replace(value=self._cipher.seal(row.check + row.value, where, incarnation), check=b"")

    def _open_write(self, thread_id: str, row: WriteRow, known: Incarnations) -> WriteRow:
        where = row_name("write", thread_id, *row[:4])
        check, body = self._open_checked(thread_id, row.check, row.value, where, known)
        return row._replace(value=body, check=check)

    def _open_checked(
        self, thread_id: str, check: bytes, body: bytes, where: bytes, known: Incarnations
    ) -> tuple[bytes, bytes]:
        """Return the check of a row and its body. A sealed row has its check inside the body."""
        if check:
            return NOT_SEALED, b""
        opened = self._open(body, where)
        if not opened:
            return NOT_OPENED, b""
        if not known.cover(thread_id, incarnation_of(body)):
            return OF_ANOTHER_LIFE, b""
        return opened[:CHECK_SIZE], opened[CHECK_SIZE:]

    def _open_segments(self, thread_id: str, sealed: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        return {key: self._open(data, row_name("segment", thread_id, key)) for key, data in sealed.items()}

    def _open(self, sealed: bytes, where: bytes) -> bytes:
        """Decrypt a body. Returns b"" if that fails: the reader's error then names the row."""
        try:
            return self._cipher.open(sealed, where)
        except CorruptDataError:
            return b""


def _is_plain_segment(key: bytes, data: bytes) -> bool:
    """Whether bytes are those of a segment that was named without a secret, and so stored without a keyring."""
    try:
        return segment_key(expand(data, announced_size(data))) == key
    except CorruptDataError:
        return False


def _change(
    thread_id: str, segments: Mapping[bytes, bytes], checkpoints: Sequence[CheckpointRow], writes: Sequence[WriteRow]
) -> Change:
    """Return a change that relies on no epoch and on no lease, because the stored content stays the same."""
    return Change(thread_id, None, 0, segments, checkpoints, writes, None, token=ANYONE)


def _batches(keys: Sequence[T]) -> Iterable[Sequence[T]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]
