"""Before a saver with a keyring stores anything: the `digest_secret` must be the one that the database has.

A thread that is begun anew reads no segment, and so would bring segments of another secret into the database.
"""

from collections.abc import Sequence
from contextlib import suppress

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError
from threadmark.program import Operation, Program, read
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.reading import load
from threadmark.sealing import SegmentNames
from threadmark.store import Outline, Scope

_LOOKED_AT = 4
"""Checkpoints, the newest. One that holds a value with segments is enough."""


def expect_same_secret(context: SaverContext, names: SegmentNames) -> Operation[None]:
    """Look at the segments of the newest checkpoints, once for each saver. Raises ConfigError for another secret."""
    yield from read(_look, context, names)
    names.are_looked_at = True


def _look(context: SaverContext, names: SegmentNames) -> Program[None]:
    outlines: Sequence[Outline] = ()
    with suppress(CorruptDataError):  # what is damaged, or not sealed yet, is found by who reads it
        outlines = yield from context.store.page(Scope(), None, _LOOKED_AT)
    for outline in outlines:
        if not names.are_proven:
            with suppress(CorruptDataError):
                yield from load(context, ParsedConfig(outline.thread_id, outline.ns, outline.id), early=True)
