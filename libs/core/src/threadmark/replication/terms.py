"""The term that decides about the writer: both databases hold it, with the record of their pair.

The terms of the primary are odd, those of the secondary are even. So two processes that promote different sides at the
same time never do so under the same term.
"""

import json
from typing import NamedTuple, get_args
from uuid import NAMESPACE_OID, uuid4, uuid5

from threadmark.errors import ConfigError, CorruptDataError, ReplicationError
from threadmark.program import Program
from threadmark.replication.model import SideName
from threadmark.replication.others import all_tables
from threadmark.replication.pair import Pair, Roles, SideAwayError
from threadmark.replication.steps import PairFlow, Side, pause, read_on, write_on
from threadmark.store.replica import Replica, ReplicaStore

_PAUSE = 0.05
_ATTEMPTS = 20
"""How often to pause for other processes to finish what they have begun."""


class Agreement(NamedTuple):
    """The body of a `Replica`, which both databases hold."""

    pair: str
    """A random id, made when the two were first used together. Another one is a ConfigError."""
    name: SideName
    """Which side this database is, so that swapped URLs are noticed."""
    active: SideName
    """The side that takes the writes under this term."""
    complete: bool = True
    """Whether the side that is not active has ever had everything of the other."""
    compared: str = ""
    """Up to this thread a `reconcile` that was stopped had compared all, under this term. The active side holds it."""

    def to_json(self) -> str:
        """The body."""
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> "Agreement":
        """Read a body. Raises CorruptDataError for anything else."""
        try:
            found = cls(**json.loads(body))
        except (ValueError, TypeError) as error:
            raise CorruptDataError("the database's record of its pair is damaged, or from a later release") from error
        if found.name not in get_args(SideName) or found.active not in get_args(SideName):
            raise CorruptDataError("the database's record of its pair is damaged, or from a later release")
        return found


def next_term(term: int, side: Side) -> int:
    """Return the next term under which this side takes the writes."""
    following = term + 1
    return following if following % 2 != side.number else following + 1


def read_replica(side: Side) -> PairFlow[Replica]:
    """Ask a side for its record of its pair."""
    return read_on(side, side.store.replica)


def write_replica(side: Side, roles: Roles) -> PairFlow[Replica]:
    """Store the side that takes the writes, unless a greater term is known there. Returns the record afterwards."""
    agreement = Agreement(roles.pair, side.name, roles.active.name, roles.complete)
    replica = Replica(roles.term, agreement.to_json())
    return write_on(side, side.store.set_replica, replica)


def reachable(pair: Pair) -> PairFlow[dict[Side, Replica]]:
    """Ask both sides for their records. One that is away is left out. Raises ReplicationError if both are."""
    found: dict[Side, Replica] = {}
    away: SideAwayError | None = None
    for side in pair.sides:
        try:
            found[side] = yield from read_replica(side)
        except SideAwayError as error:
            away = error
        else:
            pair.health[side].term = found[side].term
    if away is not None and not found:
        raise ReplicationError(f"neither database can be reached: {away}") from away
    return found


def agree(pair: Pair) -> PairFlow[None]:
    """Find out who takes the writes; two databases that are new become a pair.

    Raises ConfigError for two that do not belong together.
    """
    found, agreements = yield from _read_agreements(pair)
    if not agreements:
        yield from _begin(pair, found)
    else:
        for side in found.keys() - agreements.keys():
            yield from _join(side, roles_in(pair, found[pair.other(side)]))
    yield from follow(pair)


def follow(pair: Pair) -> PairFlow[None]:
    """Read both terms, and take note of the greater one.

    A promotion first has the old side refuse writes, then copies the rest, then writes the term to the new side. So
    no process writes to the new side before it holds the term. If that takes too long, this completes the promotion.
    """
    for _ in range(_ATTEMPTS):
        found, agreements = yield from _read_agreements(pair)
        if not agreements:
            raise ReplicationError(f"{pair} do not know of their pair any more")
        roles = roles_in(pair, max((found[side] for side in agreements), key=lambda replica: replica.term))
        active = roles.active
        if active not in found or found[active].term == roles.term:
            pair.set_roles(roles)
            return
        yield from pause(_PAUSE)
    yield from write_replica(active, roles)
    pair.set_roles(roles)


def note_complete(pair: Pair) -> PairFlow[None]:
    """Write down that both sides have had everything."""
    if not pair.known.complete:
        roles = pair.known._replace(complete=True)
        for side in pair.sides:
            yield from write_replica(side, roles)
        pair.set_roles(roles)


def read_compared(side: Side) -> PairFlow[str]:
    """Return up to which thread the active side was compared by a `reconcile` that was stopped, "" for none."""
    replica = yield from read_replica(side)
    return Agreement.from_json(replica.body).compared if replica.body else ""


def note_compared(pair: Pair, thread_id: str) -> PairFlow[None]:
    """Write down up to which thread both were compared, for the process that goes on there."""
    active, term = pair.known.active, pair.known.term
    yield from write_on(active, _set_compared, active.store, term, thread_id)


def _set_compared(store: ReplicaStore, term: int, thread_id: str) -> Program[None]:
    replica = yield from store.replica()
    agreement = Agreement.from_json(replica.body)
    if replica.term == term and agreement.compared != thread_id:
        body = agreement._replace(compared=thread_id).to_json()
        yield from store.set_replica(replica._replace(body=body))


