"""When a thread expires: as the option `ttl` says, a while after its last write, or with `refresh_on_read` last read.

A thread's row is not written by every put. A thread is given a quarter more than the `ttl`, and is given it again when
less than the `ttl` is left: so it never expires early, and its row is written once in a quarter of the `ttl`.
"""

from contextlib import suppress

from threadmark.errors import ReplicationError
from threadmark.program import Operation, Program, read, write
from threadmark.saver.context import SaverContext
from threadmark.store.contract import now
from threadmark.store.threads import is_sound_thread, thread_row


def first_expiry(context: SaverContext) -> int | None:
    """When a thread that begins now expires. Microseconds since 1970, None for never."""
    ttl = context.threads.ttl
    return now() + ttl + ttl // 4 if ttl else None


def is_due(context: SaverContext, expires_at: int | None) -> bool:
    """Whether a thread is to live on for longer. One that never expires does so for ever."""
    return bool(context.threads.ttl) and expires_at is not None and expires_at - now() < context.threads.ttl


def refresh_expiry(context: SaverContext, thread_id: str) -> Operation[None]:
    """Let a thread that was read live on, where that is due."""
    outline = yield from read(context.store.thread, thread_id)
    if outline is not None and is_due(context, outline.row.expires_at):
        with suppress(ReplicationError):  # what was read is worth more: the next one who reads it can do this
            yield from extend_expiry(context, thread_id)


def extend_expiry(context: SaverContext, thread_id: str) -> Operation[bool]:
    """Let a thread live on. Returns whether it is there: it may have expired, and have been removed meanwhile."""
    return (yield from write(_extend, context, thread_id))


def _extend(context: SaverContext, thread_id: str) -> Program[bool]:
    yield from context.store.lock(thread_id)
    outline = yield from context.store.thread(thread_id)
    # A damaged row is left to whoever reads it; a new check would hide it.
    if outline is not None and is_due(context, outline.row.expires_at) and is_sound_thread(outline.row):
        yield from context.store.set_thread(thread_row(outline.row._replace(expires_at=first_expiry(context))))
    return outline is not None
