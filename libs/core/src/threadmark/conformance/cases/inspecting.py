"""Looking at what is stored: whether it is sound, and how much it is."""

from threadmark.conformance.backend import World
from threadmark.conformance.engine import Run, at, checkpoint, early_id, id_of
from threadmark.model import Place

_LONG = "one message of a conversation, long enough to be a segment. " * 8


async def a_sound_database_has_no_problems(world: World) -> None:
    for thread in ("one", "two"):
        for ns in ("", "child"):
            run = Run(world.saver, thread, ns)
            for number in range(3):
                await run.step({"a": f"{number}{_LONG}", "n": number})
                await run.write(("a", _LONG), ("b", number))
    await world.saver.aput_writes(at("two", "", early_id(1)), [("a", "before its checkpoint" * 20)], "early")
    for saver in (world.saver, world.another()):
        assert tuple(await saver.averify()) == (2, 12, 25, [])
        assert tuple(await saver.averify("one")) == (1, 6, 12, [])


async def an_unknown_thread_is_sound_and_takes_nothing(world: World) -> None:
    await Run(world.saver).step({"a": _LONG})
    await Run(world.saver, "deleted").step({"a": _LONG})
    await world.saver.adelete_thread("deleted")
    for thread in ("nobody", "deleted"):
        assert tuple(await world.saver.averify(thread)) == (0, 0, 0, [])
        counted = await world.saver.astats(thread)
        assert (counted.threads, counted.checkpoints, counted.segments, counted.bytes_stored) == (0, 0, 0, 0)


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
    # A put stores what changed: thirty values that grow are stored in little more than the last one takes.
    assert one.bytes_whole > 5 * one.bytes_stored


async def places_are_told_of_all_threads_and_namespaces(world: World) -> None:
    expected = []
    for thread in ("one", "tw\x00o"):
        for ns in ("", "child"):
            run, parent = Run(world.saver, thread, ns), None
            for number in range(3):
                made = id_of(await run.step({"n": number}))
                expected.append(Place(thread, ns, made, parent))
                parent = made
    await Run(world.saver, "deleted").step({"a": 1})
    await world.saver.adelete_thread("deleted")
    for saver in (world.saver, world.another()):
        assert sorted(await saver.aplaces(), key=str) == sorted(expected, key=str)
        assert await saver.astrays() == []
        assert await saver.aexists()


async def writes_without_a_checkpoint_are_told(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    await run.write(("a", 2))
    for ns in ("child", ""):
        for task in ("first", "second"):
            await world.saver.aput_writes(at("other", ns, early_id(1)), [("a", 1), ("b", 2)], task)
    expected = [Place("other", ns, early_id(1), None) for ns in ("", "child")]
    assert await world.another().astrays() == expected
    await world.saver.aput(at("other", ""), checkpoint(checkpoint_id=early_id(1)), {}, {})
    assert await world.saver.astrays() == expected[1:]


async def what_nothing_needs_any_more_is_named_and_swept(world: World) -> None:
    made = checkpoint({"a": _LONG})
    config = await world.saver.aput(at("thread"), made, {}, {"a": 1})
    again = checkpoint({"a": _LONG[::-1]}, {"a": 2}, checkpoint_id=id_of(config))
    await world.saver.aput(at("thread"), again, {}, {"a": 2})
    problems = (await world.saver.averify()).problems
    assert {problem.kind for problem in problems} <= {"orphan"}
    await world.saver.aprune(["thread"])
    assert (await world.another().averify()).problems == []
