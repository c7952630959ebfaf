"""Concurrency: no lost write, no torn read, and only errors that the contract names."""

import asyncio

from threadmark.errors import ThreadDeletedError
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, listed, pending, values

_LONG = "what everybody says at the same time, at length. " * 10


async def many_tasks_write_to_one_checkpoint(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG})
    savers = [world.saver, world.another(), world.another(cache_bytes=0)]
    await asyncio.gather(
        *(
            savers[number % 3].aput_writes(run.config, [("a", [number, _LONG]), ("b", number)], f"task {number:03d}")
            for number in range(60)
        )
    )
    expected = []
    for number in range(60):
        expected += [(f"task {number:03d}", "a", [number, _LONG]), (f"task {number:03d}", "b", number)]
    assert await pending(world.another(), run.config) == expected


async def many_threads_run_at_once(world: World) -> None:
    savers = [world.saver, world.another()]

    async def one(number: int) -> None:
        run = Run(savers[number % 2], f"thread {number}")
        for step in range(6):
            await run.step({"a": [f"{number}.{each} {_LONG}" for each in range(step + 1)]})
            await asyncio.gather(*(run.write(("w", [step, task]), task=f"{task}") for task in range(3)))
            found = await got(run.saver, at(f"thread {number}"))
            assert len(found.checkpoint["channel_values"]["a"]) == step + 1
            assert len(found.pending_writes or []) == 3

    await asyncio.gather(*(one(number) for number in range(16)))
    saver = world.another()
    assert len(await listed(saver, None)) == 96
    for number in range(16):
        expected = [f"{number}.{each} {_LONG}" for each in range(6)]
        assert await values(saver, at(f"thread {number}")) == {"a": expected}


async def many_put_children_of_one_parent(world: World) -> None:
    root = Run(world.saver)
    await root.step({"a": _LONG})
    savers = [world.saver, world.another()]
    forks = [root.fork(root.config) for _ in range(24)]
    for number, fork in enumerate(forks):
        fork.saver = savers[number % 2]
    await asyncio.gather(*(fork.step({"a": [number, _LONG]}) for number, fork in enumerate(forks)))
    for number, fork in enumerate(forks):
        assert await values(world.saver, fork.config) == {"a": [number, _LONG]}
    assert len(await listed(world.saver, at("thread"))) == 25


async def one_id_put_by_many_is_one_of_theirs(world: World) -> None:
    shared = early_id(1)
    await asyncio.gather(
        *(
            world.saver.aput(
                at("thread"), checkpoint({"a": [number, _LONG]}, checkpoint_id=shared), {"n": number}, {"a": 1}
            )
            for number in range(16)
        )
    )
    (found,) = await listed(world.another(), at("thread"))
    assert found.checkpoint["channel_values"] == {"a": [found.metadata["n"], _LONG]}


async def a_reader_never_sees_half_a_step(world: World) -> None:
    writer, reader = Run(world.saver), world.another()
    await writer.step({"a": 0, "b": [0, _LONG]}, metadata={"n": 0})
    done = False

    async def write() -> None:
        nonlocal done
        try:
            for number in range(1, 25):
                await writer.step({"a": number, "b": [number, _LONG]}, metadata={"n": number})
                await writer.write(("x", number), ("y", number))
                await asyncio.sleep(0)
        finally:
            done = True

    async def read() -> None:
        while not done:
            found = await got(reader, at("thread"))
            number = found.metadata["n"]
            assert found.checkpoint["channel_values"] == {"a": number, "b": [number, _LONG]}
            assert [value for _, _, value in found.pending_writes or []] in ([], [number, number])
            await asyncio.sleep(0)

    await asyncio.gather(write(), read(), read())


async def deleting_while_others_write_leaves_whole_checkpoints(world: World) -> None:
    savers = [world.saver, world.another()]

    async def write(number: int) -> None:
        run = Run(savers[number % 2])
        for step in range(8):
            try:
                await run.step({"a": [number, step, _LONG], "kept": [number, _LONG]})
                await run.write(("a", _LONG))
            except ThreadDeletedError:
                run = Run(savers[number % 2])

    async def delete() -> None:
        for _ in range(6):
            await savers[1].adelete_thread("thread")
            await savers[0].aprune(["thread"])
            await asyncio.sleep(0)

    await asyncio.gather(*(write(number) for number in range(6)), delete())
    for item in await listed(world.another(), at("thread")):
        found = item.checkpoint["channel_values"]
        assert found["kept"] == [found["a"][0], _LONG]
        assert found["a"][2] == _LONG


async def pruning_and_copying_while_others_write_lose_nothing(world: World) -> None:
    savers = [world.saver, world.another()]

    async def write(number: int) -> None:
        run = Run(savers[number % 2], ns=f"ns {number}")
        for step in range(10):
            await run.step({"a": [f"{number} {each} {_LONG}" for each in range(step + 1)]})
            await run.write(("a", step))

    async def tidy() -> None:
        for number in range(5):
            await savers[number % 2].aprune(["thread"])
            await savers[number % 2].acopy_thread("thread", f"copy {number}")

    await asyncio.gather(*(write(number) for number in range(4)), tidy(), tidy())
    for number in range(4):
        found = await got(world.another(), at("thread", f"ns {number}"))
        assert found.checkpoint["channel_values"] == {"a": [f"{number} {each} {_LONG}" for each in range(10)]}
        assert found.pending_writes == [("task", "a", 9)]
    for item in await listed(world.another(), None):
        namespace = item.config["configurable"]["checkpoint_ns"].removeprefix("ns ")
        found_values = item.checkpoint["channel_values"]["a"]
        assert found_values == [f"{namespace} {each} {_LONG}" for each in range(len(found_values))]
