"""The constructor of `PostgresSaver`: it turns a URL, a connection or a pool into a driver and a store."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from threadmark.backends import (
    ConfigError,
    Driver,
    Saver,
    SaverOptions,
    arun,
    check_flag,
    check_seconds,
    check_word,
    options_in,
    run,
    short_repr,
    slow_after,
)
from threadmark_postgres.driver import (
    HeldTransaction,
    PostgresDriver,
    ReadOnlyDriver,
    ReplicaDriver,
    Settings,
    WithinAsyncConnection,
    WithinConnection,
    aio,
    blocking,
)
from threadmark_postgres.driver.settings import PATH_PARAMETERS
from threadmark_postgres.migrations import build_indexes, checked_layout
from threadmark_postgres.options import PostgresOptions, ReadFrom
from threadmark_postgres.report import PostgresReport, report
from threadmark_postgres.schema import quoted
from threadmark_postgres.store import PostgresStore

if TYPE_CHECKING:
    import psycopg_pool

    Database = (
        str
        | psycopg.Connection[Any]
        | psycopg.AsyncConnection[Any]
        | psycopg_pool.ConnectionPool[Any]
        | psycopg_pool.AsyncConnectionPool[Any]
    )


class PostgresSaver(Saver):
    """Saves to Postgres (13 or newer), for any number of threads, event loops and processes at once.

    `database` is a URL or another libpq connection string, a psycopg connection or a psycopg_pool pool. Given a string,
    the saver opens connections when it needs them, up to `pool_size` for each event loop and as many for blocking
    callers. It replaces connections that break, and closes all of them when you close the saver. A connection or pool
    that you pass stays yours to open and close.

    `schema` is the schema of the tables; by default the connection's search path decides. With `prepare=False` no
    statement is prepared, which PgBouncer before 1.21 needs in transaction mode.

    If a database that was reached before cannot be reached, an operation is tried again for `timeout` seconds and then
    raises TransientStoreError. A saver that never had a connection raises its error at once, because a wrong address
    looks like a server that is away; it waits only if the server answers that it is starting or full. If a server
    disappears without closing its connections (the machine or the network fails), that shows only after the times of
    libpq's parameters: `connect_timeout` (10 s by default), `keepalives_idle`, `keepalives_interval` and
    `keepalives_count` (30 s, 10 s, 3) and `tcp_user_timeout` (30000 ms, for data that was sent and not acknowledged).
    Set them in the URL to change them. A server that is there and does not answer is waited for until the
    `statement_timeout` ends the statement. A connection or pool that you pass keeps its own parameters, and a pool its
    own timeout.

    Calls that put at the same time share a round trip and a commit, up to sixteen of them. With `combine=False`, and on
    Citus, each call is sent by itself.

    With `read_only=True` nothing is stored, and tables are neither created nor updated.

    With `read_from="replica"` the saver is read-only, too, and reads from a standby among the servers in the URL, which
    suits listings, history and the page. What it reads is at most `max_staleness` seconds old. If no standby is that
    fresh, it reads from the primary. With `max_staleness=None` it accepts any standby and does not ask the primary.

    A transaction that takes `slow` seconds or more is logged as a warning; with None none is.
    """

    def __init__(
        self,
        database: "Database",
        *,
        schema: str | None = None,
        pool_size: int = 16,
        prepare: bool = True,
        application_name: str = "threadmark",
        timeout: float = 30.0,
        combine: bool = True,
        read_only: bool = False,
        read_from: ReadFrom = "primary",
        max_staleness: float | None = 10.0,
        slow: float | None = 1.0,
        **options: Unpack[SaverOptions],
    ) -> None:
        if type(pool_size) is not int or pool_size < 1:
            raise ConfigError(f"pool_size must be a number from 1 on, not {pool_size!r}")
        check_flag(prepare, "prepare")
        check_flag(combine, "combine")
        check_flag(read_only, "read_only")
        check_word(read_from, ReadFrom, "read_from")
        check_seconds(timeout, "timeout")
        if max_staleness is not None:
            check_seconds(max_staleness, "max_staleness")
        if not isinstance(application_name, str):
            raise ConfigError(f"application_name must be a string, not {short_repr(application_name)}")
        if schema is not None:
            quoted(schema)
        settings = Settings(
            "", schema, pool_size, prepare, application_name, timeout, combine, slow_after(slow), read_only
        )
        driver: Driver
        if read_from == "replica":
            replica = _replica_driver(database, settings._replace(read_only=True), max_staleness)
            self._postgres, driver = replica.primary, ReadOnlyDriver(replica)
        else:
            self._postgres = driver = _driver(database, settings)
            if read_only:
                driver = ReadOnlyDriver(driver)
        super().__init__(PostgresStore(schema, self._postgres.first_start), driver, **options)
        self._schema = schema

    def setup(self, *, partitions: int | None = None, distribute: str | None = None) -> None:
        """Create the tables of a new database, or update tables of an earlier release to the current format.

        The first call of any method does this automatically. Call it to choose the time, to partition new tables by
        thread into `partitions` parts, or with `distribute="citus"` to distribute them by thread over the nodes of a
        Citus cluster. Only this method builds indexes that a release adds to tables in use, while others write, and
        makes functions again that are missing, or that use other tables because their schema was renamed.
        """
        self._postgres.setup(checked_layout(partitions, distribute))
        run(self._postgres, build_indexes(self._schema))

    async def asetup(self, *, partitions: int | None = None, distribute: str | None = None) -> None:
        """Like `setup`, for asyncio."""
        await self._postgres.asetup(checked_layout(partitions, distribute))
        await arun(self._postgres, build_indexes(self._schema))

    def _held_transaction(self) -> HeldTransaction:
        if self._driver is not self._postgres:
            raise ConfigError(f"{self!r} is read-only: a transaction has nothing to store")
        return HeldTransaction(self._postgres)

    def _driver_within(self, connection: Any) -> Driver:
        if not isinstance(connection, (psycopg.Connection, psycopg.AsyncConnection)):
            raise ConfigError(f"expected a psycopg connection, got {type(connection).__name__}")
        settings = self._postgres.settings._replace(conninfo=_conninfo_of(connection))
        driver: Driver
        if isinstance(connection, psycopg.Connection):
            driver = WithinConnection(connection, settings, self._postgres.main_threads_own)
        else:
            driver = WithinAsyncConnection(connection, settings)
        return ReadOnlyDriver(driver) if isinstance(self._driver, ReadOnlyDriver) else driver

    def report(self) -> PostgresReport:
        """Return the versions, durability, size and warnings of the server and the database.

        It does not create tables.
        """
        return run(self._driver, report(self._schema))

    async def areport(self) -> PostgresReport:
        """Like `report`, for asyncio."""
        return await arun(self._driver, report(self._schema))


def open_url(url: str, **options: Unpack[PostgresOptions]) -> PostgresSaver:
    """Return a saver for `postgresql://user:password@host:port/database`."""
    rest, written = options_in(url, PostgresOptions)
    return PostgresSaver(rest, **{**written, **options})


def _driver(database: Any, settings: Settings) -> PostgresDriver:
    if isinstance(database, str):
        _check_conninfo(database)
        return PostgresDriver(settings._replace(conninfo=database))
    if isinstance(database, psycopg.Connection):
        borrowed = blocking.BorrowedConnection(_Exclusive(database).hold)
        return PostgresDriver(settings._replace(conninfo=_conninfo_of(database)), borrowed=borrowed)
    if isinstance(database, psycopg.AsyncConnection):
        borrowed_async = aio.BorrowedConnection(_AsyncExclusive(database).hold)
        return PostgresDriver(settings._replace(conninfo=_conninfo_of(database)), borrowed_async=borrowed_async)
    return _driver_of_pool(database, settings)


def _replica_driver(database: Any, settings: Settings, max_staleness: float | None) -> ReplicaDriver:
    if not isinstance(database, str):
        raise ConfigError(
            "read_from='replica' needs a URL that names the primary and its standbys, such as "
            f"'postgresql://user@one,two/database', not {type(database).__name__}"
        )
    _check_conninfo(database)
    return ReplicaDriver(settings._replace(conninfo=database), max_staleness)


def _check_conninfo(conninfo: str) -> None:
    try:
        parameters = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:  # its text may quote the password
        raise ConfigError(f"this is not a Postgres connection string: {_HOW_TO_WRITE}") from None
    hosts, ports = str(parameters.get("host", "")), str(parameters.get("port", ""))
    # In "p@ssword@host" the host would be "ssword@host", and messages name it. Only a socket's name begins with "@".
    if any("@" in host[1:] for host in hosts.split(",")) or not all(map(str.isdigit, filter(None, ports.split(",")))):
        raise ConfigError(f"this connection string has no valid host and port: {_HOW_TO_WRITE}")


_HOW_TO_WRITE = (
    "write 'postgresql://user:password@host:5432/database', in the password @ as %40, / as %2F and % as %25, "
    "and behind a ? parameters of libpq, such as ?sslmode=require, for threadmark.open options of the saver, such as "
    "?schema=agents, too"
)


def _driver_of_pool(pool: Any, settings: Settings) -> PostgresDriver:
    kinds = _pool_classes()
    if isinstance(pool, kinds[:1]):
        settings = settings._replace(conninfo=_conninfo_of_pool(pool))
        return PostgresDriver(settings, borrowed=blocking.BorrowedConnection(pool.connection, pool.check))
    if isinstance(pool, kinds[1:]):
        settings = settings._replace(conninfo=_conninfo_of_pool(pool))
        return PostgresDriver(settings, borrowed_async=aio.BorrowedConnection(partial(aio.PoolLoan, pool), pool.check))
    raise ConfigError(f"expected a URL, a psycopg connection or a psycopg_pool pool, got {type(pool).__name__}")


def _conninfo_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> str:
    """Return which database a connection leads to, for messages: a connection string without user and password."""
    try:
        return _without_credentials(connection.info.get_parameters())
    except psycopg.OperationalError:  # it is closed, which its first use tells
        return ""


def _conninfo_of_pool(pool: Any) -> str:
    """Like `_conninfo_of`, for a pool. Empty if the pool makes its connection strings by a function."""
    try:
        return _without_credentials(conninfo_to_dict(pool.conninfo)) if isinstance(pool.conninfo, str) else ""
    except psycopg.ProgrammingError:  # its first connection fails, which tells
        return ""


def _without_credentials(parameters: Mapping[str, Any]) -> str:
    return make_conninfo("", **{key: parameters[key] for key in PATH_PARAMETERS if parameters.get(key) is not None})


def _pool_classes() -> tuple[type[Any], ...]:
    """Return the classes of the blocking and the asyncio pool, or none if psycopg_pool is not installed."""
    try:
        import psycopg_pool
    except ImportError:
        return ()
    return psycopg_pool.ConnectionPool, psycopg_pool.AsyncConnectionPool


class _Exclusive:
    """A single connection, held by one transaction at a time."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._turn = threading.Lock()

    @contextmanager
    def hold(self) -> Iterator[psycopg.Connection[Any]]:
        with self._turn:
            yield self._connection


class _AsyncExclusive:
    """Like `_Exclusive`, for asyncio."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with self._turn:
            yield self._connection
