"""A task that writes again: its first ordinary write at each place counts, and its last special one."""

import random
from collections.abc import Collection
from functools import partial
from typing import Any, cast

import pytest

from threadmark.errors import CorruptDataError
from threadmark.format.packs import PACK
from threadmark.program import Program
from threadmark.store.contract import Store, WriteRow
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of, listed, pending

_SPECIAL = ("__error__", "__scheduled__", "__interrupt__", "__resume__")
_LONG = "what a task says, at length, so that it is more than a row holds. "

Write = tuple[str, Any]


def _batch(positions: Collection[int], attempt: int, *, long: bool = False) -> list[Write]:
    """Return writes to ordinary channels at these places, and to a special one at each place between them."""
    text = _LONG * 3 if long else ""
    return [
        (f"channel {position}", f"{attempt} {text}{position}")
        if position in positions
        else (_SPECIAL[position % len(_SPECIAL)], f"{attempt} {text}{position}")
        for position in range(max(positions, default=-1) + 1)
    ]


def _kept(batches: list[list[Write]]) -> set[Write]:
    """Return the remaining writes of one task's batches."""
    ordinary: dict[int, Write] = {}
    special: dict[str, Write] = {}
    for batch in batches:
        for position, write in enumerate(batch):
            if write[0] in _SPECIAL:
                special[write[0]] = write
            else:
                ordinary.setdefault(position, write)
    return {*ordinary.values(), *special.values()}


def _by_task(writes: Collection[tuple[str, str, Any]]) -> dict[str, set[Write]]:
    found: dict[str, set[Write]] = {}
    for task, channel, value in writes:
        found.setdefault(task, set()).add((channel, value))
    assert sum(map(len, found.values())) == len(writes)
    return found


async def the_first_write_of_each_place_counts(world: World) -> None:
    """The same places again, fewer, more, others, and some of both."""
    run = Run(world.saver)
    await run.step()
    expected: dict[str, set[Write]] = {}
    sequences = [
        ({0, 1, 2}, {0, 1, 2}),
        ({0, 1, 2}, {0, 1}),
        ({0, 1}, {0, 1, 2}),
        ({0, 2}, {1, 3}),
        ({0, 1, 3}, {1, 2, 4}),
        ({2}, {0}, {0, 1, 2, 3}),
        ({0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}),
        ({1}, {0, 2}, {1}),
    ]
    for number, positions in enumerate(sequences):
        batches = [_batch(each, attempt, long=number % 2 == 1) for attempt, each in enumerate(positions)]
        for attempt, batch in enumerate(batches):
            run.saver = world.saver if attempt % 2 == 0 else world.cold
            await run.write(*batch, task=f"task {number}")
        expected[f"task {number}"] = _kept(batches)
    for saver in (world.saver, world.another()):
        assert _by_task(await pending(saver, run.config)) == expected


async def any_tasks_may_write_again_in_any_order(world: World) -> None:
    await _written_in_any_order(world, most=5)


async def many_writes_may_be_written_again_in_any_order(world: World) -> None:
    """There are so many that a backend may store them in several rows."""
    await _written_in_any_order(world, most=48)


async def _written_in_any_order(world: World, most: int) -> None:
    chance = random.Random(5)
    run = Run(world.saver)
    await run.step()
    batches: dict[str, list[list[Write]]] = {}
    for attempt in range(24):
        task = f"task {chance.randrange(6)}"
        share = chance.choice([0.1, 0.5, 1])
        positions = {position for position in range(chance.randrange(most + 1)) if chance.random() < share}
        batch = _batch(positions, attempt, long=chance.random() < 0.5)
        batches.setdefault(task, []).append(batch)
        await run.write(*batch, task=task)
    expected = {task: kept for task, each in batches.items() if (kept := _kept(each))}
    assert _by_task(await pending(world.another(), run.config)) == expected
    assert _by_task((await listed(world.saver, at("thread")))[0].pending_writes or []) == expected


async def what_came_before_its_checkpoint_counts_when_it_is_written_again(world: World) -> None:
    made = checkpoint(checkpoint_id=early_id(1))
    config = at("thread", "child", made["id"])
    await world.saver.aput_writes(config, [("a", 1), ("__error__", 1)], "task", "path")
    await world.another().aput_writes(config, [("a", 2), ("__error__", 2), ("b", 2)], "task", "another path")
    await world.saver.aput(at("thread", "child"), made, {}, {})
    found = await pending(world.another(), config)
    assert sorted(found) == [("task", "__error__", 2), ("task", "a", 1), ("task", "b", 2)]


async def a_copy_keeps_what_was_written_first(world: World) -> None:
    run = Run(world.saver, "source")
    config = await run.step()
    many = {*range(2, 32)}
    batches = [_batch({0, 1, *many}, 0, long=True), _batch({0, 2, 3}, 1, long=True), _batch({0, 1, 2, 3, 40, *many}, 2)]
    for batch in batches[:2]:
        await run.write(*batch)
    await world.another().acopy_thread("source", "copy")
    copied = at("copy", "", id_of(config))
    assert _by_task(await pending(world.saver, copied)) == {"task": _kept(batches[:2])}
    await world.saver.aput_writes(copied, batches[2], "task")
    assert _by_task(await pending(world.another(), copied)) == {"task": _kept(batches)}
    await world.saver.adelete_thread("copy")
    await world.another().acopy_thread("source", "copy")
    assert _by_task(await pending(world.another(), config)) == {"task": _kept(batches[:2])}
    assert _by_task(await pending(world.another(), copied)) == {"task": _kept(batches[:2])}


