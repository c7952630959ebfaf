"""All cases. Each is a coroutine function that takes a `World` and whose name is a sentence about behaviour."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

from threadmark_conformance.backend import World
from threadmark_conformance.cases import (
    arguments,
    blaming,
    calls,
    cleaning,
    columns,
    comparing,
    concurrency,
    copying,
    crafting,
    deleting,
    delta,
    describing,
    diffing,
    expiry,
    extracting,
    forking,
    history,
    inspecting,
    isolation,
    judging,
    keeping,
    leases,
    listing,
    metadata,
    mistakes,
    outbox,
    owners,
    pending,
    pruning,
    reading,
    removing,
    repeating,
    retention,
    searching,
    sessions,
    sharing,
    sidebars,
    state_threads,
    states,
    states_of_talks,
    surviving,
    talking,
    text,
    threads,
    threads_of_talks,
    tokens,
    unfinished,
    writing,
    writing_again,
)


@dataclass(frozen=True)
class Case:
    """A sentence about behaviour, which you can call to prove it."""

    topic: str
    name: str
    prove: Callable[[World], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.topic}.{self.name}"

    async def __call__(self, world: World) -> None:
        """Prove the sentence on a fresh database."""
        await self.prove(world)


def _cases_of(module: ModuleType) -> Iterator[Case]:
    topic = module.__name__.rpartition(".")[2]
    for name, member in vars(module).items():
        is_own = inspect.isfunction(member) and member.__module__ == module.__name__
        if is_own and inspect.iscoroutinefunction(member) and name[0] != "_":
            yield Case(topic, name, member)


_TOPICS = (
    reading,
    writing,
    pending,
    writing_again,
    metadata,
    listing,
    removing,
    pruning,
    keeping,
    retention,
    sessions,
    expiry,
    extracting,
    surviving,
    repeating,
    calls,
    cleaning,
    columns,
    copying,
    crafting,
    deleting,
    delta,
    sharing,
    sidebars,
    state_threads,
    states,
    inspecting,
    judging,
    text,
    threads,
    unfinished,
    describing,
    isolation,
    mistakes,
    owners,
    arguments,
    concurrency,
    leases,
    tokens,
    talking,
    threads_of_talks,
    states_of_talks,
    history,
    forking,
    diffing,
    blaming,
    searching,
    outbox,
    comparing,
)

CASES = tuple(case for module in _TOPICS for case in _cases_of(module))
"""All cases, for pytest's `parametrize`. A new coroutine function in a module of cases becomes one."""

WITHOUT_REPLICATION = tuple(case for case in CASES if case.topic not in ("outbox", "comparing"))
"""The cases for a backend whose store is no `ReplicaStore`, and which can therefore not be part of a pair."""
