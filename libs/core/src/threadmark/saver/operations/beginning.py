"""Checks before a saver stores anything, and the beginning of a thread.

The saver's keyring, or the lack of one, must fit the database. A deployment that lost its keyring would otherwise store
new threads in clear between sealed ones without notice. One with another `digest_secret` would bring segments of two
secrets into one database: a new thread reads no segment before it adds its own.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError
from threadmark.format.digests import NOT_OPENED
from threadmark.metadata import to_json
from threadmark.model import UpgradeReport
from threadmark.program import Operation, Program, read, read_existing, write
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.reading import expect_plain, load
from threadmark.saver.proving import metadata_of, sound_row
from threadmark.sealing import Cipher, SegmentNames
from threadmark.store.contract import Added, Change, Outline, Scope, Store, was_added
from threadmark.store.threads import thread_row

_LOOKED_AT = 4
"""Checkpoints, the newest. One that holds a value with segments is enough."""


def setup(context: SaverContext) -> Operation[None]:
    """Create missing tables, as any transaction does that may: this one asks for next to nothing."""
    yield from read(context.store.epoch, "")


def upgrade(store: Store, *, dry_run: bool) -> Operation[UpgradeReport]:
    """Switch a database to the newest form, after the steps that any first use of it takes.

    Pass the store of the backend: the stores that wrap it have no format.
    """
    yield from read(store.epoch, "")
    report = yield from (read if dry_run else write)(store.upgrade, dry_run=dry_run)
    while not dry_run and (yield from read(store.awaits_others)):
        pass
    return report


def check_keyring(context: SaverContext, *, creates_tables: bool = True) -> Operation[None]:
    """Look at the stored rows, once for each saver. Raises ConfigError if this saver must not add to it.

    Without `creates_tables`, none are made for it: others of the same database look before they add rows of their own.
    """
    names = context.segment_names
    if names is None or context.cipher is None:
        yield from expect_plain(context, creates_tables=creates_tables)
    elif not names.are_proven:
        reading = read if creates_tables else read_existing
        yield from reading(_expect_same_keys, _of_all_owners(context), context.cipher, names)
    if creates_tables:  # else there may be no table yet, and the saver's first put looks again
        context.keyring_check.done = True


def add_first(store: Store, change: Change, *, about_thread: Mapping[str, Any]) -> Program[Added]:
    """Apply a change, and if it adds the first checkpoint of its thread, add entries to the thread's metadata.

    Metadata that the thread has already stays, also under these keys.
    """
    yield from store.lock(change.thread_id)
    heads = yield from store.heads(change.thread_id, None)
    added = yield from store.add(change)
    is_first = not heads and was_added(change, added)
    outline = (yield from store.thread(change.thread_id)) if is_first else None
    if outline is not None:
        row = sound_row(outline)
        yield from store.set_thread(thread_row(row._replace(metadata=to_json({**about_thread, **metadata_of(row)}))))
    return added


def _of_all_owners(context: SaverContext) -> SaverContext:
    """Return the context of a view without its owner, who may have no checkpoint yet: the keys are those of all."""
    if context.seal is None or context.threads.owner is None:
        return context
    return context._replace(store=context.seal(), threads=context.threads._replace(owner=None))


def _expect_same_keys(context: SaverContext, cipher: Cipher, names: SegmentNames) -> Program[None]:
    """Look at the newest checkpoints: one must open, and a segment must have been named with the keyring's secret.

    There may be none: in a new database, keys that are kept nowhere are warned of.
    """
    outlines: Sequence[Outline] = ()
    with suppress(CorruptDataError):  # a reader finds a row that is damaged, or not sealed yet
        outlines = yield from context.store.page(Scope(), None, _LOOKED_AT)
    if not outlines:
        cipher.warn_of_lost_keys()
    opened: list[bool] = []
    for outline in outlines:
        if not any(opened):
            rows = yield from context.store.rows(outline.thread_id, [outline.key])
            opened += [row.check != NOT_OPENED for row in rows]
    cipher.expect_to_open(opened)
    for outline in outlines:
        if not names.are_proven:
            with suppress(CorruptDataError):
                yield from load(context, ParsedConfig(outline.thread_id, outline.ns, outline.id), may_be_missing=True)
