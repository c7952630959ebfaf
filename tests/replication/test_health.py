"""The errors that count against a database, and the others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from replication.lines import Database, Opened, checkpoint, config, number_in, put, wait_for
from threadmark import (
    CheckpointNotFoundError,
    ConfigError,
    ConflictError,
    ForbiddenTypeError,
    Serde,
    SerializationError,
    StoreError,
    ThreadmarkError,
    ThreadNotFoundError,
)
from threadmark.program import Transaction
from threadmark.replication.health import check_side
from threadmark.types import ReplicatedSaver


@pytest.fixture
def pair() -> Opened:
    return Opened(Database(), Database(), failover="automatic", serde=Serde(allow=[]), health_interval=3600.0)


@dataclass
class _Unknown:
    n: int = 1


def _stored(value: Any) -> Callable[[ReplicatedSaver], object]:
    return lambda saver: saver.put(config(), checkpoint(2) | {"channel_values": {"n": value}}, {}, {"n": 3})


MISTAKES: dict[str, tuple[type[ThreadmarkError], Callable[[ReplicatedSaver], object]]] = {
    "no thread": (ConfigError, lambda saver: saver.get({"configurable": {}})),
    "no such side": (ConfigError, lambda saver: saver.promote("third")),  # type: ignore[arg-type]  # on purpose
    "not a value": (SerializationError, _stored(open)),
    "a class": (ForbiddenTypeError, _stored(_Unknown())),
    "an older parent": (
        ConflictError,
        lambda saver: saver.put(config(), checkpoint(2), {}, {"n": 3}, expect_newest=True),
    ),
    "no such checkpoint": (
        CheckpointNotFoundError,
        lambda saver: saver.fork({"configurable": {"thread_id": "thread", "checkpoint_id": "none"}}, as_thread="new"),
    ),
    "another owner": (
        ThreadNotFoundError,
        lambda saver: saver.for_owner("eve").put(config(), checkpoint(2), {}, {"n": 3}),
    ),
    "a view": (ConfigError, lambda saver: saver.for_owner("eve").status()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_caller_counts_against_nobody(pair: Opened, mistake: str) -> None:
    put(pair.saver, 1)
    error, make = MISTAKES[mistake]
    for _ in range(5):
        with pytest.raises(error):
            make(pair.saver)
    status = pair.saver.status()
    assert status.active == "primary"
    assert status.primary.healthy
    assert status.secondary.healthy
    assert status.last_error is None
    pair.saver.close()


def test_an_error_of_one_transaction_does_not_count_where_the_database_can_be_read_and_written(pair: Opened) -> None:
    put(pair.saver, 1)
    failing: list[Transaction[Any]] = []

    def fail(transaction: Transaction[Any]) -> None:
        if not failing:
            failing.append(transaction)
            raise StoreError("this statement is too long")

    pair.primary.before = fail
    with pytest.raises(StoreError, match="too long"):
        put(pair.saver, 2)
    assert failing
    assert pair.saver.status().active == "primary"
    put(pair.saver, 2)
    pair.saver.close()


def test_what_a_program_raises_on_purpose_passes_through(pair: Opened) -> None:
    put(pair.saver, 1)

    def stop(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pair.saver.prune(None, progress=stop)
    assert pair.saver.status().primary.healthy
    pair.saver.close()


def test_a_side_that_is_back_is_noticed_without_any_caller(pair: Opened) -> None:
    pair.saver.close()
    pair = Opened(Database(), Database(), on_secondary_failure="continue")
    put(pair.saver, 1)
    pair.secondary.cut = True
    wait_for(lambda: not pair.saver.status().secondary.healthy)
    pair.secondary.cut = False
    wait_for(lambda: pair.saver.status().secondary.healthy)
    assert number_in(pair.saver) == 1
    pair.saver.close()


def test_a_failure_that_is_older_than_a_return_does_not_count(pair: Opened) -> None:
    put(pair.saver, 1)
    sides = pair.saver._pair.pair
    side = sides.sides[1]
    late, first = check_side(sides, side), check_side(sides, side)
    next(late)
    next(first)
    with pytest.raises(StopIteration):
        first.throw(StoreError("it is away"))
    assert not sides.is_well(side)
    sides.note_answer(side)
    with pytest.raises(StopIteration):
        late.throw(StoreError("it was away"))
    assert sides.is_well(side)
    pair.saver.close()
