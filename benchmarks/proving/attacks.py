"""The attacks on each guarantee: scripts that try to break it, with a short and a long form."""

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from proving import figures
from proving.figures import Reader
from proving.records import ROOT

NEWEST_POSTGRES = 'POSTGRES_BIN="$(python scripts/newest_postgres.py)"'
"""Stands before the command of an attack on the newest Postgres."""


class Attack(NamedTuple):
    """A script that tries to break a guarantee."""

    name: str
    harm: str
    """How it attacks: a sentence for the page, without its full stop."""
    script: str
    short: str
    """The options of the short form, and of the long one."""
    long: str
    read: Reader
    before: tuple[str, str] = ("", "")
    """Settings that stand before the commands of the two forms."""

    def command(self, *, long: bool) -> str:
        """Return the command as a reader types it, with names in place of URLs."""
        return f"{self.before[long]} python {self.script} {self.long if long else self.short}".strip()

    def words(self, urls: Mapping[str, str], *, long: bool) -> list[str]:
        """Return the script and its options, with the URLs of servers."""
        return [self.script, *(urls.get(word, word) for word in shlex.split(self.long if long else self.short))]


class Guarantee(NamedTuple):
    """A promise, with its attacks."""

    title: str
    promise: str
    attacks: tuple[Attack, ...]


def _attack(name: str, harm: str, script: str, short: str, long: str, read: Reader) -> Attack:
    return Attack(name, harm, f"benchmarks/{script}.py", short, long, read)


POSTGRES, REDIS = "postgresql://...", "redis://..."
_PLACES = (("sqlite", "SQLite", "sqlite"), ("postgres", "Postgres", POSTGRES), ("redis", "Redis", REDIS))

_SIMULATE = Attack(
    "simulate",
    "One seed decides clients, network, processes, clocks and disks of a simulated world, and a model judges it",
    "tests/simulator/simulate.py",
    "",
    "",
    figures.worlds,
    ("PYTHONPATH=tests SEEDS=600", "PYTHONPATH=tests HOURS=8"),
)
_DURABLE = (
    *(
        _attack(
            f"crash_rounds, {name}",
            f"Runs of LangGraph on {name} are killed at random moments and resumed",
            "crash_rounds",
            f"{place} --rounds 25 --seed 1",
            f"{place} --rounds 10000 --seed 1",
            figures.killed_runs,
        )
        for _, name, place in _PLACES[:2]
    ),
    _attack(
        "power_cuts",
        "The power fails at any moment under SQLite and under persistent dictionaries",
        "power_cuts",
        "--states 3000 --seed 1",
        "--states 100000 --seed 1",
        figures.power_cuts,
    ),
    _attack(
        "redis_rounds",
        "A Redis server is killed under load",
        "redis_rounds",
        "--rounds 15 --seed 1",
        "--rounds 1000 --seed 1",
        figures.killed_servers,
    ),
)
_ATOMIC = tuple(
    _attack(
        f"transaction_rounds, {name}",
        f"Processes are killed in transactions over checkpoints, items and rows of the user's, on {name}",
        "transaction_rounds",
        f"{place} --rounds 25 --seed 1",
        f"{place} --rounds 10000 --seed 1",
        figures.transactions,
    )
    for _, name, place in _PLACES[:2]
)
_EXACT = (
    _attack(
        "serde_exact",
        "Values made at random are stored and compared, with their types and their bytes",
        "serde_exact",
        "10000 1",
        "1000000 1",
        figures.values,
    ),
    _attack(
        "damage_rounds, SQLite",
        "Single bits of stored cells and of pages of the file are flipped, and everything is read",
        "damage_rounds",
        "--cells 200 --pages 100 --seed 1",
        "--cells 20000 --pages 20000 --seed 1",
        figures.damage,
    ),
    _attack(
        "damage_rounds, Postgres",
        "The same with cells of Postgres",
        "damage_rounds",
        "--postgres --cells 100 --seed 1",
        "--postgres --cells 20000 --seed 1",
        figures.damage,
    ),
)
_CONCURRENT = (
    _attack(
        "history_rounds",
        "Journals of concurrent clients are searched for an order that explains every answer",
        "history_rounds",
        "--seconds 30 --seed 1",
        "--seconds 3600 --seed 1",
        figures.histories,
    ),
    _attack(
        "lock_rounds",
        "Everything that a saver can do is done at once on one thread of Postgres",
        "lock_rounds",
        "--seconds 20",
        "--seconds 3600",
        figures.locks,
    ),
    *(
        _attack(
            f"lease_rounds, {name}",
            f"Processes on {name} fight for one lease; they are stopped, and their clocks are set",
            "lease_rounds",
            f"{place} --seconds 15 --seed 1",
            f"{place} --seconds 3600 --seed 1",
            figures.leases,
        )
        for _, name, place in _PLACES
    ),
)
_SAFE = (
    _attack(
        "serde_fuzz",
        "Encoded values are damaged at random and read; anything but a value or a documented error ends the script",
        "serde_fuzz",
        "200000 1",
        "10000000 1",
        figures.damaged_values,
    ),
)
_LOST = "Connections end after the server has done its part, before and in the middle of its answer"
_AVAILABLE = (
    _attack("lost_answers", _LOST, "lost_answers", "--some 1 --seed 1", "--small 64 --parts 8", figures.lost_answers),
    Attack(
        "lost_answers, newest Postgres",
        "The same on the newest release of Postgres",
        "benchmarks/lost_answers.py",
        "--only postgres --some 1 --seed 1",
        "--only postgres --small 0 --parts 1",
        figures.lost_answers,
        (NEWEST_POSTGRES, NEWEST_POSTGRES),
    ),
    _attack(
        "replication_rounds",
        "One of two replicated databases is broken under load, and the writes move to the other one",
        "replication_rounds",
        "--rounds 8 --seed 1",
        "--rounds 2000 --seed 1",
        figures.pairs,
    ),
)
ATTACKS_OF: Mapping[str, tuple[Attack, ...]] = {
    "Durable": _DURABLE,
    "Atomic": _ATOMIC,
    "Exact": _EXACT,
    "Concurrent": _CONCURRENT,
    "Safe": _SAFE,
    "Pruned without loss": (_SIMULATE,),
    "Available": _AVAILABLE,
}
"""The attacks on the guarantees of the README, by their titles."""

