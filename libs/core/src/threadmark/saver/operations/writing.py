"""Writing: a checkpoint, and the pending writes of a task.

Values are encoded and compared before the transaction that writes starts. It then proves that the thread is still in
the epoch that the comparison relied on. If it is not, because something was deleted, the work is done again with the
present data. A change that was refused becomes an error that names the reason, the thread and the way out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from threadmark.config import ParsedConfig, owner_in
from threadmark.errors import (
    ConfigError,
    ConflictError,
    LeaseLostError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadmarkError,
    ThreadNotFoundError,
    TransientStoreError,
)
from threadmark.format.header import HEADER_TAG
from threadmark.format.packs import Written
from threadmark.format.rope import Source, layout
from threadmark.format.stored import LITERAL_LIMIT, Stored, before_literal
from threadmark.metadata import CheckedMetadata, checked_metadata, run_id_of
from threadmark.model import ChannelVersions, Checkpoint, Config
from threadmark.program import Operation, Program, read, write
from threadmark.saver.arguments import check_flag, checked_config, checked_task, microseconds_of
from threadmark.saver.batches import add_whole, has_more, rows_of_batch
from threadmark.saver.caches import Known
from threadmark.saver.context import SaverContext, extend_expiry, first_expiry, is_due
from threadmark.saver.next_nodes import header_tag
from threadmark.saver.operations.beginning import check_keyring
from threadmark.saver.operations.delta import COUNTERS, check_parent
from threadmark.saver.operations.pruning import keep_last
from threadmark.saver.operations.reading import load
from threadmark.saver.operations.removing import sweep
from threadmark.saver.proving import checkpoint_row
from threadmark.saver.storing import (
    Deduplicator,
    Draft,
    draft_of,
    encode_writes,
    needed_segments,
    rows_of_scalars,
)
from threadmark.store.contract import Added, Change, Outline, Refusal, Store, WriteRow, now, rank_after
from threadmark.store.threads import NO_BEGINNING, Beginning, LeaseRow, beginning

_ATTEMPTS = 64
"""If each of several puts to one thread prunes it (`keep_last`), one of them may be overtaken many times."""

_WORTH_COMPARING = 1024
"""A pending write shorter than this is stored as it is: mostly it is new, and comparing costs more than storing."""

_MUCH_WASTE = 64 * 1024
"""When writes that were replaced or left out have left this many bytes in a thread, its unused segments are removed."""

_WORTH_READING = 2048
"""From this many bytes on, a cold saver reads the thread's values before it stores pending writes."""


def put(
    context: SaverContext,
    config: Config,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    new_versions: ChannelVersions,
    *,
    expect_newest: bool | None,
) -> Operation[dict[str, Any]]:
    """Store `checkpoint` as a child of the one in `config`. Returns the config of the new checkpoint."""
    continues = checked_config(config)
    if expect_newest is None:
        expect_newest = config["configurable"].get("expect_newest", context.threads.expect_newest)
    if expect_newest is not context.threads.expect_newest:  # that one has been checked
        check_flag(expect_newest, "expect_newest")
    draft = draft_of(checkpoint, new_versions)
    return store(context, config, continues, draft, metadata, expect_newest=expect_newest)


