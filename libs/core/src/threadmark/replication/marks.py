"""The mark of a checkpoint that was read from the side that does not take the writes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from threadmark.model import CheckpointTuple
from threadmark.replication.model import SideName
from threadmark.replication.pair import READ_FROM

READ_FROM_KEY = "__read_from"
"""In a configuration. Names that begin like this are no part of metadata."""


@contextmanager
def noted_reads() -> Iterator[Sequence[SideName]]:
    """A list to which the standby's name is added whenever something is read from there in this block."""
    sides: list[SideName] = []
    token = READ_FROM.set(sides)
    try:
        yield sides
    finally:
        READ_FROM.reset(token)


def marked(found: CheckpointTuple, sides: Sequence[SideName]) -> CheckpointTuple:
    """Return the same, with the side that it was read from in its config if that was the standby."""
    if not sides:
        return found
    configurable = {**found.config["configurable"], READ_FROM_KEY: sides[-1]}
    return found._replace(config={**found.config, "configurable": configurable})
