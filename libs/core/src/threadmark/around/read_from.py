"""Savers over several databases, whose checkpoints say if they were read from one that does not take the writes."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from threadmark.model import CheckpointTuple, Config
from threadmark.program import arun, run
from threadmark.saver import Saver
from threadmark.saver.operations import listing, reading

READ_FROM: ContextVar[list[str] | None] = ContextVar("READ_FROM", default=None)
"""A list to which the standby's name is added when something is read from it, or None if that is not needed."""


READ_FROM_KEY = "__read_from"
"""The key of the side in a configuration. Keys that begin with two underscores are no part of metadata."""


@contextmanager
def noted_reads() -> Iterator[Sequence[str]]:
    """Return a list to which the standby's name is added whenever this block reads from it."""
    sides: list[str] = []
    token = READ_FROM.set(sides)
    try:
        yield sides
    finally:
        READ_FROM.reset(token)


def with_read_from(found: CheckpointTuple, sides: Sequence[str]) -> CheckpointTuple:
    """Return the checkpoint. If it was read from the standby, its config names that side."""
    if not sides:
        return found
    configurable = {**found.config["configurable"], READ_FROM_KEY: sides[-1]}
    return found._replace(config={**found.config, "configurable": configurable})


class ReadFromSaver(Saver):
    """A saver that may read from a pair, directly or through a cache."""

    def get_tuple(self, config: Config | str) -> CheckpointTuple | None:
        """Like `get`, but return the checkpoint with its metadata, parent and pending writes.

        If it was read from the side that does not take the writes, because the other one is away, its config says
        so: `configurable["__read_from"]` is "primary" or "secondary". The same applies to `list`.
        """
        with noted_reads() as sides:
            found = run(self._driver, reading.get_tuple(self._context, config))
        return found and with_read_from(found, sides)

    async def aget_tuple(self, config: Config | str) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        with noted_reads() as sides:
            found = await arun(self._driver, reading.get_tuple(self._context, config))
        return found and with_read_from(found, sides)

    def _pages(self, asked: listing.Listing) -> Iterator[CheckpointTuple]:
        reader = listing.Reader(self._context, asked)
        while reader.more:
            with noted_reads() as sides:
                batch = run(self._driver, reader.next_batch())
            for item in reader.readable(batch):
                yield with_read_from(item, sides)
        reader.finish()

    async def _apages(self, asked: listing.Listing) -> AsyncIterator[CheckpointTuple]:
        reader = listing.Reader(self._context, asked)
        while reader.more:
            with noted_reads() as sides:
                batch = await arun(self._driver, reader.next_batch())
            for item in reader.readable(batch):
                yield with_read_from(item, sides)
        reader.finish()
