"""Stores all kinds of values, many of them unusual, and prints the results: run by test_both_ways.py.

The calls depend on a seed alone, so that a process with the compiled parts and one without do the same.
"""

import math
import random
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from threadmark_conformance.engine import at, early_id
from threadmark_langgraph import wrap
from threadmark_sqlite import SqliteSaver

STEPS = 100


class Text(str):
    """A text that is no plain one."""

    __slots__ = ()


class Number(int):
    """A number that is no plain one."""


class Mapping(dict[Any, Any]):
    """A dictionary that is no plain one."""


class Color(StrEnum):
    """A text and more."""

    RED = "red"


CHANNELS = ["a", "messages", "branch:to:x", "ä", "__start__", "k" * 31, "k" * 32, "ä" * 16]
TEXTS = [
    "",
    "x",
    "ä",
    "漢字 " * 40,
    "\U0001f600",
    "\0x",
    "\x01\x02",
    "\ud800",
    "null",
    "t" * 96,
    "t" * 97,
    "word " * 500,
]
NUMBERS = [0, 31, -32, -33, 127, 128, 65536, 2**32, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30]
REALS = [0.0, -0.0, 1.5, 1e16, 5e-324, math.nan, math.inf]
ODD = [
    *[Text("t"), Number(3), Color.RED, Mapping(a=1), b"", b"\xc4" * 100, bytearray(b"x"), (1, (2,)), {1: 2}, {True: 1}],
    *[{(1, 2): 3}, {Text("k"): 1}, datetime(2024, 1, 2, tzinfo=UTC), UUID(int=5), 1j, frozenset({1})],
]


class Chance(random.Random):
    """The arguments, by chance."""

    def value(self, depth: int = 0) -> Any:
        """Return any value."""
        kind = self.random()
        if kind < 0.5 or depth > 3:
            return self.choice([None, True, False, *TEXTS, *NUMBERS, *REALS])
        if kind < 0.57:
            return self.choice([*ODD * 3, object()])
        if kind < 0.6:
            return self.deep(self.choice([31, 32, 33, 140]))
        items = [self.value(depth + 1) for _ in range(self.choice([0, 1, 2, 3, 16]))]
        return items if kind < 0.8 else {f"{self.choice(TEXTS)[:5]}{index}": item for index, item in enumerate(items)}

    def deep(self, levels: int) -> Any:
        """Return lists within each other."""
        return [self.deep(levels - 1)] if levels else "deep"

    def config(self, thread_id: str, checkpoint_id: str | None) -> Any:
        """Return a configuration, mostly as engines give it."""
        config: Any = at(thread_id, self.choice([*[""] * 12, "sub", None, "__messages__"]), checkpoint_id)
        if self.random() < 0.1:
            names = ["thread_id", "checkpoint_id", "user", "__own", "lease_token", "langgraph_step"]
            config["configurable"][self.choice(names)] = self.choice([*ODD, *TEXTS, None, 7, "n" * 86, "n" * 600])
        if self.random() < 0.1:
            config["metadata"] = self.choice(
                [None, "x", {1: 2}, {"run": 1, "a": math.nan}, {"b": Color.RED}, Mapping()]
            )
        return Mapping(config) if self.random() < 0.03 else config

    def metadata(self) -> Any:
        """Return metadata, mostly as engines give it."""
        found = {"source": "loop", "step": 1, "parents": {}}
        for _ in range(self.choice([0, 0, 1, 2])):
            found[self.choice(["writes", "ä", "user", "run_id", Text("q")])] = self.value(2)
        return self.choice([found] * 30 + [Mapping(found), None, []])

    def version(self, step: int) -> Any:
        """Return the version of a channel."""
        return self.choice([f"{step:032d}.{0:016d}"] * 60 + [step, float(step), True, Text("v"), 2**70, math.nan])


class Run:
    """One caller, and the state that he stores."""

    def __init__(self, chance: Chance, saver: SqliteSaver) -> None:
        self.chance = chance
        self.savers: Any = [saver, wrap(saver)]
        self.values: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.newest: str | None = None

    def put(self, step: int) -> Any:
        """Store a checkpoint, of which some channels have changed."""
        chance, new = self.chance, {}
        for channel in chance.sample(CHANNELS, chance.choice([0, 1, 2, 4])):
            self.values[channel], self.versions[channel] = chance.value(), chance.version(step)
            new[channel] = self.versions[channel]
        if chance.random() < 0.1:
            self.values.pop(chance.choice(CHANNELS), None)
        made = {
            "v": chance.choice([1] * 29 + [True]),
            "id": early_id(step),
            "ts": chance.choice(TEXTS),
            "channel_values": dict(self.values),
            "channel_versions": dict(self.versions),
            "versions_seen": {"node": dict(self.versions)},
            "updated_channels": chance.choice([None, list(new), ()]),
        }
        if chance.random() < 0.1:
            made["more"] = chance.value(2)
        config = chance.config("thread", self.newest)
        stored = chance.choice(self.savers).put(config, made, chance.metadata(), new)
        self.newest = early_id(step)
        return stored

    def put_writes(self, step: int) -> Any:
        """Store a task's writes."""
        chance = self.chance
        channels = [*CHANNELS, "__error__", "__resume__"]
        writes: Any = [(chance.choice(channels), chance.value()) for _ in range(chance.choice([0, 1, 3, 17]))]
        if chance.random() < 0.2:
            writes = chance.choice([tuple(writes), iter(writes), [list(each) for each in writes], [("a",)], "ab", None])
        config = chance.config("thread", self.newest or early_id(step))
        return chance.choice(self.savers).put_writes(
            config, writes, chance.choice(["task", "task 2", str(UUID(int=1))])
        )

    def read(self, _: int) -> Any:
        """Read the thread."""
        saver, config = self.chance.choice(self.savers), self.chance.config("thread", None)
        return saver.get_tuple(config) if self.chance.random() < 0.6 else list(saver.list(config, limit=5))


def _say(action: Callable[..., Any], *arguments: Any) -> bool:
    """Print the outcome of a call. Returns whether it was an error."""
    try:
        sys.stdout.write(f"{action(*arguments)!a}\n")
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        sys.stdout.write(f"{type(error).__name__}: {str(error)!a}\n")
        return True
    return False


def _verified(saver: SqliteSaver) -> Any:
    """The report, but orphans: the two ways find different matches of values, and so make different segments."""
    report = saver.verify()
    return report._replace(problems=[each for each in report.problems if each.kind != "orphan"])


def main(path: str, seed: str) -> None:
    """Store, or without a seed read all that is there."""
    with SqliteSaver(path, durability="normal") as saver:
        if seed:
            run = Run(Chance(int(seed)), saver)
            for step in range(STEPS):
                call = run.chance.choice([run.put, run.put, run.put_writes, run.read])
                if _say(call, step) and call == run.put:  # a value that cannot be stored is not tried for ever
                    run.values, run.versions = {"a": step}, {"a": step}
        _say(lambda: list(saver.list(None)))
        _say(lambda: _verified(saver))


if __name__ == "__main__":
    main(*sys.argv[1:])
