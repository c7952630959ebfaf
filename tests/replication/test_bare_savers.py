"""A saver that is not replicated removes something from the active side while a pair is in use."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replication.histories import history, of_thread, put, write
from replication.lines import Database
from replication.sides import assert_equal
from threadmark import Saver, replicated
from threadmark.replication.model import ReplicationMode
from threadmark.types import ReplicatedSaver
from threadmark_conformance.engine import at
from threadmark_sqlite import SqliteSaver

THREAD = "thread"


REMOVALS: dict[str, Callable[[Saver], object]] = {
    "a checkpoint": lambda bare: bare.delete_checkpoint(at(THREAD, "", "0002")),
    "all but the newest": lambda bare: bare.prune([THREAD]),
    "all": lambda bare: bare.delete_thread(THREAD),
}

Opened = tuple[ReplicatedSaver, Saver, Saver]


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> ReplicationMode:
    mode: ReplicationMode = request.param
    return mode


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, mode: ReplicationMode, tmp_path: Path) -> Iterator[Opened]:
    """A pair, and a bare saver over each of its sides."""
    if request.param == "memory":
        databases = Database(), Database()
        sides = [each.saver() for each in databases]
        bare = [each.saver() for each in databases]
    else:
        sides = [SqliteSaver(tmp_path / name) for name in ("one.db", "other.db")]
        bare = [SqliteSaver(tmp_path / name) for name in ("one.db", "other.db")]
    with replicated(sides[0], sides[1], mode=mode, health_interval=60.0) as pair:
        yield pair, bare[0], bare[1]
    for each in bare:
        each.close()


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("waits", [False, True], ids=["copied", "waiting"])
def test_the_next_write_of_the_pair_has_it_removed_on_the_other_side(
    opened: Opened, removal: str, *, waits: bool
) -> None:
    pair, here, there = opened
    history(pair, THREAD, steps=3)
    assert pair.drain() == 0
    if waits:
        write(pair, THREAD, "0001", "not copied yet, perhaps")
    REMOVALS[removal](here)
    expected = {item.checkpoint["id"] for item in of_thread(here, THREAD)}
    put(pair, THREAD, 8)
    assert pair.drain() == 0
    assert {item.checkpoint["id"] for item in of_thread(there, THREAD)} == expected | {"0008"}
    assert_equal(here, there)
    write(pair, THREAD, "0008", "later")
    assert pair.drain() == 0
    assert_equal(here, there)
