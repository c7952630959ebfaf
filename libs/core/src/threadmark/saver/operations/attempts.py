"""What a transaction that is run again may know of its earlier attempt.

Where a connection is lost, a driver runs the transaction again, although the commit may have been carried out and only
its answer been lost. Most transactions come to the same then. One that would take its own work for somebody else's is
given an `Earlier`, and leaves in it what it came to.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class Earlier(Generic[T]):
    """What an earlier attempt came to. It may have been undone afterwards."""

    result: T | None = None
