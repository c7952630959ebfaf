"""Processes fight for one thread's lease: stopped for longer than it lives, cut off, with clocks that are set."""

import json
import os
from collections.abc import Iterator

import pytest

from length import times
from rounds import database_of, output_of

SECONDS = times(6, at_length=60)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has neither fork nor SIGSTOP")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The argument of the script: a kind of database that it makes, or the URL of an empty one."""
    with database_of(request.param) as argument:
        yield argument


def test_there_are_never_two_holders_and_no_write_comes_late(database: str) -> None:
    processes = 8 if database.startswith("redis") else 2
    output = output_of("lease_rounds.py", database, "--seconds", SECONDS, "--processes", processes, within=SECONDS + 60)
    figures = json.loads(output)
    assert (figures["forks"], figures["late"], figures["lost"]) == (0, 0, 0)
    assert min(figures["hand_overs"], figures["refused"], figures["stopped"]) > 0
