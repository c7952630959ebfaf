"""How a pair is doing: asked of both databases, and of what this process has seen."""

from threadmark.errors import ReplicationError, ThreadmarkError
from threadmark.replication.model import ReplicationStatus, SideStatus
from threadmark.replication.pair import Pair
from threadmark.replication.promoting import count_waiting
from threadmark.replication.steps import Exchange, Side
from threadmark.replication.terms import agree, read_replica
from threadmark.store import now


def status(pair: Pair) -> Exchange[ReplicationStatus]:
    """Ask both sides how they are. One that is known to be away is shown as it was last seen."""
    if pair.roles is None:
        yield from agree(pair)
    for side in pair.sides:
        try:
            pair.health[side].term = (yield from read_replica(side)).term
            yield from count_waiting(pair, side)
        except ReplicationError:
            continue  # it is away
        except ThreadmarkError as error:
            pair.health[side].last_error = pair.last_error = f"{side}: {error}"
    return _status(pair)


def _status(pair: Pair) -> ReplicationStatus:
    known = pair.known
    reads_from = known.active if pair.is_well(known.active) else pair.standby
    return ReplicationStatus(
        known.term,
        known.active.name,
        pair.settings.mode,
        _side_status(pair, pair.sides[0]),
        _side_status(pair, pair.sides[1]),
        reads_from.name,
        known.complete,
        tuple(pair.branched),
        pair.last_reconcile,
        pair.last_error,
    )


def _side_status(pair: Pair, side: Side) -> SideStatus:
    health = pair.health[side]
    lag = None if health.waiting is None else max(0.0, (now() - health.oldest) / 1e6) if health.waiting else 0.0
    return SideStatus(
        side.name,
        str(side.driver),
        side is pair.known.active,
        health.well,
        health.term,
        health.waiting,
        lag,
        health.last_error,
        health.last_seen,
    )
