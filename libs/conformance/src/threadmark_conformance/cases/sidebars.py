"""Listings of threads with a part of each thread's newest state, as a sidebar shows them."""

import pytest

from threadmark.errors import CorruptDataError
from threadmark.program import Program
from threadmark.serde import Serde
from threadmark.store.contract import Store
from threadmark_conformance.backend import World
from threadmark_conformance.chats import LARGE, Said, chat
from threadmark_conformance.engine import Run


async def a_listing_has_a_part_of_each_thread(world: World) -> None:
    names = [f"thread {number:02}" for number in range(12)]
    for number, name in enumerate(names):
        run = Run(world.saver, name)
        await run.step({"other": LARGE[number:]})
        await run.step({"messages": chat(number + 1), **({"title": name} if number % 2 else {})})
    await world.saver.acreate_thread("without checkpoints")
    await Run(world.saver, "without a root", "child").step({"title": "of the child"})
    extract = {"last": "messages[-1].id", "title": "title", "whole": "messages[0]"}
    page = await world.cold.alist_threads(sort="id", limit=100, extract=extract)
    found = {info.id: info.extracted for info in page.threads}
    for number, name in enumerate(names):
        title = name if number % 2 else None
        assert found[name] == {"last": f"m{number}", "title": title, "whole": chat(1)[0]}
    assert found["without checkpoints"] == found["without a root"] == dict.fromkeys(extract)
    assert all(list(info.problems) == [] for info in page.threads)
    some = await world.another().alist_threads(sort="id", limit=2, cursor=None, extract={"last": "messages[-1].id"})
    assert [info.extracted for info in some.threads] == [{"last": "m0"}, {"last": "m1"}]
    plain = await world.saver.alist_threads(sort="id", limit=100)
    assert [info.extracted for info in plain.threads] == [{}] * 14
    assert [info._replace(extracted={}) for info in page.threads] == plain.threads


async def a_listing_asks_as_often_for_many_threads_as_for_one(world: World) -> None:
    for number in range(40):
        run = Run(world.saver, f"thread {number:02}")
        await run.step({"other": LARGE[: 20_000 + number]})
        await run.step({"messages": chat(8)})
    saver, reads = world.counting()
    questions = []
    for limit in (1, 40):
        reads.reset()
        page = await saver.alist_threads(limit=limit, extract={"last": "messages[-1].id"})
        assert [info.extracted for info in page.threads] == [{"last": "m7"}] * limit
        questions.append(reads.questions)
        assert reads.writes == 0
        assert reads.bytes < limit * 4_000
    assert questions[0] == questions[1]
    assert len(questions[0]) <= 5


async def large_values_are_read_a_few_threads_at_once(world: World) -> None:
    large = LARGE * 30
    for number in range(5):
        await Run(world.saver, f"thread {number}").step({"a": [large, number], "b": number})
    saver, reads = world.counting()
    page = await saver.alist_threads(sort="id", extract={"number": "a[1]", "b": "b"})
    assert [info.extracted for info in page.threads] == [{"number": n, "b": n} for n in range(5)]
    assert 3 <= reads.questions.count("newest") <= 4


async def a_damaged_thread_of_a_listing_is_reported_and_the_others_are_listed(world: World) -> None:
    for name in ("good", "lost", "sound"):
        await Run(world.saver, name).step({"messages": [name, LARGE[:500]], "title": name})

    def lose_segments(store: Store) -> Program[None]:
        sizes = yield from store.segment_sizes("lost")
        yield from store.remove("lost", (), sorted(sizes))

    await world.in_store(lose_segments)
    page = await world.cold.alist_threads(sort="id", extract={"last": "messages[0]", "title": "title"})
    good, lost, sound = page.threads
    assert good.extracted == {"last": "good", "title": "good"}
    assert sound.extracted == {"last": "sound", "title": "sound"}
    assert lost.extracted == {}
    assert [(problem.kind, "'lost'" in problem.location) for problem in lost.problems] == [("damaged", True)]
    for call in (world.cold.aextract("lost", "messages[0]"), world.cold.aextract_items("lost")):
        with pytest.raises(CorruptDataError, match="'lost'"):
            await call
    await world.saver.adelete_thread("lost")


async def a_part_that_this_program_may_not_load_is_reported(world: World) -> None:
    await Run(world.saver).step({"said": Said("x", "m0"), "plain": 1})
    strict = world.another().with_serde(Serde(allow=[]))
    (info,) = (await strict.alist_threads(extract={"said": "said", "id": "said.id", "plain": "plain"})).threads
    assert info.extracted == {"id": "m0", "plain": 1}
    assert [(problem.kind, "'said'" in problem.location) for problem in info.problems] == [("unreadable", True)]
