"""The operations of `Conversations`: messages as rows, and the state of a conversation.

Each message is a separate checkpoint, which shares no bytes with anything else. So the cost of appending one does not
depend on the length of the conversation, and removing one removes its row and exactly the segments that it names.
Nothing is compared with stored values or remembered for a comparison, and each stored value begins with unique
bytes, so that no segment of another value can be equal.

The state of a conversation is the newest checkpoint of its thread. This module also stores, reads, caches and clears
it.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from threadmark.config import ParsedConfig
from threadmark.errors import ConfigError, CorruptDataError, TransientStoreError
from threadmark.ids import new_id
from threadmark.interfaces.messages import NewMessage, has_text
from threadmark.interfaces.operations.states import channels_of, config_of, encoded, save_draft, state_draft, state_of
from threadmark.interfaces.shapes import Conversation
from threadmark.interfaces.state_cache import CachedOperation, Caches
from threadmark.metadata import to_json
from threadmark.model import CheckpointTuple
from threadmark.names import MESSAGES_NS
from threadmark.program import Operation, Program, read, write, write_and_reclaim
from threadmark.saver.kit import (
    LITERAL_LIMIT,
    CheckpointLoader,
    Deduplicator,
    EncodingCache,
    Header,
    LoadedCheckpoint,
    Namespace,
    Rule,
    SaverContext,
    SegmentCache,
    carry_out,
    check_keyring,
    checkpoint_location,
    checkpoint_row,
    decode_channel,
    delete_thread,
    encode,
    fill,
    first_expiry,
    last_lease,
    live_on,
    load,
    proof,
    prove_absent,
    prove_complete,
    refresh_expiry,
    refusal_error,
    removal_of,
)
from threadmark.store.contract import Added, Change, CheckpointRow, Key, Outline, Scope, now, rank_after
from threadmark.store.threads import beginning

_CHANNEL = "message"
_OWN_BYTES = 12
_PARTS = 3
"""The parts of a stored message: its unique bytes, its id, and the message."""
_NOTHING = EncodingCache(0)
"""Remembers nothing."""
_FIELDS: bytes = msgpack.packb({"v": 4})
"""The fields of each header: the number of the format of checkpoints, as engines of today have it."""


class MessageDraft(NamedTuple):
    """A message, encoded."""

    id: str
    header: bytes
    segments: dict[bytes, bytes]

    def row(self, thread_id: str, rank: str, created_at: int, metadata: str, run_id: str | None) -> CheckpointRow:
        """The row that holds it."""
        outline = Outline(thread_id, MESSAGES_NS, self.id, rank, None, created_at, metadata)
        return checkpoint_row(outline, self.header, run_id)


def drafted(context: SaverContext, thread_id: str, new: NewMessage) -> MessageDraft:
    """Encode a message."""
    own = secrets.token_bytes(_OWN_BYTES)
    encoded = encode(context.serde, f'message "{new.id}"', (own, new.id, new.message))
    deduplicator = Deduplicator(alone(context), thread_id, None, {})
    value = deduplicator.store(encoded, ())
    header = Header({_CHANNEL: 1}, {_CHANNEL: value}, _FIELDS, None)
    stored, _ = deduplicator.store_header(header.to_bytes(), None)
    return MessageDraft(new.id, stored.body, deduplicator.segments())


def alone(context: SaverContext) -> SaverContext:
    """The same context, with nothing remembered that a message could be compared with, or of it."""
    return context._replace(encoding_cache=_NOTHING)


def message_keys(ids: Iterable[str]) -> list[Key]:
    """The keys of messages."""
    return [(MESSAGES_NS, message_id) for message_id in ids]


def segments_of(context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[set[bytes]]:
    """Return the segments that belong to these messages, and to nothing else."""
    found = yield from _opened(context, thread_id, rows, context.segment_cache())
    return {key for loader in found for key in (*loader.header_keys(), *loader.value_keys())}


def loaded_messages(
    context: SaverContext, thread_id: str, outlines: Sequence[Outline]
) -> Program[list[LoadedCheckpoint]]:
    """Return the input of `decoded_message` for the messages of a page."""
    rows = yield from context.store.rows(thread_id, [outline.key for outline in outlines])
    found = yield from loaded_rows(context, thread_id, rows)
    by_key = {each.outline.key: each for each in found}
    for outline in outlines:
        if outline.key not in by_key:
            raise CorruptDataError("its row is not found by its key", checkpoint_location(outline))
    return [by_key[outline.key] for outline in outlines]


def loaded_rows(
    context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow]
) -> Program[list[LoadedCheckpoint]]:
    """Return the input of `decoded_message` for rows."""
    segment_cache = context.segment_cache()
    found = yield from _opened(context, thread_id, rows, segment_cache)
    yield from fill(segment_cache, context.store, thread_id, {key for each in found for key in each.value_keys()})
    return [loader.loaded() for loader in found]


def decoded_message(context: SaverContext, loaded: LoadedCheckpoint) -> Any:
    """Decode a message, separately for each caller."""
    values = loaded.header.values
    if values.keys() == {_CHANNEL}:
        value = decode_channel(context, loaded.outline, _CHANNEL, values[_CHANNEL], loaded.data)
        if type(value) is tuple and len(value) == _PARTS and value[1] == loaded.outline.id:
            return value[2]
    raise CorruptDataError(
        "it is no message, although its namespace has only messages", checkpoint_location(loaded.outline)
    )


def message_in(found: CheckpointTuple) -> Any:
    """Return the message of a checkpoint as a saver gives it, which need not know that it is one."""
    _, _, message = found.checkpoint["channel_values"][_CHANNEL]
    return message


def _opened(
    context: SaverContext, thread_id: str, rows: Sequence[CheckpointRow], segment_cache: SegmentCache
) -> Program[list[CheckpointLoader]]:
    found = [CheckpointLoader(row, (), _NOTHING) for row in rows]
    yield from fill(segment_cache, context.store, thread_id, {key for each in found for key in each.header_keys()})
    for loader in found:
        loader.open_header(segment_cache)
    return found


_ATTEMPTS = 64
"""How often another caller may be faster, or a thread expire, before this gives up."""

_SEARCHED = 256
"""How many messages to read at once if their text is searched."""


def put_messages(conversation: Conversation, new: Sequence[NewMessage]) -> Operation[list[str]]:
    """Append messages, and replace those whose id is known; all or nothing. Returns the id of each.

    That takes one transaction, which reads nothing before it. It is refused if the messages would not be the last,
    because another host's clock is ahead, and adds nothing if an id is known.
    """
    context, thread_id, *_ = conversation
    drafts = {each.id: drafted(context, thread_id, each) for each in new}
    if not drafts:
        return []
    if not context.keyring_check.done:
        yield from check_keyring(context)
    newest: str | None = None
    for _ in range(_ATTEMPTS):
        change = _change(conversation, drafts, newest, {})._replace(sorts_last=True)
        added = yield from write(context.store.add, change)
        if added.exists:
            # The old messages are gone: the log of a database must not hold it either.
            added = yield from write_and_reclaim(_replace, conversation, drafts)
        if added.refused == "conflict":
            newest = yield from read(_newest_rank, conversation)
            continue
        if added.refused is not None:
            lease = yield from last_lease(context, thread_id)
            raise refusal_error(context, change, added.refused, lease)
        if (yield from live_on(context, change, added)):
            return [each.id for each in new]
    raise TransientStoreError(f"thread {thread_id!r}: others were faster {_ATTEMPTS} times; try again")


def get_messages(
    conversation: Conversation, search: str | None, offset: int, limit: int, before: str | None
) -> Operation[list[Any]]:
    """Return the newest messages before one, oldest first."""
    context, thread_id, *_ = conversation
    if search is None or limit == 0:
        _, loaded = yield from read(_page, conversation, before, None, offset, limit)
        found = [decoded_message(context, each) for each in loaded]
    else:
        found = (yield from _found(conversation, before, search.casefold(), offset + limit))[offset:]
    if context.threads.refresh_on_read:
        yield from refresh_expiry(context, thread_id)
    return found[::-1]


def get_message(conversation: Conversation, message_id: str) -> Operation[Any]:
    """Return one message, None if none has this id."""
    context, thread_id, *_ = conversation
    loaded = yield from read(_message, conversation, message_id)
    if loaded and context.threads.refresh_on_read:
        yield from refresh_expiry(context, thread_id)
    return decoded_message(context, loaded[0]) if loaded else None


def delete_message(conversation: Conversation, message_id: str) -> Operation[bool]:
    """Remove a message, so that no stored row has it. Returns whether there was one."""
    return (yield from write_and_reclaim(_delete, conversation, message_id, []))


def _change(
    conversation: Conversation,
    drafts: Mapping[str, MessageDraft],
    newest: str | None,
    old: Mapping[str, CheckpointRow],
) -> Change:
    """The change that stores messages: `old` ones at the place that they have, the others behind the newest rank."""
    context, thread_id, run_id, token = conversation
    moment, metadata = now(), to_json(conversation.metadata())
    segments: dict[bytes, bytes] = {}
    rows: list[CheckpointRow] = []
    for draft in drafts.values():
        segments |= draft.segments
        if draft.id in old:
            rank, created_at = old[draft.id].outline.rank, old[draft.id].outline.created_at
        else:
            newest = rank = rank_after(newest, new_id())
            created_at = moment
        rows.append(draft.row(thread_id, rank, created_at, metadata, run_id))
    begins = beginning(thread_id, context.threads.owner, first_expiry(context))
    return Change(thread_id, None, moment, segments, rows, (), None, token=token, beginning=begins, touches=True)


def _replace(conversation: Conversation, drafts: Mapping[str, MessageDraft]) -> Program[Added]:
    """Store messages some of which are there, and remove the old forms of those, in one transaction."""
    context, thread_id, *_ = conversation
    yield from context.store.lock(thread_id)
    rows = yield from context.store.rows(thread_id, message_keys(drafts))
    old = yield from segments_of(context, thread_id, rows)
    newest = yield from _newest_rank(conversation)
    change = _change(conversation, drafts, newest, {row.outline.id: row for row in rows})
    added = yield from context.store.replace(change)
    # The stored messages may be these: an earlier attempt, whose answer was lost.
    stale = old - change.segments.keys()
    if added.refused is None and stale:
        yield from context.store.remove(thread_id, (), sorted(stale))
    return added


def _delete(conversation: Conversation, message_id: str, tried: list[str]) -> Program[bool]:
    """Remove a message. `tried` has its id after an earlier attempt, which may have been committed."""
    context, thread_id, *_ = conversation
    yield from context.store.lock(thread_id)
    rows = yield from context.store.rows(thread_id, message_keys([message_id]))
    yield from context.store.forget(thread_id, message_keys([message_id]), removes=bool(rows))
    if rows:
        tried.append(message_id)
        segments = yield from segments_of(context, thread_id, rows)
        yield from context.store.remove(thread_id, message_keys([message_id]), sorted(segments))
    return bool(tried)


def _newest_rank(conversation: Conversation) -> Program[str | None]:
    heads = yield from conversation.context.store.heads(conversation.thread_id, MESSAGES_NS)
    return max((head.newest for head in heads), default=None)


def _rank_of(conversation: Conversation, message_id: str) -> Program[str]:
    thread_id = conversation.thread_id
    same = yield from conversation.context.store.page(Scope(thread_id, MESSAGES_NS, message_id), None, 1)
    if not same:
        where = ParsedConfig(thread_id, MESSAGES_NS, message_id)
        yield from prove_absent(conversation.context, where)
        raise ConfigError(
            f"there is no message {message_id!r} in thread {thread_id!r} to read on from: it may have been deleted; "
            "give the id of another one as `before`"
        )
    return same[0].rank


def _found(conversation: Conversation, before: str | None, folded: str, enough: int) -> Operation[list[Any]]:
    """Read on until enough messages have a text in them, or there are no more. Returns them newest first."""
    found: list[Any] = []
    after: Outline | None = None
    more = True
    while more and len(found) < enough:
        page, loaded = yield from read(_page, conversation, before, after, 0, _SEARCHED)
        messages = [decoded_message(conversation.context, each) for each in loaded]
        found += [message for message in messages if has_text(message, folded)]
        more, after = len(page) == _SEARCHED, page[-1] if page else None
    return found[:enough]


def _page(
    conversation: Conversation, before: str | None, after: Outline | None, offset: int, limit: int
) -> Program[tuple[list[Outline], list[LoadedCheckpoint]]]:
    """Read the messages before one, newest first, or the page that follows the message `after`."""
    context, thread_id, *_ = conversation
    scope = Scope(thread_id, MESSAGES_NS)
    if before is not None and after is None:
        scope = scope._replace(before=(yield from _rank_of(conversation, before)))
    if limit == 0:
        return [], []
    page = (yield from context.store.page(scope, after, offset + limit))[offset:]
    yield from prove_complete(context, thread_id, MESSAGES_NS)
    return page, (yield from loaded_messages(context, thread_id, page))


def _message(conversation: Conversation, message_id: str) -> Program[list[LoadedCheckpoint]]:
    context, thread_id, *_ = conversation
    rows = yield from context.store.rows(thread_id, message_keys([message_id]))
    if not rows:
        yield from prove_absent(context, ParsedConfig(thread_id, MESSAGES_NS, message_id))
    return (yield from loaded_rows(context, thread_id, rows))


"""How often a state that was found may be removed before it is read."""

Newest = tuple[Outline, Header]
"""The newest checkpoint of a thread, without its values."""


def put_state(conversation: Conversation, caches: Caches, state: Any) -> CachedOperation[None]:
    """Store a state as the newest of its conversation, and remember it."""
    context, thread_id, *_ = conversation
    draft = state_draft(context.serde, new_id(), state)
    yield from save_draft(
        context, config_of(thread_id, None, conversation.lease_token), draft, conversation.metadata(), None
    )
    known = context.encoding_cache.checkpoint(thread_id, "", draft.id)
    if known is None:
        return
    values = _remembered(conversation, known.header)
    if values is not None:
        yield from caches.set(conversation, known.header, values)


def get_state(conversation: Conversation, caches: Caches) -> CachedOperation[Any]:
    """Return the state of a conversation, None if it has none."""
    context, thread_id, *_ = conversation
    for _ in range(_ATTEMPTS):
        newest = yield from read(_newest, conversation)
        if newest is None:
            return None
        outline, header = newest
        if context.threads.refresh_on_read:
            yield from refresh_expiry(context, thread_id)
        values = yield from caches.get(conversation, header)
        if values is None:
            loaded = yield from read(load, context, ParsedConfig(thread_id, "", outline.id), may_be_missing=True)
            if loaded is None:
                continue  # it was removed since
            header, values = loaded.header, loaded.data
            yield from caches.set(conversation, header, values)
        return _decoded(conversation, outline, header, values)
    raise CorruptDataError("its newest checkpoint is not found", f"thread {thread_id!r}")


def get_state_cache(conversation: Conversation, caches: Caches) -> CachedOperation[Any]:
    """Return the state of a conversation if it is remembered, None otherwise."""
    newest = yield from read(_newest, conversation)
    if newest is None:
        return None
    outline, header = newest
    values = yield from caches.get(conversation, header)
    return None if values is None else _decoded(conversation, outline, header, values)


def put_state_cache(conversation: Conversation, caches: Caches, state: Any) -> CachedOperation[bool]:
    """Remember a state, if it is that of the newest checkpoint. Returns whether it is."""
    current = encoded(conversation.context.serde, channels_of(state))
    newest = yield from read(_newest, conversation)
    if newest is None or newest[1].values.keys() != current.keys():
        return False
    values: dict[bytes, bytes] = {}
    for channel, stored in newest[1].values.items():
        tag, data = current[channel]
        digest = proof(data).digest if len(data) > LITERAL_LIMIT else b""
        same = stored.digest == digest if stored.digest else stored.packed == data
        if tag != stored.tag or not same:
            return False
        if stored.digest:
            values[digest] = data
    yield from caches.set(conversation, newest[1], values)
    return True


def clear_state(conversation: Conversation, caches: Caches) -> CachedOperation[bool]:
    """Remove everything of a conversation but its messages. Returns whether there was a state."""
    yield from _forget(conversation, caches)
    return (yield from write_and_reclaim(_clear, conversation, []))


def delete_conversation(conversation: Conversation, caches: Caches) -> CachedOperation[bool]:
    """Remove a conversation whole. Returns whether there was one."""
    yield from _forget(conversation, caches)
    return (yield from delete_thread(conversation.context, conversation.thread_id))


def _newest(conversation: Conversation) -> Program[Newest | None]:
    """Return the newest checkpoint of the state, proven, without its values: a remembered state is found by it."""
    context, thread_id, *_ = conversation
    rows = yield from context.store.chain(thread_id, "", None, 1)
    heads = yield from context.store.heads(thread_id, "")
    if [head.newest for head in heads] != [row.outline.rank for row in rows]:  # damage, or another put was quicker
        yield from prove_complete(context, thread_id, "")
    if not rows:
        return None
    loader = CheckpointLoader(rows[0], (), context.encoding_cache)
    segment_cache = context.segment_cache()
    yield from fill(segment_cache, context.store, thread_id, loader.missing_header_keys())
    loader.open_header(segment_cache)
    return loader.outline, loader.header


def _remembered(conversation: Conversation, header: Header) -> Mapping[bytes, bytes] | None:
    """The values of a checkpoint that was just stored, as the saver remembers them."""
    values: dict[bytes, bytes] = {}
    for value in header.values.values():
        if value.digest:
            data = conversation.context.encoding_cache.data(conversation.thread_id, value.digest)
            if data is None:
                return None
            values[value.digest] = data
    return values


def _decoded(conversation: Conversation, outline: Outline, header: Header, values: Mapping[bytes, bytes]) -> Any:
    context = conversation.context
    return state_of(
        {channel: decode_channel(context, outline, channel, value, values) for channel, value in header.values.items()}
    )


def _forget(conversation: Conversation, caches: Caches) -> CachedOperation[None]:
    """Forget the newest state; older ones are forgotten in time. The next reader finds a damaged one."""
    try:
        newest = yield from read(_newest, conversation)
    except CorruptDataError:
        return
    if newest is not None:
        yield from caches.delete(conversation, newest[1])


def _clear(conversation: Conversation, tried: list[str]) -> Program[bool]:
    """Remove checkpoints and their writes. `tried` has the thread's id after an attempt, which may be committed."""
    context, thread_id, *_ = conversation
    if (yield from context.store.lock(thread_id)) is None:
        return bool(tried)
    removal = yield from removal_of(context, thread_id, _ALL_BUT_MESSAGES)
    if removal.doomed:
        tried.append(thread_id)
    yield from carry_out(context, thread_id, removal._replace(whole=False))  # the thread itself stays
    return bool(tried)


def _all_of_it(namespace: Namespace) -> set[Key]:
    return {outline.key for outline in namespace.outlines}


_ALL_BUT_MESSAGES = Rule(everything=False, choose=_all_of_it, orphan_writes=True)
