"""Equal values give equal bytes in every process: storage finds known values by their bytes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from serde import specimens as s
from serde.sameness import same
from threadmark.serde import Serde, kinds_api

ENCODE_ALL = """
import hashlib
from serde.catalogue import EXACT
from threadmark.serde import Serde, kinds_api
from threadmark.serde import kinds_api
for group, kinds in EXACT.items():
    for name, make in kinds.items():
        tag, encoded = Serde().dumps_typed([make(), {make.__class__: 1}.__len__()])
        print(group, name, tag, hashlib.sha256(encoded).hexdigest())
sets = [{"a", "b", ("c", 1), 2.5, None}, frozenset({frozenset("xyz"), frozenset("zab")}), {b"k", b"l"}]
print(Serde().dumps_typed(sets))
"""


def encoded_by_a_process(seed: str) -> str:
    paths = [str(Path(__file__).parent.parent), *sys.path]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", ENCODE_ALL], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_kind_has_the_same_bytes_under_other_hash_seeds() -> None:
    first, *others = [encoded_by_a_process(seed) for seed in ("0", "1", "4242")]
    assert first
    assert all(other == first for other in others)


def test_the_order_of_a_set_does_not_depend_on_how_it_was_made() -> None:
    members = [("a", 1), "a", 1.5, None, frozenset({2, "b"}), s.FrozenPoint(1), s.Colour.RED]
    encoded = {Serde().dumps_typed(set(members[turn:] + members[:turn])) for turn in range(len(members))}
    assert len(encoded) == 1


def test_the_order_of_a_set_does_not_depend_on_what_came_before_it() -> None:
    """Marks are written in full once; a set's members are sorted as if each stood alone."""
    members = {s.FrozenPoint(1), s.Colour.RED, s.Pair(1)}
    _, alone = Serde().dumps_typed([members])
    _, after = Serde().dumps_typed([s.Pair(0), s.Colour.RED, members])
    order = [type(member) for member in sorted(members, key=lambda member: alone.find(type(member).__name__.encode()))]
    assert type(Serde().loads_typed(("t", after))[2]) is set
    assert len(order) == 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_between_the_fields_of_an_array_is_not_stored(order: Literal["C", "F"]) -> None:
    inner = np.dtype([("a", "i1"), ("b", "f4", (2,))], align=True)
    dtype = np.dtype([("a", "i1"), ("b", "i8"), ("c", inner), ("d", "g")], align=True)
    encoded = set()
    for dirt in b"\0", b"\xff":
        array = np.frombuffer(dirt * dtype.itemsize * 6, dtype).reshape(2, 3).copy(order)
        array["a"], array["b"], array["c"]["a"], array["c"]["b"], array["d"] = 1, 2, 3, 4, 5
        found = Serde().loads_typed(Serde().dumps_typed(array))
        assert found.dtype == dtype
        assert (found == array).all()
        encoded |= {Serde().dumps_typed(value) for value in (array, array[0, 0])}
    assert len(encoded) == 2


def test_the_order_of_a_dictionary_is_part_of_it() -> None:
    assert Serde().dumps_typed({"a": 1, "b": 2}) != Serde().dumps_typed({"b": 2, "a": 1})


@pytest.mark.parametrize("more", [1, 20])
def test_appending_to_a_list_leaves_the_bytes_before_as_they_were(more: int) -> None:
    """So that a put which appends costs only the appended items."""
    before = [s.Model(x=number) for number in range(300)]
    _, short = Serde().dumps_typed({"messages": before})
    _, long = Serde().dumps_typed({"messages": before + [s.Model(x=-1)] * more})
    head = len(b"\x81\xa8messages") + 3
    assert long[head : len(short)] == short[head:]


def test_removing_the_first_object_of_a_class_changes_the_next_one_only() -> None:
    objects = [s.Model(x=number) for number in range(300)]
    _, all_of_them = Serde().dumps_typed(objects)
    _, without_first = Serde().dumps_typed(objects[1:])
    assert all_of_them.endswith(without_first[-2000:])
    assert len(all_of_them) - len(without_first) < 10


def test_the_bytes_do_not_depend_on_which_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [s.attach(s.Point(1), **{f"more{number % 7}": number}) for number in range(50)]
    expected = Serde().dumps_typed(objects)
    monkeypatch.setattr(kinds_api, "_MOST_SHAPES", 3)
    assert Serde().dumps_typed(objects) == expected


def test_marks_with_one_reference_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds_api, "reference_to", lambda payload: payload if len(payload) == 1 else b"zz")
    monkeypatch.setattr("threadmark.serde.decoder.reference_to", kinds_api.reference_to)
    objects = [s.Point(1), s.Pair(2), s.Point(3), s.Pair(4), s.Colour.RED, s.Point(5)]
    serde = Serde()
    stored = serde.dumps_typed(objects)
    assert stored[1].count(b"serde.specimens:Point") == 1
    assert stored[1].count(b"serde.specimens:Pair") == 2
    assert same(objects, serde.loads_typed(stored))
