"""The rows of threads, sealed: title and metadata are encrypted where metadata is, owner and expiry stay readable.

What is sealed stands in the row's check, which is sealed in any case: so nobody without the key gives a thread another
owner. A row in which nothing was ever set has no check and is not sealed.
"""

from collections.abc import Sequence

import msgpack

from threadmark.errors import CorruptDataError
from threadmark.program import Program
from threadmark.sealing import Keyring
from threadmark.store import Store
from threadmark.thread_store import (
    Beginning,
    LeaseRow,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
)

NOT_OPENED = b"not opened"
"""Stands for the check of a row that does not open."""


class SealedThreadStore(ThreadStore):
    """The operations on threads of another store, their rows sealed with a keyring."""

    _store: Store
    _keyring: Keyring
    _seal_metadata: bool

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        found = yield from self._store.thread(thread_id)
        return found and self._open_thread(found)

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        found = yield from self._store.thread_outlines(thread_ids)
        return [self._open_thread(outline) for outline in found]

    def set_thread(self, row: ThreadRow) -> Program[None]:
        return self._store.set_thread(self._seal_thread(row))

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        if self._seal_metadata:  # what is sealed cannot be searched in SQL, so the saver filters all of it
            scope = scope._replace(fragments=(), text=None)
        found = yield from self._store.thread_page(scope, after, offset, limit)
        return [self._open_thread(outline) for outline in found]

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        return self._store.count_threads(scope)

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        return self._store.thread_counts(thread_ids)

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        return self._store.lock_lease(thread_id)

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        return self._store.set_lease(thread_id, lease)

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        return self._store.renew_lease(thread_id, token, left)

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        return self._store.lease(thread_id)

    def reseal_thread(self, thread_id: str, *, plain: bool) -> Program[int]:
        """Seal the row of a locked thread again where another key sealed it. Returns how many rows that were."""
        found = yield from self._store.thread(thread_id)
        if found is None or not found.row.check or self._keyring.is_current(found.row.check):
            return 0
        try:
            opened = self._opened(found.row)
        except CorruptDataError:
            if not plain:
                raise
            opened = found.row
        yield from self.set_thread(opened)
        return 1

    def _seal_beginning(self, thread_id: str, beginning: Beginning) -> Beginning:
        if not beginning.check:
            return beginning
        return beginning._replace(check=self._sealed(thread_id, beginning.check, None, None))

    def _seal_thread(self, row: ThreadRow) -> ThreadRow:
        if not row.check:
            return row
        if not self._seal_metadata:
            return row._replace(check=self._sealed(row.thread_id, row.check, None, None))
        return row._replace(
            title=None, metadata=None, check=self._sealed(row.thread_id, row.check, row.title, row.metadata)
        )

    def _open_thread(self, outline: ThreadOutline) -> ThreadOutline:
        row = outline.row
        if not row.check:
            return outline
        try:
            return outline._replace(row=self._opened(row))
        except CorruptDataError:  # the reader's error names the row
            return outline._replace(row=row._replace(check=NOT_OPENED))

    def _opened(self, row: ThreadRow) -> ThreadRow:
        opened = self._keyring.open(row.check, _where(row.thread_id))
        check, title, metadata = msgpack.unpackb(opened, unicode_errors="surrogatepass")
        if row.title is not None or row.metadata is not None:
            title, metadata = row.title, row.metadata
        return row._replace(title=title, metadata=metadata, check=check)

    def _sealed(self, thread_id: str, check: bytes, title: str | None, metadata: str | None) -> bytes:
        packed: bytes = msgpack.packb((check, title, metadata), unicode_errors="surrogatepass")
        return self._keyring.seal(packed, _where(thread_id))


def _where(thread_id: str) -> bytes:
    packed: bytes = msgpack.packb(("thread", thread_id), unicode_errors="surrogatepass")
    return packed
