"""Messages: appended, replaced at their place, read a page at a time, and removed so that nothing of them is left."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from threadmark.config import ParsedConfig
from threadmark.errors import ConfigError, TransientStoreError
from threadmark.ids import new_id
from threadmark.interfaces.conversation_config import Conversation
from threadmark.interfaces.messages import GivenMessage, has_text
from threadmark.interfaces.operations.message_rows import (
    MessageDraft,
    decoded_message,
    drafted,
    loaded_messages,
    loaded_rows,
    message_keys,
    segments_of,
)
from threadmark.metadata import to_json
from threadmark.names import MESSAGES_NS
from threadmark.program import Operation, Program, Transaction, ask, read, write
from threadmark.saver.expiry import first_expiry, refresh_expiry
from threadmark.saver.loading.loader import LoadedCheckpoint
from threadmark.saver.operations.beginning import check_keyring
from threadmark.saver.operations.leasing import last_lease
from threadmark.saver.operations.refusals import refusal_error
from threadmark.saver.operations.writing import live_on
from threadmark.saver.proving.completeness import prove_absent, prove_complete
from threadmark.store import Added, Change, CheckpointRow, Outline, Scope, now, rank_after
from threadmark.thread_store import beginning

_ATTEMPTS = 64
"""How often somebody else may be faster, or a thread expire, before that is given up."""

_SEARCHED = 256
"""How many messages to read at once where their text is searched."""


def put_messages(conversation: Conversation, given: Sequence[GivenMessage]) -> Operation[list[str]]:
    """Append messages, and replace those whose id is known; all or nothing. Returns the id of each.

    That takes one transaction, which reads nothing before it. It is refused where the messages would not be the last,
    because another host's clock is ahead, and adds nothing where an id is known.
    """
    context, thread_id, *_ = conversation
    drafts = {each.id: drafted(context, thread_id, each) for each in given}
    if not drafts:
        return []
    if not context.keyring_check.done:
        yield from check_keyring(context)
    newest: str | None = None
    for _ in range(_ATTEMPTS):
        change = _change(conversation, drafts, newest, {})._replace(sorts_last=True)
        added = yield from write(context.store.add, change)
        if added.exists:
            program = partial(_replace, conversation, drafts)
            # What was there is gone: the log of a database must not hold it either.
            added = yield from ask(Transaction(program, writes=True, reclaims_space=True))
        if added.refused == "conflict":
            newest = yield from read(_newest_rank, conversation)
            continue
        if added.refused is not None:
            lease = yield from last_lease(context, thread_id)
            raise refusal_error(context, change, added.refused, lease)
        if (yield from live_on(context, change, added)):
            return [each.id for each in given]
    raise TransientStoreError(f"thread {thread_id!r}: others were faster {_ATTEMPTS} times; try again")


def get_messages(
    conversation: Conversation, search: str | None, offset: int, limit: int, before: str | None
) -> Operation[list[Any]]:
    """Return the newest messages before one, oldest first."""
    context, thread_id, *_ = conversation
    scope = Scope(thread_id, MESSAGES_NS)
    if before is not None:
        scope = scope._replace(before=(yield from read(_rank_of, conversation, before)))
    if context.threads.refresh_on_read:
        yield from refresh_expiry(context, thread_id)
    if limit == 0:
        return []
    if search is None:
        _, loaded = yield from read(_page, conversation, scope, None, offset, limit)
        found = [decoded_message(context, each) for each in loaded]
    else:
        found = (yield from _found(conversation, scope, search.casefold(), offset + limit))[offset:]
    return found[::-1]


def get_message(conversation: Conversation, message_id: str) -> Operation[Any]:
    """Return one message, None where there is none of this id."""
    context, thread_id, *_ = conversation
    loaded = yield from read(_message, conversation, message_id)
    if loaded and context.threads.refresh_on_read:
        yield from refresh_expiry(context, thread_id)
    return decoded_message(context, loaded[0]) if loaded else None


def delete_message(conversation: Conversation, message_id: str) -> Operation[bool]:
    """Remove a message, so that no stored row has it. Returns whether there was one."""
    program = partial(_delete, conversation, message_id, [])
    return (yield from ask(Transaction(program, writes=True, reclaims_space=True)))


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
    """Store messages some of which are there, and remove what those consisted of, in one transaction."""
    context, thread_id, *_ = conversation
    yield from context.store.lock(thread_id)
    rows = yield from context.store.rows(thread_id, message_keys(drafts))
    old = yield from segments_of(context, thread_id, rows)
    newest = yield from _newest_rank(conversation)
    change = _change(conversation, drafts, newest, {row.outline.id: row for row in rows})
    added = yield from context.store.replace(change)
    # What is there may be these messages: an earlier attempt, whose answer was lost.
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


def _found(conversation: Conversation, scope: Scope, folded: str, enough: int) -> Operation[list[Any]]:
    """Read on until enough messages have a text in them, or there are no more. Returns them newest first."""
    found: list[Any] = []
    after: Outline | None = None
    more = True
    while more and len(found) < enough:
        page, loaded = yield from read(_page, conversation, scope, after, 0, _SEARCHED)
        messages = [decoded_message(conversation.context, each) for each in loaded]
        found += [message for message in messages if has_text(message, folded)]
        more, after = len(page) == _SEARCHED, page[-1] if page else None
    return found[:enough]


def _page(
    conversation: Conversation, scope: Scope, after: Outline | None, offset: int, limit: int
) -> Program[tuple[list[Outline], list[LoadedCheckpoint]]]:
    context, thread_id, *_ = conversation
    page = (yield from context.store.page(scope, after, offset + limit))[offset:]
    yield from prove_complete(context, thread_id, MESSAGES_NS)
    return page, (yield from loaded_messages(context, thread_id, page))


def _message(conversation: Conversation, message_id: str) -> Program[list[LoadedCheckpoint]]:
    context, thread_id, *_ = conversation
    rows = yield from context.store.rows(thread_id, message_keys([message_id]))
    if not rows:
        yield from prove_absent(context, ParsedConfig(thread_id, MESSAGES_NS, message_id))
    return (yield from loaded_rows(context, thread_id, rows))