async def a_fork_begins_without_what_its_origins_tasks_wrote(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 0})
    origin = await run.step({"a": 1})
    for attempt in range(2):
        await run.write(("a", attempt), ("__interrupt__", attempt), *[("b", attempt)] * attempt)
    await run.step({"a": 2})
    fork = await world.another().afork(origin, {"a": 3})
    assert await pending(world.saver, fork) == []
    await world.saver.aput_writes(fork, [("a", "fork"), ("b", "fork")], "task")
    assert await pending(world.another(), fork) == [("task", "a", "fork"), ("task", "b", "fork")]
    assert sorted(await pending(world.another(), origin)) == [
        ("task", "__interrupt__", 1),
        ("task", "a", 0),
        ("task", "b", 1),
    ]


async def a_delta_channel_has_what_was_written_first_in_its_order(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"]})
    del run.values["d"]
    for attempt in range(3):
        await run.write(("d", f"{attempt}.0"), ("__error__", attempt), *[("d", f"{attempt}.{_LONG}")] * attempt)
    await run.write(("d", "b"), task="b")
    await run.step(unsaved=["d"])
    expected = [("b", "d", "b"), *[("task", "d", f"{attempt}") for attempt in ("0.0", f"1.{_LONG}", f"2.{_LONG}")]]
    for saver in (world.saver, world.another()):
        found = await saver.aget_delta_channel_history(config=run.config, channels=["d"])
        assert found["d"] == {"writes": expected, "seed": ["seed"]}
    await world.saver.aprune(["thread"])  # which spares the writes that the channel is read from
    found = await world.another().aget_delta_channel_history(config=run.config, channels=["d"])
    assert found["d"] == {"writes": expected, "seed": ["seed"]}


async def a_task_with_more_values_than_its_row_names_loses_none_to_a_removal(world: World) -> None:
    run = Run(world.saver)
    chance = random.Random(1)
    await run.step({"a": 0})
    await run.write(("a", chance.randbytes(200)))  # which nothing needs when its checkpoint is gone
    await run.step({"a": 1})
    writes = [("a", chance.randbytes(200)) for _ in range(300)]
    await run.write(*writes)
    await run.write(*reversed(writes), ("b", chance.randbytes(200)), ("__error__", chance.randbytes(200)))
    before = await pending(world.saver, run.config)
    assert [value for _, channel, value in before if channel == "a"] == [value for _, value in writes]
    assert len(before) == 302
    removed = await world.another().aprune(["thread"])
    assert (removed.checkpoints, removed.writes, removed.segments) == (1, 1, 1)
    assert await pending(world.another(), run.config) == before


async def what_goes_is_counted_write_by_write(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write(("a", 1), ("b", 2), ("__error__", 3))
    await run.write(("a", 4), ("b", 5), ("c", 6), ("__error__", 7))
    assert (await world.saver.aprune(["thread"], strategy="delete")).writes == 4


async def what_was_written_already_is_not_stored_again(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG * 20})
    await run.write(("a", _LONG * 20), ("b", 1))
    before = await world.another().astats("thread")
    await world.another().aput_writes(run.config, [("a", _LONG * 20), ("b", 2)], "task")
    await run.write(("a", _LONG * 20))
    assert await world.another().astats("thread") == before


async def a_row_of_writes_that_is_not_found_is_missed(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    await run.write(("a", 1), ("b", 2), ("__error__", 3))
    await run.write(("a", 4), ("b", 5), ("c", 6))
    hidden = {"row of its writes": PACK, "write with index 2": 2}
    for missing, index in hidden.items():
        saver = world.over(partial(_without, index=index), world.another(cache_bytes=0))
        with pytest.raises(CorruptDataError, match=f"pending writes of task 'task': the {missing} is missing"):
            await saver.aget_tuple(run.config)
        with pytest.raises(CorruptDataError, match="task 'task'"):
            await listed(saver, at("thread"))
        with pytest.raises(CorruptDataError, match="task 'task'"):
            await saver.acopy_thread("thread", "copy")
        problems = (await saver.averify("thread")).problems
        assert [problem.kind for problem in problems] == ["damaged"]
    assert len(await pending(world.another(), run.config)) == 4


def _without(store: Store, index: int) -> Store:
    return cast("Store", _Hiding(store, index))  # it has all attributes of the other store


class _Hiding:
    """A store that does not find the rows of pending writes with one index."""

    def __init__(self, store: Store, index: int) -> None:
        self._store, self._index = store, index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def find(self, *args: Any) -> Program[Any]:
        found = yield from self._store.find(*args)
        return found and found._replace(writes=self._left(found.writes))

    def writes(self, *args: Any) -> Program[list[WriteRow]]:
        return self._left((yield from self._store.writes(*args)))

    def _left(self, rows: Any) -> list[WriteRow]:
        return [row for row in rows if row.idx != self._index]
