"""Questions to the base store of a world, which replication works on, below any encryption."""

from collections.abc import Callable
from typing import Any, cast

from threadmark.program import Program
from threadmark.store.contract import Store
from threadmark.store.replica import Copied, Entry, ReplicaStore, Summary
from threadmark_conformance.backend import World

ODD_NAMES = ("", "a", "é", "a:b", "a/b", "z\x00", "\U0001f600", "\ud800")
"""Names of threads that resemble names which backends use."""

MANY = 100
"""More rows than any case stores."""


def replicating(store: Store) -> ReplicaStore:
    """Return the store, which must have the operations for replication."""
    assert isinstance(store, ReplicaStore), (
        f"{type(store).__name__} has no operations for replication: add those of ReplicaStore, or run "
        "WITHOUT_REPLICATION in place of CASES"
    )
    return store


async def ask(world: World, method: Callable[..., Program[Any]], *args: Any) -> Any:
    """Call an operation of the base store in a separate transaction. Returns the answer."""
    return await world.in_base_store(lambda store: getattr(replicating(store), method.__name__)(*args))


async def outbox(world: World, thread_id: str | None = None) -> list[Entry]:
    """Return the entries in the outbox of one thread or of all."""
    return cast("list[Entry]", await ask(world, ReplicaStore.outbox, thread_id, MANY))


async def come(world: World, thread_id: str, copied: Copied) -> None:
    """Note how far a thread was copied from another database."""

    def program(store: Store) -> Program[None]:
        yield from store.lock(thread_id)
        yield from replicating(store).set_copied(thread_id, copied)

    await world.in_base_store(program)


async def summaries(world: World) -> list[Summary]:
    """Return the summaries of all threads."""
    return cast("list[Summary]", await ask(world, ReplicaStore.summaries, "", MANY))


async def everything(world: World) -> list[Any]:
    """Return everything that must be the same after a change that is not made."""
    threads, entries = await summaries(world), await outbox(world)
    names = {each.thread_id for each in threads} | {each.thread_id for each in entries}
    copied = await ask(world, ReplicaStore.copied, sorted(names))
    return [await ask(world, ReplicaStore.replica), entries, threads, copied]
