"""All cases about stores. Each is a coroutine function that takes a world, and its name is a sentence about behaviour.

Those of `STORE_CASES` follow from LangGraph's interface, and any store can pass them.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from threadmark_conformance.item_stores import (
    atomic,
    batches,
    crowds,
    damaged,
    exact,
    exchanged,
    expiring,
    filters,
    items,
    judged,
    labels,
    namespaces,
    operated,
    owned,
    pages,
    scopes,
    sealed,
    sweeping,
)


@dataclass(frozen=True)
class StoreCase:
    """A sentence about behaviour, which you can call to prove it."""

    topic: str
    name: str
    prove: Callable[[Any], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.topic}.{self.name}"

    async def __call__(self, world: Any) -> None:
        """Prove the sentence."""
        await self.prove(world)


def _cases_of(module: ModuleType) -> Iterator[StoreCase]:
    topic = module.__name__.rpartition(".")[2]
    for name, member in vars(module).items():
        if inspect.iscoroutinefunction(member) and member.__module__ == module.__name__ and name[0] != "_":
            yield StoreCase(topic, name, member)


_ANY = (items, batches, scopes, filters, pages, namespaces, labels, expiring)
_OWN = (exact, judged, owned, sealed, damaged, atomic, crowds, sweeping, operated, exchanged)

STORE_CASES = tuple(case for module in _ANY for case in _cases_of(module))
"""The cases for any store of LangGraph's interface, for pytest's `parametrize`."""

WITHOUT_TTL = tuple(case for case in STORE_CASES if case.topic != "expiring")
"""The cases for a store whose `supports_ttl` is false, or that has no `omit_expired`."""

OWN_CASES = tuple(case for module in _OWN for case in _cases_of(module))
"""The cases for Threadmark's stores, whatever their backend."""
