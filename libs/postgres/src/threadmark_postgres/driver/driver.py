"""The driver for both APIs. It sets up the database at first use, and retries failures that pass."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from threadmark.backends import (
    ClosedError,
    ConfigError,
    Outage,
    SchemaError,
    Transaction,
    Workers,
    close_at_exit,
    expect_outside,
    may_be_interrupted,
    reset_after_fork,
    run_on_loop,
    was_closed,
)
from threadmark_postgres import migrations
from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.batching import BatchMember
from threadmark_postgres.driver.cancellation import for_main_thread, in_order, on_thread
from threadmark_postgres.driver.conversation import LostCommit, conversation
from threadmark_postgres.driver.failures import (
    Retries,
    check_worth_waiting,
    explaining_migration,
    is_for_all,
    is_switched,
    note_failed_batch,
    raise_encoding_error,
)
from threadmark_postgres.driver.log import log
from threadmark_postgres.driver.loop_pool import LoopPool
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.migrations import Found, Layout, format_of, migrate
from threadmark_postgres.steps import Query, Rows, execute

_inherited: list[object] = []
"""Pools that a fork carried into this process. They are kept, because closing them could touch the parent's
sessions.
"""


class PostgresDriver:
    """Runs programs on a database, over its own pools or the connection or pool that you passed."""

    def __init__(
        self,
        settings: Settings,
        borrowed: blocking.BorrowedConnection | None = None,
        borrowed_async: aio.BorrowedConnection | None = None,
    ) -> None:
        self._settings = settings
        self._outage = Outage(log, settings)
        self._borrowed = borrowed
        self._borrowed_async = borrowed_async
        self._changing = threading.Lock()
        self._pool: blocking.ConnectionSource | None = None
        self._pools: dict[asyncio.AbstractEventLoop, aio.ConnectionSource] = {}
        self._threads: blocking.StatementBatcher | None = None
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, aio.StatementBatcher] = WeakKeyDictionary()
        self._process = os.getpid()
        self._closed = False
        self._layout = Layout()
        self._repairs = False
        """Whether functions that are missing, or use other tables, are made again."""
        self._combines = settings.combine
        self._reached = borrowed is not None or borrowed_async is not None
        """Whether there ever was a connection. A connection or pool that you passed counts."""
        self._ready = False
        self._first_start: int | None = None
        self._main_threads_own = Workers(1, "threadmark-postgres-main")
        """Runs the main thread's calls, in order: on that thread an interrupt could come at any instruction."""
        self._workers = Workers(settings.pool_size, "threadmark-postgres")
        """Run blocking calls for tasks."""
        self._stopping = Workers(1, "threadmark-postgres-stopping")
        self._turn_of_main_thread = asyncio.Lock()
        reset_after_fork(self)
        close_at_exit(self)

    def __str__(self) -> str:
        return str(self._settings)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        if transaction.writes or self._borrowed is not None or self._borrowed_async is not None:
            expect_outside(self)
        try:
            return self._run_anywhere(transaction)
        finally:
            if log.noted:
                log.flush()

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        if transaction.writes or self._borrowed is not None or self._borrowed_async is not None:
            expect_outside(self)
        try:
            return await self._arun_anywhere(transaction)
        finally:
            if log.noted:
                log.flush()

    def _run_anywhere(self, transaction: Transaction[Any]) -> Any:
        if self._borrowed_async is not None:
            return self._run_on_loop(self._borrowed_async.loop, transaction)
        if may_be_interrupted():
            work = partial(self._run, transaction)
            return for_main_thread(self._main_threads_own, work, waits=self._borrowed is not None)
        return self._run_batched(transaction)

    async def _arun_anywhere(self, transaction: Transaction[Any]) -> Any:
        if self._borrowed is not None:
            # You may be using a single connection yourself, so it is not disturbed.
            stopping = self._stopping if self._borrowed.is_pool else None
            return await on_thread(self._workers, partial(self._run_batched, transaction), stopping)
        if self._borrowed_async is not None:
            # The connection is yours, so it must not be dropped: a cancelled caller gets it back as it was.
            return await in_order(self._arun_batched(transaction))
        return await self._arun_batched(transaction)

    def _run_on_loop(self, loop: asyncio.AbstractEventLoop | None, transaction: Transaction[Any]) -> Any:
        """Run the program on the event loop of the connection or pool. The caller waits on another thread."""
        if loop is None or not loop.is_running() or loop is aio.running_loop():
            raise ConfigError(
                "this saver was given an asyncio connection or pool, which is used on its event loop: call "
                "the methods that start with 'a' there, or blocking ones on other threads while the loop runs; "
                "or give a URL to use both everywhere"
            )
        return run_on_loop(partial(self._in_turn if may_be_interrupted() else self._arun_anywhere, transaction), loop)

    async def _in_turn(self, transaction: Transaction[Any]) -> Any:
        """Like `arun`, in turn: the main thread may have left an earlier call by an interrupt, and that still runs."""
        async with self._turn_of_main_thread:
            return await self._arun_anywhere(transaction)

    @property
    def settings(self) -> Settings:
        """The database and the options."""
        return self._settings

    @property
    def is_ready(self) -> bool:
        """Whether the tables are known to have the format of this release."""
        return self._ready

    def first_start(self) -> int | None:
        """Return when the server started that was found first. None if that is not known, or there are several."""
        return self._first_start

    @property
    def is_on_loop(self) -> bool:
        """Whether it was given an asyncio connection or pool."""
        return self._borrowed_async is not None

    @property
    def is_on_threads(self) -> bool:
        """Whether it was given a blocking connection or pool."""
        return self._borrowed is not None

    @property
    def main_threads_own(self) -> Workers:
        """The thread that does what the main thread asks for."""
        return self._main_threads_own

    @property
    def workers(self) -> Workers:
        """The threads that make blocking calls for tasks."""
        return self._workers

    def check(self) -> None:
        """Look whether the database can be used, and try again as in any transaction."""
        self._run(self._checking())

    async def acheck(self) -> None:
        """Like `check`, for asyncio."""
        await self._arun(self._checking())

    @contextmanager
    def lent(self) -> Iterator[blocking.Connection]:
        """Lend a connection for a transaction over several calls, to a database with tables."""
        with self._source().lend() as connection:
            self._reached = True
            if not self._ready:
                self._prepare(connection, creates_tables=True)
            yield connection

    @asynccontextmanager
    async def alent(self) -> AsyncIterator[aio.Connection]:
        """Like `lent`, for asyncio."""
        async with self._source_of_loop().lend() as connection:
            self._reached = True
            if not self._ready:
                await self._aprepare(connection, creates_tables=True)
            yield connection

    def setup(self, layout: Layout) -> None:
        """Create the tables, or update them to the current format, and make functions again that need it."""
        self._expect_setup(layout)
        self.run(self._checking())

    async def asetup(self, layout: Layout) -> None:
        """Like `setup`, for asyncio."""
        self._expect_setup(layout)
        await self.arun(self._checking())

    def close(self) -> None:
        """Close every pool, also those of other event loops. Running calls are finished."""
        for workers in (self._main_threads_own, self._workers, self._stopping):
            workers.end()
        with self._changing:
            self._closed = True
            pools: list[blocking.ConnectionSource | aio.ConnectionSource] = [
                *self._pools.values(),
                *([self._pool] if self._pool else []),
            ]
        for pool in pools:
            if self._process == os.getpid():
                pool.close()
        self._pools, self._pool = {}, None  # only now, so that after an interrupt the next call goes on
        was_closed(self)

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork, replace the lock: a thread that does not exist there may hold it."""
        self._changing = threading.Lock()

    def _run_batched(self, transaction: Transaction[Any]) -> Any:
        if transaction.writes and self._combines:
            part = BatchMember(transaction)
            try:
                if part.query is not None and part.ends_with(self._batcher().rows(part.query)):
                    return part.result
            finally:
                part.close()
        return self._run(transaction)

    async def _arun_batched(self, transaction: Transaction[Any]) -> Any:
        if transaction.writes and self._combines:
            part = BatchMember(transaction)
            try:
                if part.query is not None and part.ends_with(await self._batcher_of_loop().rows(part.query)):
                    return part.result
            finally:
                part.close()
        return await self._arun(transaction)

    def _run(self, transaction: Transaction[Any]) -> Any:
        begun, retries, lost = time.monotonic(), None, LostCommit()
        while True:
            source = self._source()
            failures = self._outage.failures
            try:
                result = self._run_once(source, transaction, lost)
            except UnicodeEncodeError as error:
                raise_encoding_error(error)
            except psycopg.Error as error:
                retries = retries or Retries(self._settings, begun, self._outage)
                wait = retries.next_wait(error, reached=self._reached)
                self._ready = self._ready and not is_switched(error)  # the next attempt reads the format again
                if is_for_all(error):
                    source.forget_idle(retries.left)
            else:
                if self._outage.is_on:
                    self._outage.succeeded(failures)
                return result
            time.sleep(wait)

    async def _arun(self, transaction: Transaction[Any]) -> Any:
        begun, retries, lost = time.monotonic(), None, LostCommit()
        while True:
            source = self._source_of_loop()
            failures = self._outage.failures
            try:
                result = await self._arun_once(source, transaction, lost)
            except UnicodeEncodeError as error:
                raise_encoding_error(error)
            except psycopg.Error as error:
                retries = retries or Retries(self._settings, begun, self._outage)
                wait = retries.next_wait(error, reached=self._reached)
                self._ready = self._ready and not is_switched(error)  # the next attempt reads the format again
                if is_for_all(error):
                    await source.forget_idle(retries.left)
            else:
                if self._outage.is_on:
                    self._outage.succeeded(failures)
                return result
            await asyncio.sleep(wait)

    def _run_shared(self, queries: Sequence[Query]) -> list[Rows]:
        failures = self._outage.failures
        try:
            with self._source().lend() as connection:
                self._reached = True
                if not self._ready:
                    self._prepare(connection, creates_tables=True)
                begun = time.monotonic()
                answers = blocking.answers(connection, queries, prepare=self._settings.prepare)
                if (seconds := time.monotonic() - begun) >= self._settings.slow:
                    self._note_slow(seconds, queries)
                if self._outage.is_on:
                    self._outage.succeeded(failures)
                return answers
        except psycopg.Error as error:
            if not self._reached:  # this is everybody's error: each by itself would wait for it once more
                check_worth_waiting(error, self._settings, reached=False)
            note_failed_batch(error, self._settings, self._outage)
            raise

    async def _arun_shared(self, queries: Sequence[Query]) -> list[Rows]:
        failures = self._outage.failures
        try:
            async with self._source_of_loop().lend() as connection:
                self._reached = True
                if not self._ready:
                    await self._aprepare(connection, creates_tables=True)
                begun = time.monotonic()
                answers = await aio.answers(connection, queries, prepare=self._settings.prepare)
                if (seconds := time.monotonic() - begun) >= self._settings.slow:
                    self._note_slow(seconds, queries)
                if self._outage.is_on:
                    self._outage.succeeded(failures)
                return answers
        except psycopg.Error as error:
            if not self._reached:  # this is everybody's error: each by itself would wait for it once more
                check_worth_waiting(error, self._settings, reached=False)
            note_failed_batch(error, self._settings, self._outage)
            raise

    def _run_once(self, source: blocking.ConnectionSource, transaction: Transaction[Any], lost: LostCommit) -> Any:
        with source.lend() as connection:
            self._reached = True
            if not self._ready and not self._prepare(connection, creates_tables=transaction.creates_tables):
                return None
            return self._transact(connection, transaction, lost)

    async def _arun_once(self, source: aio.ConnectionSource, transaction: Transaction[Any], lost: LostCommit) -> Any:
        async with source.lend() as connection:
            self._reached = True
            if not self._ready and not await self._aprepare(connection, creates_tables=transaction.creates_tables):
                return None
            return await self._atransact(connection, transaction, lost)

    def _note_slow(self, seconds: float, queries: Sequence[Query]) -> None:
        first = Transaction(execute, (queries[0].sql,), writes=True)
        log.note_slow(self._settings, seconds, first, others=len(queries) - 1)

    def _transact(
        self, connection: blocking.Connection, transaction: Transaction[Any], lost: LostCommit | None = None
    ) -> Any:
        begun = time.monotonic()
        result = blocking.converse(connection, conversation(transaction, lost), prepare=self._settings.prepare)
        if (seconds := time.monotonic() - begun) >= self._settings.slow:
            log.note_slow(self._settings, seconds, transaction)
        return result

    async def _atransact(
        self, connection: aio.Connection, transaction: Transaction[Any], lost: LostCommit | None = None
    ) -> Any:
        begun = time.monotonic()
        result = await aio.converse(connection, conversation(transaction, lost), prepare=self._settings.prepare)
        if (seconds := time.monotonic() - begun) >= self._settings.slow:
            log.note_slow(self._settings, seconds, transaction)
        return result

    def _prepare(self, connection: blocking.Connection, *, creates_tables: bool) -> bool:
        """Set up the database. Returns False if it has no tables and must not get any."""
        found = self._transact(connection, self._checking())
        if not (found.number or creates_tables):
            return False
        if found.number < migrations.CURRENT or (self._repairs and found.lacks_functions):
            self._expect_writable(found.number)
            begun = time.monotonic()
            with explaining_migration(self._settings, self._script(found)):
                found = self._transact(connection, self._migrating())
            log.note_migration(self._settings, found.number, migrations.CURRENT, begun)
        self._note_ready(found)
        return True

    async def _aprepare(self, connection: aio.Connection, *, creates_tables: bool) -> bool:
        """Like `_prepare`, for asyncio."""
        found = await self._atransact(connection, self._checking())
        if not (found.number or creates_tables):
            return False
        if found.number < migrations.CURRENT or (self._repairs and found.lacks_functions):
            self._expect_writable(found.number)
            begun = time.monotonic()
            with explaining_migration(self._settings, self._script(found)):
                found = await self._atransact(connection, self._migrating())
            log.note_migration(self._settings, found.number, migrations.CURRENT, begun)
        self._note_ready(found)
        return True

    def _note_ready(self, found: Found) -> None:
        # Citus would commit the calls of a batch one after the other.
        self._combines = self._settings.combine and found.distribute is None
        if found.distribute is None and self._first_start is None:
            self._first_start = found.started
        self._ready = True

    def _expect_writable(self, found: int) -> None:
        if self._settings.read_only:
            state = (
                f"format {found}, and this release reads {migrations.CURRENT}" if found else "no tables of Threadmark"
            )
            raise SchemaError(
                f"{self._settings} has {state}; a read-only saver does not change that, but setup() of a saver without "
                "read_only does"
            )

    def _expect_setup(self, layout: Layout) -> None:
        """Let the next transaction set up the database, even one that was ready: its tables may have been dropped."""
        self._layout, self._repairs, self._ready = layout, not self._settings.read_only, False

    def _checking(self) -> Transaction[Found]:
        about = self._settings.schema, str(self._settings)
        return Transaction(format_of, about, {"writes": not self._settings.read_only, "repairs": self._repairs})

    def _migrating(self) -> Transaction[Found]:
        return Transaction(migrate, (self._settings.schema, self._layout, str(self._settings)), writes=True)

    def _script(self, found: Found) -> str:
        layout = self._layout._replace(distribute=found.distribute) if found.number else self._layout
        return migrations.ddl_call(self._settings.schema, layout, found.number)

    def _source(self) -> blocking.ConnectionSource:
        if self._pool is not None and self._process == os.getpid() and not self._closed:
            return self._pool
        with self._changing:
            self._check_process()
            if self._borrowed is not None:
                return self._borrowed
            self._pool = self._pool or blocking.Pool(self._settings)
            return self._pool

    def _source_of_loop(self) -> aio.ConnectionSource:
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is not None and self._process == os.getpid() and not self._closed:
            return pool
        with self._changing:
            self._check_process()
            if self._borrowed_async is not None:
                return self._borrowed_async
            if loop not in self._pools:
                for ended in [other for other in self._pools if other.is_closed()]:
                    self._pools.pop(ended).close()
                self._pools[loop] = LoopPool(self._settings)
            return self._pools[loop]

    def _batcher(self) -> blocking.StatementBatcher:
        if self._threads is not None and self._process == os.getpid() and not self._closed:
            return self._threads
        with self._changing:
            self._check_process()
            if self._threads is None:
                self._threads = blocking.StatementBatcher(self._run_shared)
            return self._threads

    def _batcher_of_loop(self) -> aio.StatementBatcher:
        loop = asyncio.get_running_loop()
        if (batcher := self._tasks.get(loop)) is not None and self._process == os.getpid() and not self._closed:
            return batcher
        with self._changing:
            self._check_process()
            if loop not in self._tasks:
                self._tasks[loop] = aio.StatementBatcher(self._arun_shared)
            return self._tasks[loop]

    def _check_process(self) -> None:
        if self._closed:
            raise ClosedError
        if self._process == os.getpid():
            return
        if self._borrowed is not None or self._borrowed_async is not None:
            raise ClosedError("this saver's connection belongs to the process that forked; give a URL")
        _inherited.extend([self._pool, self._pools])
        self._pool, self._pools, self._process = None, {}, os.getpid()
        self._threads, self._tasks = None, WeakKeyDictionary()
        close_at_exit(self)
