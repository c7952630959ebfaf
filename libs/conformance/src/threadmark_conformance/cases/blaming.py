"""The checkpoint that first held the present value of a part."""

from threadmark.model import Config
from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, id_of


async def _first(saver: Saver, where: Config | str, path: str) -> str | None:
    found = await saver.ablame(where, path)
    return found.entry.id if found else None


async def a_value_is_blamed_on_the_checkpoint_that_first_held_it(world: World) -> None:
    run, ids = Run(world.saver), []
    for number in range(14):
        text = f"message {number} " * 30
        items = [*run.values.get("m", []), {"id": str(number), "text": text, "tags": (number, "x")}]
        ids.append(id_of(await run.step({"m": items, "phase": number // 5, "back": number % 2, "n": number})))
    for saver in (world.saver, world.cold):
        assert await _first(saver, "thread", "m[3]") == ids[3]
        assert await _first(saver, "thread", 'm[3]["text"]') == ids[3]
        assert await _first(saver, "thread", "m[0].tags[1]") == ids[0]
        assert await _first(saver, "thread", "m[2:5]") == ids[4]
        assert await _first(saver, "thread", "phase") == ids[10]
        assert await _first(saver, "thread", "back") == ids[13]  # without a break until now
        assert await _first(saver, at("thread", "", ids[9]), "phase") == ids[5]
        last = await saver.ablame("thread", "m[-1].text")
        assert last is not None
        assert (last.path, last.value, last.entry.step) == ("m[13].text", f"message {13} " * 30, 13)
        for nothing in ("nobody", "m[99]", "m[0].nothing"):
            assert await saver.ablame("thread", nothing) is None
        assert await saver.ablame("nobody", "m") is None
    # Another branch has another past; a forked value is still that of its first checkpoint.
    other = run.fork(at("thread", "", ids[6]))
    other.values = {**other.values, "m": other.values["m"][:7]}
    await other.step({"n": "other", "phase": 1})
    assert await _first(world.cold, "thread", "phase") == ids[5]
    assert await _first(world.cold, "thread", "m[6]") == ids[6]
    # A pruned checkpoint cannot be named, so the oldest one that still has the value is.
    await world.saver.aprune(["thread"], keep_last=3)
    assert await _first(world.cold, at("thread", "", ids[13]), "m[3]") == ids[12]


async def checkpoints_whose_value_is_equal_are_not_read(world: World) -> None:
    run = Run(world.saver)
    first = id_of(await run.step({"plan": {"goal": "home " * 500}}))
    for number in range(60):
        await run.step({"n": number, "other": f"{number} " * 900})
    saver, reads = world.counting()
    assert await _first(saver, "thread", "plan.goal") == first
    assert len(reads.questions) < 16
    value = await saver.ablame("thread", "n")
    assert value is not None
    assert value.value == 59
