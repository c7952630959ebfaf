"""The errors of changes that were refused: what happened, to which thread, and the way out."""

from threadmark.errors import ConflictError, LeaseLostError, ThreadBusyError, ThreadmarkError, ThreadNotFoundError
from threadmark.program import Operation, read, write
from threadmark.saver.context import SaverContext
from threadmark.store.contract import Change, Refusal
from threadmark.store.threads import LeaseRow


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
            "somebody else has stored one: read again, or declare a fork with put(..., expect_newest=False)"
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
        "stored. Stop, or take a lease anew and read the thread again"
    )


def busy_error(thread_id: str, lease: LeaseRow | None) -> ThreadBusyError:
    """Return the error for somebody who has no lease where somebody else has one."""
    left = f" for {lease.left / 1e6:.1f} s more, unless it is renewed" if lease and lease.left else ""
    return ThreadBusyError(
        f"thread {thread_id!r} is leased{_by(lease)}{left}: take a lease yourself, with on_busy='wait' when it is "
        "free or on_busy='interrupt' at once, and give its token as configurable['lease_token']"
    )


def _by(lease: LeaseRow | None) -> str:
    return f" by {lease.holder!r}" if lease and lease.holder else ""
