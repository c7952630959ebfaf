"""Taking, renewing and releasing a lease: one transaction each, by the clock of the database alone."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from os import getpid
from socket import gethostname
from typing import Literal, NamedTuple

from threadmark.config import named_thread
from threadmark.errors import ConfigError, ConflictError, short_repr
from threadmark.ids import new_id
from threadmark.metadata import to_json
from threadmark.model import Checkpoint, Duration
from threadmark.names import ID_BYTES, THREAD_ID_BYTES, as_text, check_length
from threadmark.program import Operation, Program, write
from threadmark.saver.kit import (
    Deduplicator,
    SaverContext,
    busy_error,
    check_keyring,
    check_seconds,
    check_word,
    checked_duration,
    checkpoint_row,
    draft_of,
    last_lease,
    needed_segments,
)
from threadmark.store.contract import Change, Outline, Scope, now, rank_after
from threadmark.store.threads import LeaseRow

OnBusy = Literal["wait", "reject", "interrupt", "rollback"]
"""The choices of `lease` if another holder has a lease of the thread."""

_SHORTEST, _LONGEST = 0.01, 30 * 86400
"""Bounds for `ttl`, in seconds. A holder of a lease for a month has most likely forgotten it."""

_EMPTY_METADATA = to_json({"source": "fork", "step": -2, "parents": {}})
"""The engine numbers its steps from -1, the input; an empty state comes before it."""


class LeaseRequest(NamedTuple):
    """A request for a lease."""

    thread_id: str
    on_busy: OnBusy
    ttl: int
    """In microseconds."""
    holder: str


class Taken(NamedTuple):
    """A lease that was taken."""

    token: int
    checkpoint_id: str | None
    """The checkpoint at which its run begins; None for the newest."""


def lease_request(
    thread_id: object, on_busy: OnBusy, ttl: Duration, holder: str | None, timeout: float | None
) -> LeaseRequest:
    """Check the arguments of `lease`. Returns the request."""
    name = named_thread(thread_id)
    check_length(name, THREAD_ID_BYTES, "thread_id")
    check_word(on_busy, OnBusy, "on_busy")
    seconds = checked_duration(ttl, "ttl").total_seconds()
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ConfigError(f"ttl must be from {_SHORTEST} to {_LONGEST} seconds, not {short_repr(ttl)}")
    if timeout is not None:
        check_seconds(timeout, "timeout")
        if on_busy != "wait":
            raise ConfigError(f"timeout is how long on_busy='wait' waits; with on_busy={on_busy!r} leave it out")
    who = f"{gethostname()}, process {getpid()}" if holder is None else as_text(holder, "holder")
    check_length(who, ID_BYTES, "holder")
    return LeaseRequest(name, on_busy, round(seconds * 1e6), who)


def acquire(context: SaverContext, request: LeaseRequest) -> Operation[Taken | LeaseRow]:
    """Take a lease. Returns instead the lease of another holder if the request is to wait for it."""
    if not context.keyring_check.done:
        yield from check_keyring(context)
    if request.on_busy in ("wait", "reject"):
        held = yield from last_lease(context, request.thread_id)
        if held is not None and held.left:
            return _held(request, held)
    empty = _empty_state(context, request.thread_id) if request.on_busy == "rollback" else None
    taken = yield from write(_take, context, request, empty, [])
    return _held(request, taken) if isinstance(taken, LeaseRow) else taken


def renew(context: SaverContext, thread_id: str, token: int, ttl: int) -> Operation[bool]:
    """Extend a lease to its full time from now. Returns whether it is still the last one of its thread."""
    return (yield from write(context.store.renew_lease, thread_id, token, ttl))


def release(context: SaverContext, thread_id: str, token: int) -> Operation[bool]:
    """End a lease, and its token with it. Returns whether it was still the last one of its thread."""
    return (yield from write(_release, context, thread_id, token, []))


def _held(request: LeaseRequest, held: LeaseRow) -> LeaseRow:
    if request.on_busy == "reject":
        raise busy_error(request.thread_id, held)
    return held


def _take(
    context: SaverContext, request: LeaseRequest, empty: "_Empty | None", tried: list[int]
) -> Program[Taken | LeaseRow]:
    """Take a lease that is free or may be taken over. Otherwise returns the last lease.

    `tried` has the tokens of earlier attempts. A driver tries again after a lost connection even if the commit was
    carried out. The lease in the way is then this request's own, and is taken again.
    """
    thread_id, on_busy, ttl, holder = request
    last = yield from context.store.lock_lease(thread_id)
    if last.left and on_busy in ("wait", "reject") and last.token not in tried:
        return last
    found = yield from context.store.page(Scope(thread_id, ns=""), None, 1)
    newest = found[0] if found else None
    if not last.left or empty is None:
        lease = yield from context.store.set_lease(thread_id, LeaseRow(0, ttl, holder, newest.id if newest else None))
        tried.append(lease.token)
        return Taken(lease.token, None)
    if last.began is not None:
        # The new run begins at the other one's beginning: if it is rolled back in its turn, it ends there as well.
        if not (yield from context.store.rows(thread_id, [("", last.began)])):
            raise ConflictError(
                f"thread {thread_id!r}: the run of {last.holder!r} began at checkpoint {last.began!r}, which was "
                "removed: there is nothing to roll back to. Take the lease with on_busy='interrupt'"
            )
        lease = yield from context.store.set_lease(thread_id, LeaseRow(0, ttl, holder, last.began))
        return Taken(lease.token, last.began)
    lease = yield from context.store.set_lease(thread_id, LeaseRow(0, ttl, holder, newest and empty.id))
    if newest is not None:
        yield from context.store.add(empty.after(newest, lease.token))
    return Taken(lease.token, None)


def _release(context: SaverContext, thread_id: str, token: int, tried: list[int]) -> Program[bool]:
    """End a lease. `tried` has the tokens with which earlier attempts ended it: one may have been committed."""
    last = yield from context.store.lock_lease(thread_id)
    if last.token in tried:
        return True
    if last.token != token:
        return False
    tried.append((yield from context.store.set_lease(thread_id, LeaseRow(0))).token)
    return True


class _Empty(NamedTuple):
    """A checkpoint with no state, put before a run that begins a thread again from nothing.

    It has no parent, because a delta channel would be read from the writes of its ancestors.
    """

    id: str
    header: bytes
    segments: Mapping[bytes, bytes]
    needs: Callable[[], Sequence[bytes]]

    def after(self, newest: Outline, token: int) -> Change:
        """Return the change that puts it as the newest of its thread."""
        moment = now()
        rank = rank_after(newest.rank, self.id)
        outline = Outline(newest.thread_id, "", self.id, rank, None, moment, _EMPTY_METADATA)
        row = checkpoint_row(outline, self.header, None)
        return Change(newest.thread_id, None, moment, self.segments, [row], (), None, self.needs, token)


def _empty_state(context: SaverContext, thread_id: str) -> _Empty:
    state: Checkpoint = {
        "v": 4,
        "id": new_id(),
        "ts": datetime.now(UTC).isoformat(),
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
    }
    draft = draft_of(state, {})
    deduplicator = Deduplicator(context, thread_id, None, {})
    header, data = draft.header(context.serde, deduplicator, None, lambda *_: ())
    stored, _ = deduplicator.store_header(data, None)
    return _Empty(draft.id, stored.body, deduplicator.segments(), partial(needed_segments, header, stored))
