"""Transactions over several calls: in a block of their own, and in a transaction of yours."""

from threadmark.transactions.block import HeldTransaction, SaverTransaction

__all__ = ["HeldTransaction", "SaverTransaction"]
