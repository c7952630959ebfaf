"""The two APIs of a saver as one: cases call the `a` methods, and for the blocking API these run on threads."""

import asyncio
import copy
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from threadmark.interfaces import Interface
from threadmark.model import CheckpointTuple
from threadmark.saver import Saver
from threadmark.types import Lease

T = TypeVar("T", bound=Saver | Interface)


class Api(Protocol):
    """Gives a saver, or an interface over one, the `a` methods of one API."""

    def __call__(self, subject: T) -> T:
        """Return the same object, or a copy of it that shares everything."""


def _asyncio(subject: T) -> T:
    return subject


def _blocking(subject: T) -> T:
    """Return a copy whose `a` methods call the blocking ones, each call on some thread of a pool."""
    other = copy.copy(subject)
    kind: Any = type(subject)  # a class is hashable, which mypy does not see of this one
    other.__class__ = blocking_class(kind)
    return other


@functools.cache
def blocking_class(kind: type[Any]) -> type[Any]:
    """Return a subclass, so that methods which the object's own class overrides are the ones that are called."""
    names = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if hasattr(kind, f"a{name}")]
    methods = {f"a{name}": _awaitable(name) for name in names}
    if issubclass(kind, Saver):
        methods |= {"alist": _alist, "lease": _lease}
    return type(f"Blocking{kind.__name__}", (kind,), methods)


def _awaitable(name: str) -> Callable[..., Any]:
    async def method(self: object, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(getattr(self, name), *arguments, **options)

    return method


async def _alist(self: Saver, *arguments: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
    items = await asyncio.to_thread(self.list, *arguments, **options)
    while (item := await asyncio.to_thread(next, items, None)) is not None:
        yield item


def _lease(self: Saver, thread_id: str, **options: Any) -> Any:
    return _BlockingLease(Saver.lease(self, thread_id, **options))


class _BlockingLease:
    """A lease whose `async with` enters and leaves the blocking lease."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lease, name)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._lease.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._lease.__exit__, *error)  # type: ignore[arg-type]  # as `async with` gives them

    async def arenew(self) -> None:
        await asyncio.to_thread(self._lease.renew)

    async def arelease(self) -> bool:
        return await asyncio.to_thread(self._lease.release)


APIS: Mapping[str, Api] = {"asyncio": _asyncio, "blocking": _blocking}
"""The APIs by name."""
