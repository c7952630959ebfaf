"""A transaction of the memory backend is undone whole, or from some change on, also if it changed a row twice"""

from random import Random

import pytest

from threadmark.memory.tables import Tables


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_undone_to_where_they_began(seed: int) -> None:
    random, tables = Random(seed), Tables()
    table = {key: f"before {key}" for key in range(3)}
    states = [dict(table)]
    for number in range(8):
        changes, key = tables.changes, random.randrange(5)
        if random.random() < 0.7:
            tables.set(table, key, number)
        else:
            tables.unset(table, key)
        if tables.changes > changes:
            states.append(dict(table))
    half = tables.changes // 2
    tables.roll_back(half)
    assert table == states[half]
    tables.roll_back()
    assert table == states[0]
