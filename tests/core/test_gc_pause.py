"""While a large value is decoded the garbage collector rests, and afterwards it is as it was."""

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

from signals.strikes import Interruptions, Step
from threadmark import MemorySaver
from threadmark.saver.loading import gc_pause
from threadmark.saver.loading.gc_pause import with_gc_paused
from threadmark.serde import Serde

_THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    assert gc.isenabled()


def test_a_large_value_is_decoded_without_collections_and_a_small_one_as_ever() -> None:
    serde = _Watching()
    saver = MemorySaver(serde=serde, cache_bytes=0)
    values = {"large": ["word" * 100] * 100, "small": ["word"]}
    versions: dict[str, Any] = {"large": 1, "small": 1}
    checkpoint: Any = {
        "v": 4,
        "ts": "2026-01-01T00:00:00+00:00",
        "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }
    config = saver.put(_THREAD, checkpoint, {}, versions)
    saver.put_writes(config, [("large", values["large"])], "task")
    found = saver.get_tuple(_THREAD)
    assert found
    assert found.checkpoint["channel_values"] == values
    assert sorted(serde.seen, reverse=True) == [(True, "small"), (False, "large"), (False, "large")]


def test_who_has_switched_the_collector_off_finds_it_off() -> None:
    gc.disable()
    try:
        assert with_gc_paused(lambda _: gc.isenabled(), None) is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_ends_the_rest() -> None:
    with pytest.raises(ZeroDivisionError):
        with_gc_paused(lambda number: 1 / number, 0)


def test_one_rest_inside_another_does_not_end_it() -> None:
    def outer(_: object) -> list[bool]:
        return [with_gc_paused(lambda _: gc.isenabled(), None), gc.isenabled()]

    assert with_gc_paused(outer, None) == [False, False]


def test_the_child_of_a_fork_collects() -> None:
    def fork(_: object) -> int:
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        return os.waitpid(child, 0)[1]

    assert with_gc_paused(fork, None) == 0


def test_an_interrupt_at_any_instruction_leaves_the_collector_on() -> None:
    interruptions, location, reached = Interruptions(KeyboardInterrupt), 0, True
    while reached:
        location += 1
        step = Step(location)
        interruptions.during(lambda: with_gc_paused(lambda given: [given], None), step)
        reached = step.reached
        assert gc.isenabled()
        assert not gc_pause._resting
    assert interruptions.raised > 3


class _Watching(Serde):
    """Notes whether the collector is on when a value is decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, str]] = []

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        self.seen.append((gc.isenabled(), "large" if len(data[1]) > 1000 else "small"))
        return super().loads_typed(data)
