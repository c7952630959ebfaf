"""The rows of threads, sealed: title and metadata are encrypted if metadata is, owner and expiry stay readable.

The sealed part is in the row's check, which is sealed in any case, so no one without the key can give a thread another
owner. It names the thread's incarnation (`format/incarnations.py`), without which no other row of the thread opens.
"""

from collections.abc import Sequence

import msgpack

from threadmark.errors import CorruptDataError
from threadmark.format.incarnations import Incarnation, KnownIncarnations
from threadmark.program import Program
from threadmark.saver.kit import CHECK_SIZE, HOW_TO_SEAL, NOT_OPENED, NOT_SEALED
from threadmark.sealing import Cipher, incarnation_of
from threadmark.store.contract import Scope
from threadmark.store.forwarding import ForwardingStore
from threadmark.store.threads import (
    Beginning,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
)


class SealedThreadStore(ForwardingStore):
    """The operations on threads of another store, their rows sealed with a keyring."""

    _cipher: Cipher
    _seal_metadata: bool
    _known: KnownIncarnations

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        found = yield from self._store.thread(thread_id)
        return found and self._open_thread(found)

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        found = yield from self._store.thread_outlines(thread_ids)
        return [self._open_thread(outline) for outline in found]

    def set_thread(self, row: ThreadRow) -> Program[None]:
        """Seal it for the thread's incarnation.

        If it takes the thread from an owner, the epoch ends: a change that was sealed before is sealed again. A thread
        without an owner is in no owner's view, so its row may be put back.
        """
        before = yield from self._store.thread(row.thread_id)
        incarnation = self._incarnation_in(before)
        is_taken = before is None or incarnation is None or before.row.owner not in (None, row.owner)
        if incarnation is None:
            incarnation = (yield from self._newest_incarnation(row.thread_id)) or Incarnation.begun()
        if is_taken:
            incarnation = incarnation.next_owner()
            yield from self._store.remove(row.thread_id, (), ())
            self._known.forget(row.thread_id)  # this transaction may fail: note only incarnations that were read
        yield from self._store.set_thread(self._seal_thread(row, incarnation))

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        if self._seal_metadata:  # sealed metadata cannot be searched in SQL, so the saver filters all of it
            scope = scope._replace(fragments=(), text=None)
        found = yield from self._store.thread_page(scope, after, offset, limit)
        return [self._open_thread(outline) for outline in found]

    def reseal_thread(self, thread_id: str, epoch: int, *, plain: bool) -> Program[int]:
        """Seal the row of a locked thread again if another key sealed it. Returns how many rows that were."""
        found = yield from self._store.thread(thread_id)
        if found is None:
            return 0
        row = found.row
        if len(row.check) > CHECK_SIZE:
            is_open = self._seal_metadata and (row.title is not None or row.metadata is not None)
            if self._cipher.is_current(row.check) and not is_open:
                return 0
            row, incarnation = self._opened(row)
            self._known.note(thread_id, epoch, incarnation, is_committed=False)
        elif plain:
            incarnation = Incarnation.begun()
            self._known.forget(thread_id)  # as in `set_thread`
        else:
            raise CorruptDataError(f"the thread's row is not sealed: {HOW_TO_SEAL}")
        yield from self._store.set_thread(self._seal_thread(row, incarnation))
        return 1

    def _incarnation_in(self, outline: ThreadOutline | None) -> Incarnation | None:
        """Return the incarnation that a stored thread's row names, None if there is no such row that opens."""
        try:
            return None if outline is None else self._opened(outline.row)[1]
        except CorruptDataError:
            return None

    def _newest_incarnation(self, thread_id: str) -> Program[Incarnation | None]:
        """Return that of the newest checkpoint, for a thread whose own row is damaged."""
        outlines = yield from self._store.page(Scope(thread_id), None, 1)
        for row in (yield from self._store.rows(thread_id, [outline.key for outline in outlines])):
            try:
                return incarnation_of(row.header)
            except CorruptDataError:
                return None
        return None

    def _seal_beginning(self, thread_id: str, beginning: Beginning, incarnation: Incarnation) -> Beginning:
        return beginning._replace(check=self._sealed(thread_id, (beginning.check, None, None), incarnation))

    def _seal_thread(self, row: ThreadRow, incarnation: Incarnation) -> ThreadRow:
        if not self._seal_metadata:
            return row._replace(check=self._sealed(row.thread_id, (row.check, None, None), incarnation))
        sealed = self._sealed(row.thread_id, (row.check, row.title, row.metadata), incarnation)
        return row._replace(title=None, metadata=None, check=sealed)

    def _open_thread(self, outline: ThreadOutline) -> ThreadOutline:
        try:
            row, _ = self._opened(outline.row)
            return outline._replace(row=row)
        except CorruptDataError:  # the reader's error names the row
            is_plain = len(outline.row.check) <= CHECK_SIZE
            return outline._replace(row=outline.row._replace(check=NOT_SEALED if is_plain else NOT_OPENED))

    def _opened(self, row: ThreadRow) -> tuple[ThreadRow, Incarnation]:
        """Return a thread's row as it was before it was sealed, and the incarnation that it names."""
        opened = self._cipher.open(row.check, _where(row.thread_id))
        incarnation = incarnation_of(row.check)
        if incarnation is None:
            raise CorruptDataError("the thread's row names no incarnation")
        check, title, metadata = msgpack.unpackb(opened, unicode_errors="surrogatepass")
        if row.title is not None or row.metadata is not None:
            title, metadata = row.title, row.metadata
        return row._replace(title=title, metadata=metadata, check=check), incarnation

    def _sealed(
        self, thread_id: str, contents: tuple[bytes, str | None, str | None], incarnation: Incarnation
    ) -> bytes:
        packed: bytes = msgpack.packb(contents, unicode_errors="surrogatepass")
        return self._cipher.seal(packed, _where(thread_id), incarnation)


def _where(thread_id: str) -> bytes:
    packed: bytes = msgpack.packb(("thread", thread_id), unicode_errors="surrogatepass")
    return packed
