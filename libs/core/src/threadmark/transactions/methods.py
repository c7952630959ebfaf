"""The saver's methods that let several calls be one transaction, and the savers that they return.

A bound saver is a copy of a saver with a driver that plays programs in a transaction which others end. It shares no
cache with the saver that it was made of: nothing that is rolled back may be remembered as stored.
"""

import copy
from typing import Any, Self, TypeVar

from threadmark.errors import ConfigError
from threadmark.program import Driver
from threadmark.saver.kit import SaverContext
from threadmark.transactions.block import HeldTransaction, SaverTransaction

T = TypeVar("T")


class TransactionMethods:
    """The saver's methods for transactions over several calls. They serve both APIs."""

    _driver: Driver
    _context: SaverContext
    _no_transactions = "its backend does not offer them"
    """Why this kind of saver has no transactions over several calls."""

    def transaction(self) -> SaverTransaction[Self]:
        """Return a transaction for a `with` or `async with` block that stores everything together or nothing.

        `with saver.transaction() as tx:` gives you `tx.saver`, a saver with every method, whose calls belong to the
        transaction: its checkpoints, its writes, and the items of `Store(tx.saver)`. They are committed when the block
        ends, and dropped if the block raises. A call that fails leaves nothing behind, and the others may go on. Until
        the block ends, no other saver sees any of it. Keep the block short: on SQLite and in memory, other writers wait
        for its end. Nothing in the block is tried again if the connection is lost; repeat the block.

        Raises ConfigError on Redis, and for a saver over two databases or behind a cache. docs/how-to/transactions.md
        has examples and the limits.
        """
        self._context.expect_unbound("transaction")
        held = self._held_transaction()
        return SaverTransaction(self._driver, held, bound(self, held, remembers=True))

    def within(self, connection: Any) -> Self:
        """Return a saver whose calls are part of the transaction that is open on your own connection.

        `connection` is a `sqlite3.Connection` or `aiosqlite.Connection` to the file of this saver, or a psycopg
        connection. You commit or roll back, and so decide about your rows and the saver's at once. Each call runs in a
        savepoint: if it fails, it leaves nothing behind, and your transaction can go on. Nothing is tried again, and
        the saver remembers nothing from one call to the next. Closing it leaves your connection as it is.

        The tables must exist: call `setup` of this saver before. On Postgres, storing needs the isolation level READ
        COMMITTED. docs/how-to/transactions.md has examples and the limits.
        """
        self._context.expect_unbound("within")
        return bound(self, self._driver_within(connection), remembers=False)

    def _held_transaction(self) -> HeldTransaction:
        """Return a transaction that has not begun. Backends that have transactions override this."""
        raise self._refusal()

    def _driver_within(self, connection: Any) -> Driver:  # noqa: ARG002 - that of the backends that override this
        """Return the driver for a connection with an open transaction. Backends that have connections override this."""
        raise self._refusal()

    def _refusal(self) -> ConfigError:
        return ConfigError(f"{self!r} has no transactions over several calls: {self._no_transactions}")


def bound(saver: T, driver: Driver, *, remembers: bool) -> T:
    """Return a copy of a saver that runs everything on this driver, with separate caches.

    If it `remembers` nothing, each call reads everything that it counts on: then you may roll back to a savepoint of
    yours between two calls.
    """
    other: Any = copy.copy(saver)
    if not remembers:
        other._options = {**other._options, "cache_bytes": 0}  # noqa: SLF001 - of our own copy, as below
    former: SaverContext = other._context  # noqa: SLF001
    context: SaverContext = other._new_context()  # noqa: SLF001
    context.keyring_check.done = former.keyring_check.done
    context.keyring_check.of_items = former.keyring_check.of_items
    context = context._replace(serde=former.serde, moves=former.moves, is_bound=True)
    owner = former.threads.owner
    other._context = context if owner is None else context.of_owner(owner)  # noqa: SLF001
    other._driver = driver  # noqa: SLF001
    copied: T = other
    return copied
