"""The judgement of a change: whether it is made, from a few facts about its thread.

The memory store, SQLite and Redis, when it has locked the thread, call `judged`. Postgres' functions and Redis' script
judge in their own language; `threadmark_conformance.cases.judging` compares every backend with this, refusal by
refusal.
"""

from typing import NamedTuple

from threadmark.store.contract import ANYONE, Added, Change, Follows
from threadmark.store.replica import Copied, is_followed


class Facts(NamedTuple):
    """The facts about a thread that decide on a change to it, read in the transaction that makes the change."""

    epoch: int | None
    """None if the database has no row of the thread."""
    live: bool
    owner: str | None
    token: int
    """That of the last lease."""
    left: int | None
    """Microseconds until the last lease ends, less than 0 if it has ended; None if there is none."""
    ttl: int
    """For how many microseconds the last lease was taken."""
    lacks_continued: bool
    """Whether the change continues a checkpoint that was deleted with the thread."""
    exists: bool
    """Whether the thread has one of the change's checkpoints."""
    newest: str
    """The greatest rank in the namespace of the change's first checkpoint. Only needed if `change.has_place`."""
    copied: Copied | None = None
    """How far the thread has come from the other database. This and the next are only needed if `change.copied`."""
    has_entries: bool = False
    """Whether the thread has changes that are to be copied to the other database."""


def is_outdated(change: Change, term: int) -> bool:
    """Whether the database has a greater term than a change. Ask this before you read the thread."""
    return change.term is not None and term > change.term


def judged(change: Change, facts: Facts, *, replaces: bool) -> Added | None:  # noqa: PLR0911 - one for each question
    """Return the refusal of a change that is not outdated, None if it is to be made.

    The order of the questions is part of the contract (`Store.add`). A change that `replaces` may meet its checkpoints.
    """
    epoch = facts.epoch or 0
    if change.copied is not None and _is_behind(facts, change.copied):
        return Added(epoch, "behind")
    if change.epoch is not None and change.epoch != facts.epoch:
        return Added(epoch)
    if change.only_owner and facts.live and facts.owner != change.beginning.owner:
        return Added(epoch, "owner")
    if change.token is None and facts.left is not None and facts.left > 0:
        return Added(epoch, "busy")
    if change.token not in (None, facts.token, ANYONE):
        return Added(epoch, "lost")
    if facts.lacks_continued:
        return Added(epoch, too_late=True)
    if facts.exists:  # this may be a second attempt, so it does not matter which checkpoint is the newest now
        return None if replaces else Added(epoch, exists=True)
    if change.has_place and not change.may_follow(facts.newest):
        return Added(epoch, "conflict")
    return None


def _is_behind(facts: Facts, follows: Follows) -> bool:
    """Whether a thread is not as far as a change of another database needs it, or was changed here as well."""
    return facts.has_entries or not is_followed(facts.copied, follows)


def may_be_gone(change: Change, deleted_up_to: str | None) -> bool:
    """Whether the checkpoint that a change continues is one that was deleted with its thread, unless it is there."""
    if not change.continues or not deleted_up_to:
        return False
    return change.continues <= deleted_up_to


def renewal(change: Change, facts: Facts) -> int:
    """Return for how long to renew the lease under which a change is made; 0 if more than half of it is left."""
    if facts.left is None or change.token != facts.token:
        return 0
    return facts.ttl if facts.left < facts.ttl // 2 else 0
