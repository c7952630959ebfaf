"""The plan of a world, made from one seed: its database, its clients' operations, and the faults that come.

A plan can be cut down: operations and faults are numbered, and leaving some out changes nothing about the others. Its
text, such as `17 operations=3,8 faults=1`, makes it again.
"""

import random
from typing import Literal, NamedTuple, Self

from simulator import charges, deltas, items
from simulator.clients import KINDS, Operation
from simulator.database import ISOLATIONS, Isolation

FaultKind = Literal[
    "stop a process",
    "pause a process",
    "lose messages",
    "delay messages",
    "cut a way",
    "silence a server",
    "restart a server",
    "cut the power",
    "set a process's clock",
    "set a server's clock",
    "let clocks drift",
    "forget the cache",
    "promote a side",
]

OF_NETWORKS: tuple[FaultKind, ...] = (
    "stop a process",
    "pause a process",
    "lose messages",
    "delay messages",
    "cut a way",
    "silence a server",
    "restart a server",
    "set a process's clock",
    "set a server's clock",
    "let clocks drift",
    "forget the cache",
)
OF_FILES: tuple[FaultKind, ...] = ("stop a process", "pause a process", "cut the power", "set a process's clock")
OF_PAIRS: tuple[FaultKind, ...] = (
    "stop a process",
    "pause a process",
    "lose messages",
    "delay messages",
    "cut a way",
    "cut a way",
    "silence a server",
    "restart a server",
    "set a process's clock",
    "set a server's clock",
    "promote a side",
    "promote a side",
)
OF_WAYS: dict[FaultKind, str] = {
    "lose messages": "loses_until",
    "delay messages": "slow_until",
    "cut a way": "cut_until",
    "silence a server": "silent_until",
}
"""The faults of ways, each with the attribute of a `Link` that says until when it lasts."""
OF_CLOCKS: tuple[FaultKind, ...] = ("set a process's clock", "set a server's clock", "let clocks drift")

CALM = 0.15
"""This part of the worlds have no faults at all: no caller hears an error of the database there."""


Mode = Literal["one", "sync", "async"]
"""One database, or a pair in one of its two modes."""

Topic = Literal["checkpoints", "charges", "items", "deltas"]
"""The operations that a world is about."""

WORLDS: tuple[tuple[Mode, Topic], ...] = (
    ("one", "checkpoints"),
    ("one", "checkpoints"),
    ("one", "charges"),
    ("sync", "checkpoints"),
    ("async", "checkpoints"),
    ("one", "items"),
    ("one", "deltas"),
    ("one", "checkpoints"),
    ("sync", "items"),
    ("async", "items"),
)
"""The kinds of worlds, which seeds take in turns. The seeds of regressions count on their order."""

_KINDS: dict[Topic, dict[str, int]] = {
    "checkpoints": KINDS,
    "charges": charges.KINDS,
    "items": items.KINDS,
    "deltas": deltas.KINDS,
}


_LOOKS = 6


class Fault(NamedTuple):
    """Something that happens to a process, a way or a server."""

    number: int
    kind: FaultKind
    at: float
    """When it comes, in seconds since the world began."""
    lasts: float
    process: int
    amount: float
    """From -1 to 1: how much a clock is set, for example."""


