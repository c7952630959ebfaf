"""The state of a conversation: the newest checkpoint of its thread, stored, read, remembered and cleared."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from threadmark.config import ParsedConfig
from threadmark.digests import proof
from threadmark.errors import CorruptDataError
from threadmark.header import Header
from threadmark.ids import new_id
from threadmark.interfaces.conversation_config import Conversation
from threadmark.interfaces.operations.cached_states import CachedOperation, Caches
from threadmark.interfaces.operations.channels import StateDraft, channels_of, encoded, state_of
from threadmark.interfaces.operations.saving import config_of, save
from threadmark.program import Program, Transaction, ask, read
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.expiry import refresh_expiry
from threadmark.saver.loading.decoding import decode_channel
from threadmark.saver.loading.loader import CheckpointLoader
from threadmark.saver.operations.reading import load
from threadmark.saver.operations.removing import Rule, carry_out, delete_thread, removal_of
from threadmark.saver.proving.completeness import prove_complete
from threadmark.saver.pruning.survivors import Namespace
from threadmark.store import Key, Outline
from threadmark.stored import LITERAL_LIMIT

_ATTEMPTS = 64
"""How often a state that was found may be removed before it is read."""

Newest = tuple[Outline, Header]
"""The newest checkpoint of a thread, without its values."""


def put_state(conversation: Conversation, caches: Caches, state: Any) -> CachedOperation[None]:
    """Store a state as the newest of its conversation, and remember it."""
    context, thread_id, *_ = conversation
    draft = StateDraft(context.serde, new_id(), state)
    yield from save(context, config_of(thread_id, None, conversation.lease_token), draft, conversation.metadata(), None)
    known = context.encoding_cache.checkpoint(thread_id, "", draft.id)
    if known is None:
        return
    values = _remembered(conversation, known.header)
    if values is not None:
        yield from caches.set(conversation, known.header, values)


def get_state(conversation: Conversation, caches: Caches) -> CachedOperation[Any]:
    """Return the state of a conversation, None where it has none."""
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
            loaded = yield from read(load, context, ParsedConfig(thread_id, "", outline.id), early=True)
            if loaded is None:
                continue  # it was removed meanwhile
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
    """Remember a state, if it is what the newest checkpoint holds. Returns whether it is."""
    given = encoded(conversation.context.serde, channels_of(state))
    newest = yield from read(_newest, conversation)
    if newest is None or newest[1].values.keys() != given.keys():
        return False
    values: dict[bytes, bytes] = {}
    for channel, stored in newest[1].values.items():
        tag, data = given[channel]
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
    program = partial(_clear, conversation, [])
    return (yield from ask(Transaction(program, writes=True, reclaims_space=True)))


def delete_conversation(conversation: Conversation, caches: Caches) -> CachedOperation[bool]:
    """Remove a conversation whole. Returns whether there was one."""
    yield from _forget(conversation, caches)
    return (yield from delete_thread(conversation.context, conversation.thread_id))


def _newest(conversation: Conversation) -> Program[Newest | None]:
    """Return the newest checkpoint of the state, proven, without its values: what is remembered is found by it."""
    context, thread_id, *_ = conversation
    rows = yield from context.store.chain(thread_id, "", None, 1)
    heads = yield from context.store.heads(thread_id, "")
    if [head.newest for head in heads] != [row.outline.rank for row in rows]:  # damage, or somebody was quicker
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
    """Forget the newest state; older ones are forgotten in time. A damaged one is found by whoever reads it."""
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