_WAYS = {
    "check": "is asked about unknown calls",
    "idempotent": "compares keys",
    "raise": "an operator settles unknown ones",
}
"""The ways on from a call of which it is not known whether it happened."""

MORE = (
    Guarantee(
        "Effects",
        "A call under `Effects` happens once, whatever happens to its worker, if its receiver can be asked or compares "
        "keys. If neither is so, it happens once at most, and each call of which this is not known is reported.",
        tuple(
            _attack(
                f"effect_rounds {way}, {name}",
                f"Workers on {name} are killed and stopped and answers lost, while a receiver counts the calls and "
                f"{going_on}",
                "effect_rounds",
                f"{place} --way {way} --calls 60 --seed 1",
                f"{place} --way {way} --calls 4000 --pairs 8 --ttl 1.5 --seed 1",
                figures.effects,
            )
            for way, going_on in _WAYS.items()
            for _, name, place in _PLACES
        ),
    ),
    Guarantee(
        "Soak",
        "A process that runs for long keeps its memory, file handles, threads and connections.",
        tuple(
            _attack(
                f"soak, {name}",
                f"50 tasks and 8 threads have 200 runs under way at once on {name}, and some steps are cancelled",
                "soak",
                f"--backend {backend} --minutes 0.5",
                f"--backend {backend} --minutes 10",
                figures.soak,
            )
            for backend, name, _ in _PLACES
        ),
    ),
)
THEIRS = (
    *(
        _attack(
            f"crash_rounds, LangGraph on {name}",
            f"Runs on LangGraph's {name} saver are killed and resumed",
            "crash_rounds",
            f"{place} --maker LangGraph --rounds 25 --seed 1",
            f"{place} --maker LangGraph --rounds 10000 --seed 1",
            figures.killed_runs,
        )
        for _, name, place in _PLACES[:2]
    ),
    _attack(
        "effect_rounds, LangGraph alone",
        "Calls of nodes without `Effects`, in runs that are resumed as they are",
        "effect_rounds",
        "sqlite --way langgraph --calls 60 --seed 1",
        "sqlite --way langgraph --calls 4000 --seed 1",
        figures.effects,
    ),
)
"""The same attacks on LangGraph's own savers. That of journals is part of `history_rounds`."""


def guarantees() -> list[Guarantee]:
    """The guarantees as the README has them, numbered, and more."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Guarantees")[2].partition("\n## ")[0]
    found = re.findall(r"^(\d)\. \*\*(.+?)\.\*\* (.+?)(?: \(.*\))?\.?$", text, re.MULTILINE)
    numbered = [Guarantee(f"{number}. {title}", f"{rest}.", ATTACKS_OF[title]) for number, title, rest in found]
    if len(numbered) != len(ATTACKS_OF):
        raise SystemExit("the guarantees of README.md are not those of benchmarks/proving/attacks.py")
    return [*numbered, *MORE]


def attacks() -> list[Attack]:
    """All of them, in the order of the page."""
    return [*(attack for each in guarantees() for attack in each.attacks), *THEIRS]
