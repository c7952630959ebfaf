"""The health of a database: the errors that count against it, and a real read and write that proves it.

Only errors of the database count, and missed deadlines, never a caller's own mistake. A database whose transaction
failed counts as away only if that real read and write fails as well.
"""

from typing import TypeVar

from threadmark.errors import ReplicationError, StoreError, TransientStoreError
from threadmark.program import Program, relay
from threadmark.replication.pair import Pair, Roles, SideAwayError
from threadmark.replication.steps import On, PairFlow, Side, write_on
from threadmark.replication.terms import read_replica, roles_in
from threadmark.store.replica import Replica, ReplicaStore, StaleTermError

T = TypeVar("T")


class MissedDeadlineError(TransientStoreError):
    """A transaction was not over in time. Whether it was carried out is not known."""

    def __init__(self, side: Side, deadline: float) -> None:
        super().__init__(f"no answer came from the {side.name} within {deadline:g} s (deadline)")


def may_be_away(error: Exception) -> bool:
    """Whether an error may mean that the database is away."""
    return isinstance(error, StoreError) and not isinstance(error, (StaleTermError, ReplicationError))


def probe(side: Side) -> PairFlow[Replica]:
    """Read from a side, and write to it. Returns its record of its pair."""
    return write_on(side, _written_again, side.store)


def _written_again(store: ReplicaStore) -> Program[Replica]:
    found = yield from store.replica()
    return (yield from store.set_replica(found))


def watched(pair: Pair, flow: PairFlow[T]) -> PairFlow[T]:
    """Play a flow, and note how both sides do. One that is known to be away is not asked.

    For a side that is away, a SideAwayError is thrown into it.
    """
    return relay(flow, lambda asked: _ask_side(pair, asked) if isinstance(asked, On) else _pass_on(asked))


def checked_first(pair: Pair, flow: PairFlow[T]) -> PairFlow[T]:
    """Like `watched`, but first ask both sides how they are: one that was away may be back."""
    for side in pair.sides:
        yield from check_side(pair, side)
    return (yield from watched(pair, flow))


def check_side(pair: Pair, side: Side) -> PairFlow[Replica | None]:
    """Ask a side, also one that is known to be away. Returns its record of its pair, None if it is away."""
    roles, returns = pair.roles, pair.health[side].returns
    try:
        replica = yield from probe(side)
    except StoreError as error:
        if not may_be_away(error):
            raise
        pair.note_failure(side, error, returns)
        return None
    if roles is not None and side is roles.active and not replica.body:
        pair.note_failure(side, "it has lost its data: it knows of no pair any more", returns)
        return None
    pair.health[side].term = replica.term
    if roles is not None and side is roles.active and not pair.is_well(side):
        yield from _hear_of_promotion(pair, roles)
    pair.note_answer(side)
    return replica


def _hear_of_promotion(pair: Pair, roles: Roles) -> PairFlow[None]:
    """Ask the other side whether it took the writes, before the active side, which was away, is written to again.

    The one that was away may not know of that yet. In mode "async" it would acknowledge new writes, and a
    deletion there would also delete the caller's next writes on the other side.
    """
    other = pair.other(roles.active)
    try:
        replica = yield from read_replica(other)
    except StoreError:
        return  # it is unknown here
    if replica.body and replica.term > roles.term:
        found = roles_in(pair, replica)
        if (found.pair, found.active) == (roles.pair, other):
            pair.set_roles(found)


def _ask_side(pair: Pair, asked: On) -> PairFlow[object]:
    side = asked.side
    if pair.roles is not None and not pair.is_well(side):  # before the pair is in use nothing else checks it
        raise SideAwayError(side, pair.health[side].last_error)
    try:
        answer: object = yield asked
    except StoreError as error:
        if not may_be_away(error):
            raise
        yield from _expect_well(pair, side, error)
        raise
    if pair.roles is None or pair.is_well(side):  # one that is away by now is back when `check_side` says so
        pair.note_answer(side)
    return answer


def _expect_well(pair: Pair, side: Side, error: Exception) -> PairFlow[None]:
    """Find out whether a side is away, or just this transaction failed. Raises SideAwayError if it is."""
    roles, returns = pair.roles, pair.health[side].returns
    if pair.is_well(side):
        try:
            yield from probe(side)
        except StoreError as second:
            if not may_be_away(second):
                return
            pair.note_failure(side, error, returns)
        else:
            if roles is not None and side is roles.active:  # it may have been away for as long as this took
                yield from _hear_of_promotion(pair, roles)
            return
    raise SideAwayError(side, error) from error


def _pass_on(asked: object) -> PairFlow[object]:
    return (yield asked)  # type: ignore[misc]  # a pause
