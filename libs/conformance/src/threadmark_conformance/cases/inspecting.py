"""Inspecting stored data: whether it is sound, and how much it is."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from threadmark.errors import CorruptDataError, ForbiddenTypeError
from threadmark.program import Driver, Program, Transaction
from threadmark.serde import Serde
from threadmark.store.contract import Change, Scope, Store, WriteRow
from threadmark.types import CheckpointRef, Stats
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, pending, values

_LONG = "one message of a conversation, long enough to be a segment. " * 8


class _WithoutClasses:
    """The serializer of a program that has imported nothing of the application."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return Serde().dumps_typed(value)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:  # noqa: ARG002 - the contract's
        raise ForbiddenTypeError("the class shop.Order is not imported")


class _Twice:
    """A driver that runs every program twice, as if the connection broke before the commit."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def run(self, transaction: Transaction[Any]) -> Any:
        self._driver.run(transaction)
        return self._driver.run(transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        await self._driver.arun(transaction)
        return await self._driver.arun(transaction)

    def close(self) -> None:
        self._driver.close()

    async def aclose(self) -> None:
        await self._driver.aclose()


async def _filled(world: World, *threads: str, **more: object) -> Stats:
    """Return the counts of threads of four steps, which have more channels that never change."""
    for thread in threads:
        run = Run(world.saver, thread)
        for number in range(4):
            await run.step({"a": f"{thread} {number} {_LONG}", "n": number, **more})
            await run.write(("a", _LONG))
    return await world.saver.astats()


async def a_sound_database_has_no_problems(world: World) -> None:
    for thread in ("one", "two"):
        for ns in ("", "child"):
            run = Run(world.saver, thread, ns)
            for number in range(3):
                await run.step({"a": f"{number}{_LONG}", "n": number})
                await run.write(("a", _LONG), ("b", number))
    await world.saver.aput_writes(at("two", "", early_id(1)), [("a", "before its checkpoint" * 20)], "early")
    for saver in (world.saver, world.another()):
        assert tuple(await saver.averify()) == (2, 12, 25, [], [])
        assert tuple(await saver.averify("one")) == (1, 6, 12, [], [])
        assert await saver.averify(decode=True) == await saver.averify()


async def an_unknown_thread_is_sound_and_takes_nothing(world: World) -> None:
    await Run(world.saver).step({"a": _LONG})
    await Run(world.saver, "deleted").step({"a": _LONG})
    await world.saver.adelete_thread("deleted")
    for thread in ("nobody", "deleted"):
        assert tuple(await world.saver.averify(thread)) == (0, 0, 0, [], [])
        counted = await world.saver.astats(thread)
        assert (counted.threads, counted.checkpoints, counted.segments, counted.bytes_stored) == (0, 0, 0, 0)


async def undecodable_values_are_no_damage_and_reported_only_on_request(world: World) -> None:
    run = Run(world.saver)
    config = await run.step({"a": 1})
    await run.write(("b", 2))
    await world.saver.aput_writes(at("early", "", early_id(1)), [("c", 3)], "task")
    operator = world.another().with_serde(_WithoutClasses())
    assert tuple(await operator.averify()) == (2, 1, 2, [], [])
    verified = await operator.averify(decode=True)
    assert verified[:4] == (2, 1, 2, [])
    early, checkpoint_of_run = verified.unreadable
    assert {problem.kind for problem in verified.unreadable} == {"unreadable"}
    assert all("Order is not imported" in problem.problem for problem in verified.unreadable)
    assert "'early'" in early.location
    assert "'c'" in early.location
    assert id_of(config) in checkpoint_of_run.location
    assert (await operator.averify("thread", decode=True)).unreadable == [checkpoint_of_run]
    assert (await world.saver.averify(decode=True)).unreadable == []


async def damage_is_reported_whether_or_not_the_rest_can_be_decoded_here(world: World) -> None:
    def lose(store: Store) -> Program[None]:
        sizes = yield from store.segment_sizes("damaged")
        yield from store.remove("damaged", (), sorted(sizes))

    await _filled(world, "damaged", "sound")
    await world.in_store(lose)
    operator = world.another().with_serde(_WithoutClasses())
    proven, decoded = await operator.averify(), await operator.averify(decode=True)
    assert {problem.kind for problem in proven.problems} == {"damaged"}
    assert all("'damaged'" in problem.location for problem in proven.problems)
    assert decoded.problems == proven.problems
    assert len([problem for problem in decoded.unreadable if "'sound'" in problem.location]) == 4
    await world.saver.adelete_thread("damaged")


async def an_operator_needs_none_of_the_applications_classes(world: World) -> None:
    await _filled(world, "one", "two")
    await world.saver.aput_writes(at("early", "", early_id(1)), [("c", 3)], "task")
    operator = world.another().with_serde(_WithoutClasses())
    counted = await world.saver.astats()
    assert await operator.astats() == counted
    assert len(await operator.alist_checkpoint_refs()) == 8
    assert len(await operator.alist_orphan_writes()) == 1
    assert (await operator.aprune(["one"], keep_last=2)).checkpoints == 2
    await operator.acopy_thread("one", "copy")
    await operator.adelete_thread("two")
    await operator.adelete_for_runs(["none"])
    assert (await operator.averify()).problems == []
    assert {item.config["configurable"]["thread_id"] for item in await listed(world.saver, None)} == {"one", "copy"}


async def what_is_stored_is_counted(world: World) -> None:
    run = Run(world.saver)
    messages: list[str] = []
    for number in range(30):
        messages = [*messages, f"{number}{_LONG}"]
        await run.step({"messages": messages, "n": number})
        await run.write(("messages", messages[-1]))
    await Run(world.saver, "other").step({"a": _LONG})
    both, one = await world.saver.astats(), await world.another().astats("thread")
    assert (both.threads, both.checkpoints, both.writes) == (2, 31, 30)
    assert (one.threads, one.checkpoints, one.writes) == (1, 30, 30)
    assert set(both.channels) == {"messages", "n", "a"}
    assert both.bytes_stored > one.bytes_stored > 0
    # A put stores only changes: thirty growing values take little more than the last one.
    assert one.bytes_whole > 5 * one.bytes_stored


async def what_a_small_database_stores_beyond_its_values_is_counted(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"n": number})
        await run.write(("n", number))
    small = await world.saver.astats()
    assert small.bytes_stored > small.bytes_whole  # nothing in it is long enough to be shared
    assert small.bytes_stored - small.bytes_overhead <= small.bytes_whole
    for number in range(30):
        await run.step({"n": number, "a": f"{_LONG}{number}"})
        await run.write(("a", f"{_LONG}{number}"))
    large = await world.another().astats()
    assert small.bytes_overhead < large.bytes_overhead < large.bytes_stored
    assert large.bytes_stored < large.bytes_whole


async def the_figures_of_many_channels_take_a_few_lines(world: World) -> None:
    run = Run(world.saver)
    await run.step({f"channel {number}": "x" * number for number in range(120)})
    counted = await world.saver.astats()
    printed = repr(counted)
    assert len(counted.channels) == 120
    assert len(printed) < 1000
    assert printed == str(counted)
    for part in ("bytes_overhead=", "'channel 119': ChannelStats(", "... and 115 more", "problems=[]"):
        assert part in printed


async def references_are_listed_for_all_threads_and_namespaces(world: World) -> None:
    expected = []
    for thread in ("one", "tw\x00o"):
        for ns in ("", "child"):
            run, parent = Run(world.saver, thread, ns), None
            for number in range(3):
                made = id_of(await run.step({"n": number}))
                expected.append(CheckpointRef(thread, ns, made, parent))
                parent = made
    await Run(world.saver, "deleted").step({"a": 1})
    await world.saver.adelete_thread("deleted")
    for saver in (world.saver, world.another()):
        assert sorted(await saver.alist_checkpoint_refs(), key=str) == sorted(expected, key=str)
        assert await saver.alist_orphan_writes() == []
        assert await saver.ahas_tables()


async def tables_are_set_up_before_they_are_needed(world: World) -> None:
    await world.saver.asetup()
    for saver in (world.saver, world.another()):
        assert await saver.ahas_tables()
        assert await listed(saver, None) == []
    await Run(world.saver).step({"a": 1})
    await world.another().asetup()
    assert await values(world.another(), at("thread")) == {"a": 1}


async def writes_without_a_checkpoint_are_listed(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    await run.write(("a", 2))
    for ns in ("child", ""):
        for task in ("first", "second"):
            await world.saver.aput_writes(at("other", ns, early_id(1)), [("a", 1), ("b", 2)], task)
    expected = [CheckpointRef("other", ns, early_id(1), None) for ns in ("", "child")]
    assert await world.another().alist_orphan_writes() == expected
    await world.saver.aput(at("other", ""), checkpoint(checkpoint_id=early_id(1)), {}, {})
    assert await world.saver.alist_orphan_writes() == expected[1:]


async def what_nothing_needs_any_more_is_named_and_swept(world: World) -> None:
    def leave_behind(store: Store) -> Program[None]:
        yield from store.add(Change("thread", None, 0, {bytes(12): b"\x00left behind"}, (), (), None))

    await Run(world.saver).step({"a": _LONG})
    await world.in_store(leave_behind)
    assert [problem.kind for problem in (await world.saver.averify()).problems] == ["orphan"]
    await world.saver.aprune(["thread"])
    assert (await world.another().averify()).problems == []


async def a_checkpoint_that_is_put_again_leaves_nothing_behind(world: World) -> None:
    config = await Run(world.saver).step({"a": _LONG})
    again = checkpoint({"a": _LONG[::-1]}, {"a": 2}, checkpoint_id=id_of(config))
    await world.saver.aput(at("thread"), again, {}, {"a": 2})
    assert (await world.another().averify()).problems == []
    assert (await values(world.another(), config))["a"] == _LONG[::-1]


async def a_write_that_is_replaced_leaves_little_behind(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG})
    for seed in range(8):
        await run.write(("__interrupt__", random.Random(seed).randbytes(40_000)))
    assert (await world.saver.astats()).bytes_stored < 4 * 40_000
    assert (await pending(world.another(), run.config))[0][2] == random.Random(7).randbytes(40_000)


async def a_write_that_comes_again_leaves_little_behind(world: World) -> None:
    """The first one stays. The bytes of the others go, but for those that the next checkpoint needs."""
    run = Run(world.saver)
    for special in [], [("__interrupt__", "why?")]:
        before = await run.step({"a": _LONG})
        came = [random.Random(f"{special} {seed}").randbytes(40_000) for seed in range(8)]
        for value in came:
            await run.write(("a", value), *special)
        assert (await world.saver.astats()).bytes_stored < (len(special) + 1) * 4 * 40_000
        await run.step({"a": came[-1]})
        await world.saver.aprune(["thread"], keep_last=100)
        assert ("task", "a", came[0]) in await pending(world.another(), before)
        assert (await values(world.another(), run.config))["a"] == came[-1]
    assert (await world.saver.astats()).bytes_stored < 5 * 40_000


async def a_row_of_a_batch_that_is_lost_is_missed(world: World) -> None:
    """The row is a write, all ordinary ones, or the record that lists the rows of their batch."""
    run = Run(world.saver)
    config = await run.step({"a": 1})
    await run.write(("a", 1), ("a", 2), ("__interrupt__", 3))
    key = ("", id_of(config))

    def lose(idx: int, store: Store) -> Program[None]:
        rows = yield from store.rows("thread", [key])
        writes = yield from store.writes("thread", None)
        yield from store.remove("thread", [key], ())
        yield from store.add(Change("thread", None, 0, {}, rows, [row for row in writes if row.idx != idx], None))

    def put_back(rows: Sequence[WriteRow], store: Store) -> Program[None]:
        yield from store.add(Change("thread", None, 0, {}, (), rows, None))

    whole = await world.in_store(lambda store: store.writes("thread", None))
    assert len(whole) == 3
    for row in whole:
        await world.in_store(partial(lose, row.idx))
        for read in (got(world.another(), config), listed(world.another(), at("thread"))):
            with pytest.raises(CorruptDataError, match=r"'task'.* missing"):
                await read
        assert [problem.kind for problem in (await world.another().averify()).problems] == ["damaged"]
        await world.in_store(partial(put_back, whole))
    assert len(await pending(world.another(), config)) == 3


async def damage_is_named_and_everything_else_is_counted(world: World) -> None:
    def damage(store: Store) -> Program[None]:
        outlines = yield from store.page(Scope("damaged"), None, 4)
        rows = yield from store.rows("damaged", [(outlines[1].ns, outlines[1].id)])
        writes = yield from store.writes("damaged", [(outlines[2].ns, outlines[2].id)])
        foreign_row = rows[0]._replace(check=bytes(len(rows[0].check)))
        foreign_write = writes[0]._replace(task_id="another")
        yield from store.replace(Change("damaged", None, 0, {}, [foreign_row], [foreign_write], None))

    before = await _filled(world, "damaged", "sound")
    sound = await world.saver.astats("sound")
    assert before.problems == []
    await world.in_store(damage)
    counted, verified = await world.another().astats(), await world.another().averify()
    assert sorted(counted.problems) == sorted(verified.problems)
    assert [problem.kind for problem in counted.problems] == ["damaged", "damaged"]
    assert all("'damaged'" in problem.location for problem in counted.problems)
    assert counted[:4] == (2, 8, before.writes + 1, before.segments)
    assert counted.channels["a"].values == before.channels["a"].values - 1
    assert before.bytes_stored < counted.bytes_stored
    assert sound.bytes_whole < counted.bytes_whole < before.bytes_whole
    await world.saver.adelete_thread("damaged")
    assert await world.another().astats() == sound


async def checkpoints_whose_bytes_are_gone_are_named_and_the_others_counted(world: World) -> None:
    def lose(store: Store) -> Program[None]:
        sizes = yield from store.segment_sizes("damaged")
        yield from store.remove("damaged", (), sorted(sizes))

    await _filled(world, "damaged", "sound", **{"a name that makes headers too long to be literals" * 20: 0})
    sound = await world.saver.astats("sound")
    await world.in_store(lose)
    counted = await world.another().astats()
    assert {problem.kind for problem in counted.problems} == {"damaged"}
    assert counted[:2] == (2, 8)
    assert counted.segments == sound.segments
    assert counted.channels["a"].bytes_stored == sound.channels["a"].bytes_stored
    await world.saver.adelete_thread("damaged")


async def what_is_read_twice_is_counted_once(world: World) -> None:
    once = await _filled(world, "one", "two")
    assert await world.behind(_Twice).astats() == once
