"""The events of chaos rounds, and the outcome of one."""

from typing import Literal, NamedTuple, get_args

from threadmark.replication.model import Failover as FailoverBy

Fault = Literal["none", "move", "workers", "kill", "pause", "restart", "closed", "silent", "deaf", "split", "lag"]
"""The events of a round: nothing but mistakes of callers; the writes are moved while all is well; workers are killed;
a server is killed, stopped for a while, or restarted; the way to it is closed, silent, or loses answers, for all or, in
a split, for all workers but one, which sees no other side; or the side that takes over was cut off for a while before,
so that it lacks as much as it may."""

FAULTS: tuple[Fault, ...] = get_args(Fault)
CALM = ("none", "move")
OF_SERVERS = ("kill", "pause", "restart")

Victim = Literal["active", "standby"]


class Plan(NamedTuple):
    """A kind of round."""

    fault: Fault
    victim: Victim
    failover: FailoverBy


class Outcome(NamedTuple):
    """The outcome of a round."""

    plan: Plan
    acknowledged: int
    raised: int
    unknown: int
    failovers: int
    missing: int
    """How many acknowledged changes the side that took over did not have yet."""
    lag: float
    """The seconds for which the oldest waiting change had waited then."""
    objections: list[str]
    seconds: float


def all_plans() -> list[Plan]:
    """Return all kinds of rounds."""
    whole: tuple[Fault, ...] = ("none", "move", "workers", "split", "lag")
    victims: tuple[Victim, ...] = get_args(Victim)
    return [
        Plan(fault, victim, failover)
        for fault in FAULTS
        for failover in get_args(FailoverBy)
        for victim in (victims[:1] if fault in whole else victims)
    ]