def store(
    context: SaverContext,
    config: Config,
    continues: ParsedConfig,
    draft: Draft,
    metadata: Mapping[str, Any],
    *,
    expect_newest: bool,
    replaced_rank: str | None = None,
    add: Callable[[Store, Change], Program[Added]] | None = None,
) -> Operation[dict[str, Any]]:
    """Store a draft, as `put` does. Returns the config of the new checkpoint.

    `replaced_rank` is that of the checkpoint whose place it takes, `add` the program to call instead of the store's.
    """
    thread_id, ns, continued, token = continues
    where = ParsedConfig(thread_id, ns, draft.id, token)
    # A checkpoint put again under its own config is no child of itself.
    parent_id = continued if continued != draft.id else None
    if not context.keyring_check.done:
        yield from check_keyring(context)
    if type(metadata) is not CheckedMetadata:
        metadata = checked_metadata(config, metadata)
    replaced_rank = context.moves.get((thread_id, ns, draft.id)) if context.moves else replaced_rank
    run_id = run_id_of(metadata) if "run_id" in metadata else None
    tag = header_tag(draft) if draft.fields.get("versions_seen") else HEADER_TAG
    for _ in range(_ATTEMPTS):
        found = _remembered(context, continues, draft.reads, may_be_missing=False)
        parent, deduplicator = found or (yield from _read(context, continues, draft.reads, may_be_missing=False))
        if parent_id and COUNTERS in metadata and context.moves is None:
            deduplicator.rely(on_parent=check_parent(where, parent_id, parent, draft, metadata))
        header, data = draft.header(
            context.serde, deduplicator, parent, partial(deduplicator.likely_sources, ns, continued)
        )
        stored, source = deduplicator.store_header(data, parent and parent.source, tag)
        rank = replaced_rank or draft.id
        if replaced_rank is None and parent and parent_id and draft.id <= parent.rank:
            rank = rank_after(parent.rank, draft.id)
        moment, (epoch, segments) = now(), deduplicator.epoch_and_segments()
        created_at = moment if context.moves is None else time_in(draft.fields)
        outline = Outline(thread_id, ns, draft.id, rank, parent_id, created_at, metadata.text)
        row = checkpoint_row(outline, stored.body, run_id)
        change = Change(
            thread_id=thread_id,
            epoch=epoch,
            now=moment,
            segments=segments,
            checkpoints=(row,),
            writes=(),
            continues=parent_id,
            needs=partial(needed_segments, header, stored),
            token=token,
            beginning=_beginning(context, config, metadata, thread_id) if epoch is None else NO_BEGINNING,
            expects=_expected_rank(parent, parent_id) if expect_newest else None,
        )
        adds = context.store.add if add is None else partial(add, context.store)
        added = yield from add_change(context, deduplicator, change, adds)
        if added is not None:
            known = Known(added.epoch, rank, header, source, stored.body, deduplicator.has_manifests, row)
            context.encoding_cache.see_checkpoint(thread_id, ns, draft.id, known)
            if deduplicator.emptied:
                context.encoding_cache.see_emptied(thread_id, ns, deduplicator.emptied)
            if added.replaced:
                yield from sweep(context, thread_id)
            if context.threads.keep_last is not None:
                yield from keep_last(context, where, context.threads.keep_last)
            return where.config()
    raise _kept_changing(where)


def time_in(checkpoint: Mapping[str, Any]) -> int:
    """Return when a checkpoint was made, as its `ts` says; now if that is no time, or in the future."""
    moment = now()
    try:
        made = datetime.fromisoformat(checkpoint["ts"])
    except (KeyError, TypeError, ValueError):
        return moment
    return min(moment, microseconds_of(made if made.tzinfo else made.replace(tzinfo=UTC), "ts"))


