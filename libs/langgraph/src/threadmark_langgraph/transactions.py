"""Checkpointers in transactions: a copy under the same name, over a saver that is bound to the transaction."""

import copy
from typing import Any, Self, TypeVar

from threadmark import SaverProtocol
from threadmark.transactions import SaverTransaction

T = TypeVar("T")


class TransactionMethods:
    """The methods of a checkpointer for transactions over several calls."""

    _saver: SaverProtocol

    def transaction(self) -> SaverTransaction[Self]:
        """Return a transaction for a `with` or `async with` block that stores everything together or nothing.

        `tx.saver` is a checkpointer whose calls belong to the transaction, as with `threadmark.Saver.transaction`.
        """
        made = self._saver.transaction()
        return made._for_saver(_over(self, made.saver))  # noqa: SLF001 - this is where such copies are made

    def within(self, connection: Any) -> Self:
        """Return a checkpointer whose calls are part of the transaction that is open on your own connection."""
        return _over(self, self._saver.within(connection))


def _over(checkpointer: T, saver: SaverProtocol) -> T:
    clone: Any = copy.copy(checkpointer)
    vars(clone).pop("conn", None)  # with which something could be stored outside of the transaction
    vars(clone).pop("_companion", None)  # it would begin a transaction within the transaction
    clone._saver = saver  # noqa: SLF001 - of our own copy
    made: T = clone
    return made
