"""With `pause_gc=True` the garbage collector is paused while a large value is decoded; otherwise it is left alone."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import threadmark
from signals.strikes import Interruptions, Step
from threadmark import ConfigError, MemorySaver, Saver
from threadmark.saver import decoding
from threadmark.saver.decoding import with_gc_paused
from threadmark.serde import Serde

_THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    assert gc.isenabled()


def test_the_collector_is_the_programs_unless_the_saver_may_pause_it() -> None:
    assert _decoded_with({}) == [(True, "small"), (True, "large"), (True, "large")]
    assert _decoded_with({"pause_gc": False}) == [(True, "small"), (True, "large"), (True, "large")]
    assert _decoded_with({"pause_gc": True}) == [(True, "small"), (False, "large"), (False, "large")]


def _decoded_with(options: dict[str, Any]) -> list[tuple[bool, str]]:
    """Whether the collector was on when each value was decoded."""
    serde = _Watching()
    saver = MemorySaver(serde=serde, cache_bytes=0, **options)
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
    listed = list(saver.list(_THREAD))
    assert listed == [found]
    read, again = serde.seen[: len(serde.seen) // 2], serde.seen[len(serde.seen) // 2 :]
    assert read == again
    return sorted(read, key=lambda seen: seen[1], reverse=True)


def test_every_saver_has_the_option(tmp_path: Path) -> None:
    for url in ("memory:", f"sqlite:///{tmp_path / 'threads.db'}"):
        with threadmark.open(url, pause_gc=True) as saver:
            assert isinstance(saver, Saver)
            assert saver._context.pause_gc
        with threadmark.open(url) as saver:
            assert isinstance(saver, Saver)
            assert not saver._context.pause_gc
        with pytest.raises(ConfigError, match="pause_gc must be True or False, not 'yes'"):
            threadmark.open(url, pause_gc="yes")


def test_who_has_switched_the_collector_off_finds_it_off() -> None:
    gc.disable()
    try:
        assert with_gc_paused(lambda _: gc.isenabled(), None) is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ZeroDivisionError):
        with_gc_paused(lambda number: 1 / number, 0)


def test_one_pause_inside_another_does_not_end_it() -> None:
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
        assert not decoding._paused
    assert interruptions.raised > 3


class _Watching(Serde):
    """Notes whether the collector is on when a value is decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, str]] = []

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        self.seen.append((gc.isenabled(), "large" if len(data[1]) > 1000 else "small"))
        return super().loads_typed(data)
