"""Threadmark's savers: one for both APIs."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import threadmark


def opened(_: str, address: str) -> AbstractContextManager[Any]:
    """The saver for the blocking API."""
    return threadmark.open(address)


def aopened(_: str, address: str) -> AbstractAsyncContextManager[Any]:
    """The saver for asyncio."""
    return threadmark.open(address)