def spread_term(pair: Pair, side: Side, replica: Replica) -> PairFlow[None]:
    """Write the term to a side that was away, so that it refuses writes of processes that do not know it yet."""
    if not replica.body:
        yield from _join(side, pair.known)
        yield from follow(pair)
        return
    agreement = Agreement.from_json(replica.body)
    if (agreement.pair, agreement.name) != (pair.known.pair, side.name):
        raise ConfigError(f"{side} is not the same database as before: it belongs to another pair now")
    if replica.term < pair.known.term:
        yield from write_replica(side, pair.known)


def expect_term(pair: Pair, side: Side, roles: Roles) -> PairFlow[None]:
    """Have a side hold the term under which something is going to be copied to it.

    A write that was made under an earlier one may still be on its way to it, although its caller has made it on the
    other side. After a deletion was copied, it would begin the thread again.
    """
    if (pair.health[side].term or 0) < roles.term:
        replica = yield from read_replica(side)
        yield from spread_term(pair, side, replica)
        pair.health[side].term = max(replica.term, roles.term)


def _read_agreements(pair: Pair) -> PairFlow[tuple[dict[Side, Replica], dict[Side, Agreement]]]:
    """Read both databases' records of their pair. Raises ConfigError for two that are none.

    Under the first term another process may be making the pair right now, and gets the time for it.
    """
    for _ in range(_ATTEMPTS):
        found = yield from reachable(pair)
        agreements = {side: Agreement.from_json(each.body) for side, each in found.items() if each.body}
        problem = _problem(agreements) or _missing(pair, found, agreements)
        settled = problem is None and len(agreements) in (0, len(found))
        if settled or any(each.term > 1 for each in found.values()):
            break
        yield from pause(_PAUSE)
    if problem is not None:
        raise ConfigError(problem)
    return found, agreements


def roles_in(pair: Pair, replica: Replica) -> Roles:
    """Return the side that takes the writes by a database's record."""
    agreement = Agreement.from_json(replica.body)
    return Roles(replica.term, pair.side(agreement.active), agreement.pair, agreement.complete)


def _begin(pair: Pair, found: dict[Side, Replica]) -> PairFlow[None]:
    """Make a pair of two new databases. Others may do so at the same time: the primary's record in the end counts."""
    if len(found) < len(pair.sides):
        away = next(side for side in pair.sides if side not in found)
        raise ReplicationError(
            f"{away} is away ({pair.health[away].last_error}), and the two databases were never used together: "
            "for the first time both have to be there"
        )
    primary, secondary = pair.sides
    empty = yield from _is_empty(primary)
    roles = Roles(1, primary, uuid4().hex, empty)
    yield from write_replica(primary, roles)
    replica = yield from read_replica(secondary)
    if replica.body and Agreement.from_json(replica.body)[:2] == (roles.pair, primary.name):
        yield from write_on(primary, primary.store.set_replica, Replica(1, ""))
        raise ConfigError(f"primary and secondary are the same database ({primary.driver}): give two")
    for _ in range(_ATTEMPTS):
        yield from write_replica(secondary, roles)
        replica = yield from read_replica(primary)
        held = Agreement.from_json(replica.body)
        if held.pair == roles.pair:
            return
        roles = roles._replace(pair=held.pair, complete=held.complete)


def _join(side: Side, roles: Roles) -> PairFlow[None]:
    """Let a new database take the place of one that was lost, or finish the making of a pair.

    The one that was lost lacks all later writes. So the pair gets another id and another term: should that
    one turn up again, or another process still use it, it is noticed.
    """
    other = roles.active
    empty = yield from _is_empty(other)
    roles = roles._replace(complete=empty)
    if not empty or roles.term > 1:
        # The same in every process that does this at once.
        name = uuid5(NAMESPACE_OID, f"{roles.pair} {roles.term}").hex
        roles = roles._replace(term=next_term(roles.term, other), pair=name)
    for each in (other, side):
        yield from write_replica(each, roles)


def _is_empty(side: Side) -> PairFlow[bool]:
    if (yield from read_on(side, side.store.threads, "", 1)):
        return False
    for tables in all_tables():
        if not (yield from read_on(side, tables.is_empty, side.store)):
            return False
    return True


def _problem(agreements: dict[Side, Agreement]) -> str | None:
    """Return why these databases are no pair, and the remedy."""
    names = [(side.name, agreement.name) for side, agreement in agreements.items()]
    if len({agreement.pair for agreement in agreements.values()}) > 1:
        databases = " and ".join(map(str, agreements))
        return (
            f"{databases} belong to different pairs: give the two that were used together, or a new database with "
            "one of them"
        )
    if names and all(current != noted for current, noted in names):
        return "primary and secondary are swapped: give the two the other way round, and use promote() to move writes"
    if any(current != noted for current, noted in names):
        return "primary and secondary are the same database, or one is a copy of the other: give the two of the pair"
    return None


def _missing(pair: Pair, found: dict[Side, Replica], agreements: dict[Side, Agreement]) -> str | None:
    """Return the remedy if the side that should take the writes is a new database."""
    for side in found.keys() - agreements.keys():
        if any(agreement.active == side.name for agreement in agreements.values()):
            return (
                f"{side} is new and holds nothing, but it should take the writes: the database that did is lost or "
                f"somewhere else. Give that one; or have the other one take them with saver.promote("
                f"{pair.other(side).name!r}, force=True), and copy everything to the new one with saver.reconcile()"
            )
    return None
