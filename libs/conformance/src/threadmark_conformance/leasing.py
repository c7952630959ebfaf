"""Tools for the cases about leases: runs under a lease, and holders that do not renew theirs."""

import asyncio
from typing import Any

from threadmark.model import Config
from threadmark.saver import Saver
from threadmark.store.threads import LeaseRow
from threadmark.types import Lease
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, checkpoint

LONG = 60
"""Seconds that no case takes."""

SHORT = 0.25
"""Seconds after which a lease that is not renewed is over."""


def under(lease: Lease, checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return the configuration to store something under a lease."""
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {**lease.config["configurable"], "checkpoint_ns": "", **named}}


def run_under(saver: Saver, lease: Lease) -> Run:
    """Return a run that stores everything under a lease."""
    run = Run(saver, lease.thread_id)
    run.config = under(lease)
    return run


async def put(saver: Saver, config: Config, **channels: Any) -> dict[str, Any]:
    """Put a checkpoint with these channels."""
    return await saver.aput(config, checkpoint(channels), {}, dict.fromkeys(channels, 1))


async def taken(saver: Saver, thread_id: str = "thread", **options: Any) -> Lease:
    """Take a lease that is never renewed or released, as if the process that took it slept."""
    lease = saver.lease(thread_id, **{"ttl": LONG, **options})
    await lease.__aenter__()
    renewal: Any = lease._renewal  # noqa: SLF001 - no saver does without
    await renewal.astop()
    return lease


async def is_over(saver: Saver, thread_id: str = "thread") -> None:
    """Wait until the thread has no live lease."""
    async with asyncio.timeout(LONG):
        while await _is_busy(saver, thread_id):  # noqa: ASYNC110 - the database's clock raises no event
            await asyncio.sleep(0.01)


async def is_lost(lease: Lease) -> bool:
    """Wait until the holder knows that its lease is lost."""
    return await asyncio.to_thread(lease.lost.wait, LONG)


async def microseconds_left(world: World) -> int:
    """Return how long the lease lives on."""
    lease: LeaseRow = await world.in_store(lambda store: store.lease("thread"))
    return lease.left


async def _is_busy(saver: Saver, thread_id: str) -> bool:
    found = await saver.aget_thread(thread_id)
    return found is not None and found.status == "busy"