def put_writes(
    context: SaverContext, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Operation[None]:
    """Store the writes of a task, all or none."""
    where = checked_config(config)
    thread_id, _, checkpoint_id, token = where
    if checkpoint_id is None:
        raise ConfigError("put_writes needs the checkpoint_id of the step that the task belongs to")
    rows = rows_of_scalars(context.serde, where, task_id, task_path, writes, context.longest_pack)
    if rows is not None and context.keyring_check.done:  # they need nothing else of the thread
        change = Change(
            thread_id=thread_id,
            epoch=None,
            now=now(),
            segments={},
            checkpoints=(),
            writes=rows,
            continues=checkpoint_id,
            token=token,
            beginning=_beginning(context, config, {}, thread_id),
        )
        added = yield from add_change(context, None, change, context.store.add)
        if added is not None and not added.pack_left_out:
            return
    task_id, task_path = checked_task(task_id, task_path)
    yield from _put_any_writes(context, config, where, writes, task_id, task_path)


def _put_any_writes(
    context: SaverContext,
    config: Config,
    where: ParsedConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Operation[None]:
    """Store writes as `put_writes` does, with values of any kind."""
    thread_id, ns, checkpoint_id, token = where
    encoded, size = encode_writes(context.serde, writes)
    if not encoded or checkpoint_id is None:
        return
    if not context.keyring_check.done:
        yield from check_keyring(context)
    large = size >= _WORTH_READING
    channels = {channel for channel, _ in encoded.values()} if large else None
    for _ in range(_ATTEMPTS):
        found = _remembered(context, where, channels, may_be_missing=True)
        current, deduplicator = found or (yield from _read(context, where, channels or (), may_be_missing=True))
        written, digests = _stored_writes(deduplicator, where, current, encoded, large=large)
        rows = rows_of_batch(thread_id, ns, checkpoint_id, task_id, task_path, written, context.longest_pack)
        epoch = deduplicator.epoch
        change = Change(
            thread_id,
            epoch,
            now(),
            deduplicator.segments(),
            (),
            rows,
            checkpoint_id,
            token=token,
            beginning=_beginning(context, config, {}, thread_id) if epoch is None else NO_BEGINNING,
        )
        whole = partial(add_whole, context.store, written)
        added = yield from add_change(context, deduplicator, change, whole if has_more(rows) else context.store.add)
        if added is not None and added.pack_left_out:  # which was all of the change
            added = yield from add_change(context, deduplicator, change, whole)
        if added is not None:
            if added.replaced_writes:
                yield from _clear_away(context, change, added.replaced_writes, written)
            if current is None or current.epoch != added.epoch:
                context.encoding_cache.see_epoch(thread_id, added.epoch)
            if digests:
                context.encoding_cache.see_writes(thread_id, ns, checkpoint_id, digests)
            return
    raise _kept_changing(where)


def _stored_writes(
    deduplicator: Deduplicator,
    where: ParsedConfig,
    current: Known | None,
    encoded: Mapping[int, tuple[str, tuple[str, bytes]]],
    *,
    large: bool,
) -> tuple[list[Written], list[tuple[str, bytes]]]:
    """Give encoded writes their stored form. Returns them, and the digests by channel, of those that have one."""
    # A reader of a pending write reads the values of its checkpoint, too.
    beside = _segments_of_values(current) if current and large else ()
    written, digests = [], []
    for index, (channel, (tag, data)) in encoded.items():
        if len(data) <= LITERAL_LIMIT:
            body = before_literal(tag) + data
        else:
            likely = _alike(deduplicator, where, channel, current) if len(data) >= _WORTH_COMPARING else []
            _, _, digest, body = deduplicator.store((tag, data), likely, beside)
            if digest:
                digests.append((channel, digest))
        written.append((index, channel, body))
    return written, digests


def _segments_of_values(known: Known) -> set[bytes]:
    """The keys of all segments that the values of a checkpoint need."""
    return {key for value in known.header.values.values() if value.digest for key in value.segment_keys()}


def _alike(deduplicator: Deduplicator, where: ParsedConfig, channel: str, current: Known | None) -> list[Source]:
    """Return the likely sources of a pending write: the write before it, and the channel's value.

    Packets to the same node are often alike; to compare with more than one costs more than it gains.
    """
    written = deduplicator.siblings() or deduplicator.written(where.ns, where.checkpoint_id, channel)
    base = deduplicator.sources(current.header.values.get(channel)) if current else []
    return [*written[:1], *base]


_Start = tuple[Known | None, Deduplicator]
"""The checkpoint that a change starts from, and a deduplicator for the epoch it was known in."""


def _remembered(
    context: SaverContext, where: ParsedConfig, reads: Collection[str] | None, *, may_be_missing: bool
) -> _Start | None:
    """Return the remembered state from which a change starts, or None if it must be read."""
    cache, (thread_id, ns, checkpoint_id, _) = context.encoding_cache, where
    known = None
    if checkpoint_id is not None:
        known = cache.checkpoint(thread_id, ns, checkpoint_id)
        unread = known is None and not (may_be_missing and cache.epoch(thread_id) is not None)
        if reads is not None and (
            unread or (known and known.has_manifests and _lacks(context, thread_id, known, reads))
        ):
            return None
    epoch = known.epoch if known else cache.epoch(thread_id)
    return known, Deduplicator(context, thread_id, epoch, {})


def _read(
    context: SaverContext, where: ParsedConfig, channels: Collection[str], *, may_be_missing: bool
) -> Operation[_Start]:
    """Read the state from which a change starts, with the values of some channels."""
    found = yield from read(load, context, where, frozenset(channels).__contains__, may_be_missing=may_be_missing)
    if found is None:
        return None, Deduplicator(context, where.thread_id, context.encoding_cache.epoch(where.thread_id), {})
    known = found.known()
    return known, Deduplicator(context, where.thread_id, known.epoch, found.sources())


def _lacks(context: SaverContext, thread_id: str, known: Known, channels: Collection[str]) -> bool:
    """Whether the bytes of one of these channels' values have been forgotten."""
    for channel in channels:
        value = known.header.values.get(channel)
        if value is None or not value.digest:
            continue
        if context.encoding_cache.source(thread_id, value.digest, known.epoch) is None:
            return True
    return False


def _clear_away(
    context: SaverContext, change: Change, old: Sequence[WriteRow], new: Sequence[Written]
) -> Operation[None]:
    """Count the orphans of replaced writes, and sweep the thread when they are many: that reads every header.

    A write that was left out leaves the segments that the change has added for it.
    """
    left_out = {row.idx for row in old if row.idx >= 0}
    needed = {key for index, _, body in new if index not in left_out for key in Stored.from_bytes(body).segment_keys()}
    left = {key: len(data) for key, data in change.segments.items()}
    for row in old:
        if row.idx < 0 and row.value[:1] != b"\x00":
            manifest = layout(Stored.from_bytes(row.value).packed)
            left |= zip(manifest.keys, manifest.sizes, strict=True)
    waste = sum(size for key, size in left.items() if key not in needed)
    if waste and context.encoding_cache.add_waste(change.thread_id, waste) >= _MUCH_WASTE:
        context.encoding_cache.add_waste(change.thread_id, 0)
        yield from sweep(context, change.thread_id)


def add_change(
    context: SaverContext, deduplicator: Deduplicator | None, change: Change, add: Callable[[Change], Program[Added]]
) -> Operation[Added | None]:
    """Apply a change with the program `add`, mostly the store's own. Returns None if it must be prepared again.

    Either the epoch it relied on is over, or the added rows have gone at once with a thread that had expired.
    """
    added = yield from write(add, change)
    if added.exists:
        added = yield from write(context.store.replace, change)
    if added.refused is not None:
        lease = None if added.refused == "conflict" else (yield from last_lease(context, change.thread_id))
        raise refusal_error(context, change, added.refused, lease)
    if added.too_late:
        raise ThreadDeletedError(
            f"thread {change.thread_id!r} was deleted, and checkpoint {change.continues!r} with it: "
            "nothing that continues it is stored. Start the thread again, without a checkpoint_id"
        )
    if not added.replaced and change.epoch not in (None, added.epoch):
        context.encoding_cache.see_epoch(change.thread_id, added.epoch)
        return None
    if deduplicator is not None and deduplicator.deduplicated:
        deduplicator.remember(added.epoch)
    if added.renewal or added.expires_at is not None:
        return added if (yield from live_on(context, change, added)) else None
    return added


def live_on(context: SaverContext, change: Change, added: Added) -> Operation[bool]:
    """Renew the lease of a change that was made, and let its thread live on, as far as either is due.

    Returns whether the thread is still there: it may have expired before, and been removed with the added rows.
    """
    if added.renewal and change.token is not None:
        yield from write(context.store.renew_lease, change.thread_id, change.token, added.renewal)
    if added.expires_at is not None and is_due(context, added.expires_at):
        return (yield from extend_expiry(context, change.thread_id))
    return True


def _beginning(context: SaverContext, config: Config, metadata: Mapping[str, Any], thread_id: str) -> Beginning:
    """Return the fields of the thread if the change begins it: it may, unless it relies on an epoch."""
    owner, key = context.threads.owner, context.threads.owner_key
    if owner is None and key is not None:
        owner = owner_in(config, metadata, key)
    if owner is None and not context.threads.ttl:
        return NO_BEGINNING
    return beginning(thread_id, owner, first_expiry(context))


def _expected_rank(parent: Known | None, parent_id: str | None) -> str:
    """The rank that the newest checkpoint of the namespace must have, so that the new one continues it."""
    if parent_id is None:
        return ""
    return parent.rank if parent else parent_id


def _kept_changing(where: ParsedConfig) -> TransientStoreError:
    return TransientStoreError(
        f"{where}: rows of the thread were deleted {_ATTEMPTS} times while this was stored; try again"
    )


def refusal_error(context: SaverContext, change: Change, refused: Refusal, lease: LeaseRow | None) -> ThreadmarkError:
    """Return the error of a change that was refused. `lease` is the last one of its thread."""
    if refused == "owner":
        return ThreadNotFoundError(
            f"thread {change.thread_id!r} is not there for {context.threads.owner!r}, and its id is taken: "
            "choose another one"
        )
    if refused == "conflict":
        return ConflictError(
            f"thread {change.thread_id!r}: checkpoint {change.continues!r} is no longer the newest of its namespace, "
            "because a newer one was stored: read again, or declare a fork with put(..., expect_newest=False)"
        )
    if refused == "busy":
        return busy_error(change.thread_id, lease)
    return lost_error(change.thread_id, change.token, lease)


def last_lease(context: SaverContext, thread_id: str) -> Operation[LeaseRow | None]:
    """Return the last lease of a thread. It locks no row that the holder needs, unless the lease is to be bounded."""
    lease = yield from read(context.store.lease, thread_id)
    if lease is not None and lease.outlasts:
        lease = yield from write(context.store.lock_lease, thread_id)
    return lease


def lost_error(thread_id: str, token: int | None, lease: LeaseRow | None) -> LeaseLostError:
    """Return the error for the holder of a lease that is no longer the last one of its thread."""
    return LeaseLostError(
        f"the lease of thread {thread_id!r} with token {token} was released or taken over{_by(lease)}: nothing was "
        "stored. Stop, or take another lease and read the thread again"
    )


def busy_error(thread_id: str, lease: LeaseRow | None) -> ThreadBusyError:
    """Return the error for a writer without a lease if another holder has one."""
    left = f" for {lease.left / 1e6:.1f} s more, unless it is renewed" if lease and lease.left else ""
    return ThreadBusyError(
        f"thread {thread_id!r} is leased{_by(lease)}{left}: take a lease yourself, with on_busy='wait' when it is "
        "free or on_busy='interrupt' at once, and give its token as configurable['lease_token']"
    )


def _by(lease: LeaseRow | None) -> str:
    return f" by {lease.holder!r}" if lease and lease.holder else ""
