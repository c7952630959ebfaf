"""Whether a database is well: what counts against it, and a real read and write that proves it.

A caller's own mistake never counts: only errors of the database do, and a missed deadline. And where a transaction
failed, the database is asked for something that must succeed before it counts as away.
"""

from functools import partial
from typing import TypeVar

from threadmark.errors import ReplicationError, StoreError, TransientStoreError
from threadmark.program import Program, Transaction, relay
from threadmark.replica_store import Replica, ReplicaStore, StaleTermError
from threadmark.replication.pair import Pair, SideAwayError, Standing
from threadmark.replication.steps import Exchange, On, Side, on
from threadmark.replication.terms import read_replica, standing_in

T = TypeVar("T")


class MissedDeadlineError(TransientStoreError):
    """A transaction was not over in time. Whether it was carried out is not known."""

    def __init__(self, side: Side, deadline: float) -> None:
        super().__init__(f"no answer came from the {side.name} within {deadline:g} s (deadline)")


def counts(error: Exception) -> bool:
    """Whether an error may mean that the database is away."""
    return isinstance(error, StoreError) and not isinstance(error, (StaleTermError, ReplicationError))


def probe(side: Side) -> Exchange[Replica]:
    """Read from a side, and write to it. Returns what it knows of its pair."""
    return on(side, Transaction(partial(_written_again, side.store), writes=True))


def _written_again(store: ReplicaStore) -> Program[Replica]:
    found = yield from store.replica()
    return (yield from store.set_replica(found))


def watched(pair: Pair, exchange: Exchange[T]) -> Exchange[T]:
    """Play an exchange, and note how both sides do. One that is known to be away is not asked.

    What is thrown for a side that is away is a SideAwayError.
    """
    return relay(exchange, lambda asked: _asked(pair, asked) if isinstance(asked, On) else _passed(asked))


def looked(pair: Pair, exchange: Exchange[T]) -> Exchange[T]:
    """Like `watched`, but first ask both sides how they are: one that was away may be back."""
    for side in pair.sides:
        yield from look(pair, side)
    return (yield from watched(pair, exchange))


def look(pair: Pair, side: Side) -> Exchange[Replica | None]:
    """Ask a side, whether it is known to be away or not. Returns what it knows of its pair, None if it is away."""
    standing = pair.standing
    try:
        replica = yield from probe(side)
    except StoreError as error:
        if not counts(error):
            raise
        pair.failed(side, error)
        return None
    if standing is not None and side is standing.active and not replica.body:
        pair.failed(side, "it has lost what it held: it knows of no pair any more")
        return None
    pair.health[side].term = replica.term
    if standing is not None and side is standing.active and not pair.is_well(side):
        yield from _hear_of_promotion(pair, standing)
    pair.answered(side)
    return replica


def _hear_of_promotion(pair: Pair, standing: Standing) -> Exchange[None]:
    """Before the active side, which was away, is written to again: ask the other one whether it took the writes.

    The one that was away may not know of that yet. In mode "async" it would acknowledge what is written to it, and a
    deletion there would take with it what the caller writes next on the other side.
    """
    other = pair.other(standing.active)
    try:
        replica = yield from read_replica(other)
    except StoreError:
        return  # nobody here can know
    if replica.body and replica.term > standing.term:
        found = standing_in(pair, replica)
        if (found.pair, found.active) == (standing.pair, other):
            pair.stands(found)


def _asked(pair: Pair, asked: On) -> Exchange[object]:
    side = asked.side
    if pair.standing is not None and not pair.is_well(side):  # until the pair is in use nobody else looks at it
        raise SideAwayError(side, pair.health[side].last_error)
    try:
        answer: object = yield asked
    except StoreError as error:
        if not counts(error):
            raise
        yield from _judge(pair, side, error)
        raise
    if pair.standing is None or pair.is_well(side):  # one that is away by now is back when `look` says so
        pair.answered(side)
    return answer


def _judge(pair: Pair, side: Side, error: Exception) -> Exchange[None]:
    """Find out whether a side is away, or just this transaction failed. Raises SideAwayError if it is."""
    standing = pair.standing
    if pair.is_well(side):
        try:
            yield from probe(side)
        except StoreError as second:
            if not counts(second):
                return
            pair.failed(side, error)
        else:
            if standing is not None and side is standing.active:  # it may have been away for as long as this took
                yield from _hear_of_promotion(pair, standing)
            return
    raise SideAwayError(side, error) from error


def _passed(asked: object) -> Exchange[object]:
    return (yield asked)  # type: ignore[misc]  # a pause
