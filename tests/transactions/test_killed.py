"""A killed process leaves no row of the user without the checkpoint and the item of the same transaction."""

import json

import pytest

from length import ALL, times
from rounds import database_of, output_of

ROUNDS = times(8, at_length=1000)
EVERY = times(40, at_length=1)
"""How many statements from one kill to the next."""
DURABILITIES = ("sync", "async", "exit") if ALL else ("async",)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_nothing_is_stored_apart_when_a_process_is_killed(backend: str) -> None:
    with database_of(backend) as database:
        result = json.loads(output_of("transaction_rounds.py", database, "--rounds", ROUNDS, in_memory=True))
    assert result["killed"] == ROUNDS
    assert result["apart"] == result["lost"] == 0


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_item_and_the_state_of_its_node_are_stored_together_wherever_a_process_is_killed(durability: str) -> None:
    result = json.loads(output_of("statement_kills.py", durability, EVERY, in_memory=True))
    assert result["killed"] > 80 // EVERY
    assert result["apart"] == 0
