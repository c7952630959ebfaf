"""Before a saver stores anything: its keyring, or that it has none, must fit the database.

A deployment that lost its keyring would store new threads in clear beside sealed ones, and nobody would see it. One
with another `digest_secret` would bring segments of two secrets into one database: a new thread reads no segment before
it adds its own.
"""

from collections.abc import Sequence
from contextlib import suppress

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError
from threadmark.program import Operation, Program, read
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.reading import expect_plain, load
from threadmark.sealing import SegmentNames
from threadmark.store import Outline, Scope

_LOOKED_AT = 4
"""Checkpoints, the newest. One that holds a value with segments is enough."""


def check_keyring(context: SaverContext) -> Operation[None]:
    """Look at what is stored, once for each saver. Raises ConfigError if this saver must not add to it."""
    names = context.segment_names
    if names is None:
        yield from expect_plain(context)
    elif not names.are_proven:
        yield from read(_expect_same_secret, context, names)
    context.keyring_check.done = True


def _expect_same_secret(context: SaverContext, names: SegmentNames) -> Program[None]:
    """Load the newest checkpoints until a segment has proven the secret. There may be none."""
    outlines: Sequence[Outline] = ()
    with suppress(CorruptDataError):  # what is damaged, or not sealed yet, is found by who reads it
        outlines = yield from context.store.page(Scope(), None, _LOOKED_AT)
    for outline in outlines:
        if not names.are_proven:
            with suppress(CorruptDataError):
                yield from load(context, ParsedConfig(outline.thread_id, outline.ns, outline.id), early=True)
