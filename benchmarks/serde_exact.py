"""Stores values made at random and compares the results: in every place of an instance, under every packer.

Run it: `PYTHONPATH=libs/core/src:tests python benchmarks/serde_exact.py [values] [seed]`; a hundred thousand by
default. Half of them are instances of classes made at random (`tests/serde/hierarchies.py`), half are the kinds of the
tests' catalogue inside each other. It ends with how many came back the same and how many were refused with a place;
any other outcome ends it sooner.
"""

import collections
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from serde import specimens as s
from serde.catalogue import EXACT, REFUSED
from serde.hierarchies import Maker, differences
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.runtime.compiled import only_references
from threadmark.serde import Serde

MAKERS = [make for kinds in EXACT.values() for make in kinds.values()]
REFUSED_MAKERS = [
    make for name, (make, _) in REFUSED.items() if "nest" not in name and "contain themselves" not in name
]
AROUND: list[Callable[[Any], Any]] = [
    lambda value: [1, value, "x"],
    lambda value: {"a": 1, "b": value},
    lambda value: {1: value, "é": 2.5},
    lambda value: (value, b"\xc4\x01"),
    lambda value: {"k": [value, value]},
    lambda value: s.Point(value, "y"),
    s.SlotPoint,
    lambda value: s.Model(x=value),
    s.Attr,
    s.Pair,
    s.Struct,
    lambda value: s.Many([value]),
    lambda value: s.Registers({"k": value}),
    lambda value: s.attach(s.NamedChild(1), note=value),
    lambda value: s.attach(ValueError("m", value), note=value),
    lambda value: s.Hidden.model_construct(secret=value),
]


def nested(rng: random.Random) -> Iterator[Any]:
    """Kinds of the catalogue in each other; one in fifty has something in it that cannot be stored."""
    while True:
        makers = REFUSED_MAKERS if rng.random() < 0.02 else MAKERS
        value = rng.choice(makers)()
        for _ in range(rng.randrange(5)):
            value = rng.choice(AROUND)(value)
        yield value


def outcome(value: Any, are_same: Callable[[Any, Any], bool]) -> str:
    """The outcome of a value; an error that is not ours, a value that changed, or bytes that did."""
    serde = Serde()
    try:
        stored = serde.dumps_typed({"k": [value]})
    except SerializationError as error:
        if not error.location.startswith("['k'][0]"):
            raise
        return "refused with its place"
    found = serde.loads_typed(stored)
    if not are_same(value, found["k"][0]):
        raise AssertionError(f"{value!r} came back as {found['k'][0]!r}")
    if serde.dumps_typed(found) != stored:
        raise AssertionError(f"{value!r} came back with other bytes")
    return "the same"


def main(values: int = 100_000, seed: int = 1) -> None:
    """Store that many values; one that changes ends it."""
    warnings.simplefilter("ignore")
    rng, outcomes = random.Random(seed), collections.Counter[str]()
    made, kinds = Maker(seed).values(), nested(rng)
    for number in range(values):
        with only_references() if number // 2 % 2 else nullcontext():  # the compiled packer if it is in use
            if number % 2:
                outcomes["class made: " + outcome(next(made), lambda one, other: not differences(one, other))] += 1
            else:
                outcomes["nested: " + outcome(next(kinds), same)] += 1
    print(f"{values:,} values on Python {sys.version.split()[0]}: {dict(outcomes)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
