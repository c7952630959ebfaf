"""A memory driver whose tables are kept in a file: read when it is made, stored by `sync` and when it is closed."""

import asyncio
import os
import threading
from functools import partial

from threadmark.errors import ClosedError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.rows import ThreadEntry, entries, tables_of
from threadmark.persistent.dictionary import checked_path
from threadmark.persistent.ending import AtExit
from threadmark.persistent.storage import Storage
from threadmark.serde import Serde

KIND = "memory saver"


class KeptDriver(MemoryDriver):
    """Runs programs on dictionaries that are kept in a file."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        super().__init__()
        self._closing = threading.RLock()
        self._storage = Storage(checked_path(file), "c", KIND, Serde(allow=()))
        try:
            self._tables = tables_of(self._storage.read())
        except BaseException:
            self._storage.close()
            raise
        self._at_exit = AtExit(self, self._storage.path)

    def __str__(self) -> str:
        return f"the memory of this process, kept in {self._storage.path!r}"

    def sync(self) -> None:
        """Store the threads that have changed, all or nothing. When this returns, they are on the disk."""
        self._storage.store(self._snapshot)

    def close(self) -> None:
        """Store everything, and let it go. If it cannot be stored, this raises and nothing is let go."""
        with self._closing:
            tables = self._tables
            try:
                with self._lock:
                    self._tables = None  # from now on nothing is put that would not be stored
                if tables is not None and self._storage.is_open:
                    tables.roll_back()
                    self._storage.store(partial(entries, tables))
            except BaseException:
                self._tables = tables
                raise
            self._storage.close()
            self._at_exit.forget()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await asyncio.to_thread(self.close)

    def __del__(self) -> None:
        if hasattr(self, "_at_exit"):  # it was opened
            try:
                self.close()
            finally:
                self._storage.close()

    def begin_anew(self) -> None:
        """In the child of a fork: it goes on with a copy, which is stored nowhere."""
        super().begin_anew()
        self._closing = threading.RLock()

    def _snapshot(self) -> list[ThreadEntry]:
        with self._lock:
            if self._tables is None:
                raise ClosedError
            self._tables.roll_back()  # what a transaction left that was interrupted
            return entries(self._tables)