class Plan(NamedTuple):
    """All that is decided before a world begins."""

    seed: int
    mode: Mode
    topic: Topic
    isolation: Isolation
    other: Isolation
    """That of the other database of a pair."""
    automatic: bool
    """Whether the clients of a pair move the writes by themselves."""
    skew: float
    """By how many seconds the clocks of processes are wrong from their beginning, at most."""
    interval: float
    """Seconds between two looks of a pair's process at both sides."""
    looks: tuple[float, ...]
    """When the contents of a pair are judged while calls go on."""
    syncs: bool
    """Whether a commit is on the disk before it is answered: durability "full"."""
    is_cached: bool
    is_owned: bool
    """Whether each client is one of two owners."""
    is_sealed: bool
    """Whether the rows are encrypted, by processes of which some have a newer key."""
    processes: int
    clients: int
    pace: float
    """How many operations a client does in a second, if they took no time."""
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        operations = ",".join(str(each.number) for each in self.operations)
        return f"{self.seed} operations={operations} faults={','.join(str(each.number) for each in self.faults)}"

    @property
    def has_wrong_clocks(self) -> bool:
        """Whether clocks are, or will be, wrong."""
        return bool(self.skew) or any(fault.kind in OF_CLOCKS for fault in self.faults)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Make a plan from a seed, or from the text of a plan that was cut down."""
        seed, *parts = text.split(" ")
        plan = cls.of(int(seed))
        for part in parts:
            name, _, numbers = part.partition("=")
            kept = {int(number) for number in numbers.split(",") if number}
            if name == "operations":
                plan = plan._replace(operations=tuple(each for each in plan.operations if each.number in kept))
            else:
                plan = plan._replace(faults=tuple(each for each in plan.faults if each.number in kept))
        return plan

    @classmethod
    def of(cls, seed: int) -> Self:
        """Make the plan of a seed."""
        chance = random.Random(f"plan {seed}")
        (mode, topic), isolation = WORLDS[seed // len(ISOLATIONS) % len(WORLDS)], ISOLATIONS[seed % len(ISOLATIONS)]
        processes, clients = chance.randrange(1, 4), chance.randrange(2, 5)
        pace = chance.choice((8.0, 60.0, 400.0) if mode == "one" else (8.0, 25.0))
        count = chance.randrange(15, 45) if mode == "one" else chance.randrange(30, 70)
        if topic != "checkpoints" and mode == "one":
            count *= 2
        operations = tuple(_operation(seed, number, clients, _KINDS[topic], chance) for number in range(count))
        kinds = OF_PAIRS if mode != "one" else OF_FILES if isolation == "sqlite" else OF_NETWORKS
        if topic == "charges":
            kinds = (*kinds, *OF_WAYS)  # to the service
        length = (1.0 / pace + 0.02) * len(operations) / clients + 0.2
        count = 0 if chance.random() < CALM else chance.randrange(1, 7)
        faults = tuple(_fault(number, chance, kinds, processes, length) for number in range(count))
        other, others = chance.choice(ISOLATIONS), random.Random(f"more of {seed}")
        if mode != "one" and topic == "items":  # on Redis an item and the note that copies it are no transaction
            isolation, other = (_OF_ITEMS.get(each, each) for each in (isolation, other))
        return cls(
            seed,
            mode,
            topic,
            isolation,
            other,
            automatic=chance.random() < 0.5,
            skew=chance.choice((0.0, 0.0, 1.0)) if mode == "one" else 0.0,
            interval=chance.choice((0.05, 0.3, 10.0)),
            looks=tuple(sorted(chance.uniform(0, 1.5 * length) for _ in range(_LOOKS))),
            syncs=mode != "one" or topic != "checkpoints" or isolation != "sqlite" or chance.random() < 0.5,
            is_cached=chance.random() < 0.3,
            is_owned=mode == "one" and topic == "checkpoints" and others.random() < 0.3,
            is_sealed=mode == "one" and others.random() < 0.25,
            processes=processes,
            clients=clients,
            pace=pace,
            operations=operations,
            faults=faults,
        )


_OF_ITEMS: dict[Isolation, Isolation] = {"redis": "postgres"}


def _operation(seed: int, number: int, clients: int, kinds: dict[str, int], chance: random.Random) -> Operation:
    (kind,) = chance.choices(list(kinds), list(kinds.values()))
    return Operation(number, chance.randrange(clients), kind, f"{seed} {number}")


def _fault(number: int, chance: random.Random, kinds: tuple[FaultKind, ...], processes: int, length: float) -> Fault:
    lasts = chance.choice((0.05, 0.3, 1.5, 4.5))
    at = chance.uniform(0, length)
    return Fault(number, chance.choice(kinds), at, lasts, chance.randrange(processes), chance.uniform(-1, 1))
