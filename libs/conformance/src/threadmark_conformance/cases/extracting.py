"""Parts of a state: one value, a page of messages, a part of each listed thread, without reading more than needed."""

from typing import Any

import pytest

from threadmark.errors import ConfigError
from threadmark.model import MessagePage
from threadmark_conformance.backend import World
from threadmark_conformance.chats import LARGE, Pair, Said, chat
from threadmark_conformance.engine import Run, at, early_id

_DELTA = {"counters_since_delta_snapshot": {"d": [1, 1]}}


async def _begin(world: World, thread: str = "thread", count: int = 30) -> Run:
    run = Run(world.saver, thread)
    await run.step({"files": {"a.py": {"size": 3, "blob": LARGE}}, "other": LARGE[::-1]})
    for some in (count // 2, count):
        await run.step({"messages": chat(some), "pair": Pair(1, [2, Pair(3, 4)])})
        await run.write(("files", LARGE[:1000]), ("messages", chat(1)))
    return run


async def a_path_leads_to_a_part_of_the_newest_state(world: World) -> None:
    await _begin(world)
    parts = {
        "messages[-1].content": "text 29 " * 9,
        "messages[28].content[:6]": "text 2",
        'messages[0]["id"]': "m0",
        "messages[3].extra.n": 3,
        "messages[-2:]": chat(30)[-2:],
        "messages[1:4][1].id": "m2",
        "messages": chat(30),
        'files["a.py"].size': 3,
        '["pair"].right[1].left': 3,
        "pair[0]": 1,
        "other[-3:]": LARGE[::-1][-3:],
    }
    for saver in (world.saver, world.another(), world.cold):
        for path, part in parts.items():
            for thread in ("thread", at("thread"), {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}):
                assert await saver.aextract(thread, path) == part, path


async def where_there_is_no_part_the_default_is_returned(world: World) -> None:
    await _begin(world)
    nothing = object()
    for path in (
        "nobody",
        "messages[30]",
        "messages[-31].content",
        "messages[-1].nobody",
        "messages[-1].shouted",
        "messages.content",
        "messages[-1].content.real",
        'files["b.py"]',
        'files["a.py"].size[0]',
        "files[0]",
    ):
        assert await world.cold.aextract("thread", path, nothing) is nothing, path
        assert await world.saver.aextract("thread", path) is None
    for thread in ("nobody", at("thread", "child"), at("nobody", "", early_id(1)), at("thread", "", early_id(1))):
        assert await world.cold.aextract(thread, "messages[-1]", nothing) is nothing
        assert await world.cold.aextract_items(thread) == MessagePage([], None, 0)
    await Run(world.saver, "none").step({"a": None, "b": [None]})
    assert await world.cold.aextract("none", "a", nothing) is None
    assert await world.cold.aextract("none", "b[0]", nothing) is None
    assert await world.cold.aextract("none", "a.b", nothing) is nothing


async def a_part_of_an_older_checkpoint_or_another_namespace_can_be_read(world: World) -> None:
    run = Run(world.saver)
    first = await run.step({"messages": chat(2)})
    await run.step({"messages": chat(9)})
    await Run(world.saver, "thread", "child").step({"messages": chat(4)})
    for saver in (world.saver, world.cold):
        assert await saver.aextract(first, "messages[-1].id") == "m1"
        assert await saver.aextract("thread", "messages[-1].id") == "m8"
        assert await saver.aextract(at("thread", "child"), "messages[-1].id") == "m3"
        assert (await saver.aextract_items(first)).total == 2


async def a_part_is_the_callers_own(world: World) -> None:
    await _begin(world)
    for _ in range(2):
        message = await world.saver.aextract("thread", "messages[-1]")
        assert message == chat(30)[-1]
        message.extra["n"] = "changed"
        page = await world.saver.aextract_items("thread", limit=2)
        assert page.messages == chat(30)[-2:]
        page.messages[1].extra.clear()


async def only_the_channel_of_the_path_is_read(world: World) -> None:
    run = await _begin(world)
    saver, reads = world.counting()
    for thread in ("thread", run.config):
        for call in (saver.aextract(thread, "messages[-1].content"), saver.aextract_items(thread, limit=3)):
            reads.reset()
            await call
            assert reads.writes == 0
            assert reads.bytes < 10_000
            assert 0 < reads.segments < 12
            assert len(reads.questions) <= 3
            assert not {"find", "writes", "page"} & set(reads.questions)
    reads.reset()
    assert await saver.aextract("thread", "nobody") is None
    assert len(reads.questions) <= 2
    reads.reset()
    assert await saver.aextract("thread", 'files["a.py"].size') == 3
    assert 200_000 < reads.bytes < 210_000


async def a_part_that_was_read_before_is_not_fetched_again(world: World) -> None:
    await _begin(world)
    saver, reads = world.counting(cache_bytes=10_000_000)
    before = await saver.aextract("thread", 'files["a.py"].size')
    assert reads.bytes > len(LARGE)
    reads.reset()
    assert await saver.aextract("thread", 'files["a.py"].size') == before == 3
    assert len((await saver.aextract_items("thread")).messages) == 20
    assert reads.bytes < 20_000
    run = Run(saver)
    run.config = at("thread")
    await run.step({"messages": [*chat(30), "next"]})
    assert await saver.aextract("thread", "messages[-1]") == "next"
    await saver.adelete_thread("thread")
    assert await saver.aextract("thread", "messages[-1]") is None


async def pages_join_to_the_whole_chat(world: World) -> None:
    await _begin(world)
    whole = chat(30)
    for limit in (1, 7, 30, 100):
        read: list[Any] = []
        before: int | None = None
        for _ in range(31):
            page = await world.saver.aextract_items("thread", limit=limit, before=before)
            assert page.total == 30
            read = page.messages + read
            before = page.before
            if before is None:
                break
        assert (read, before) == (whole, None)
    assert await world.saver.aextract_items("thread") == MessagePage(whole[10:], 10, 30)
    assert await world.saver.aextract_items("thread", limit=0, before=4) == MessagePage([], 4, 30)
    assert await world.saver.aextract_items("thread", before=0) == MessagePage([], None, 30)
    assert await world.saver.aextract_items("thread", limit=2, before=99) == MessagePage(whole[28:], 28, 30)
    assert await world.saver.aextract_items("thread", limit=1, before=5, channel="pair[0]") == MessagePage([], None, 0)


async def a_page_ends_before_the_message_of_an_id(world: World) -> None:
    await _begin(world)
    whole = chat(30)
    for number in (0, 1, 2, 15, 29):
        page = await world.cold.aextract_items("thread", limit=2, before=f"m{number}")
        assert page.messages == whole[max(0, number - 2) : number]
    with pytest.raises(ConfigError, match=r"has the id 'gone'.*begin again"):
        await world.saver.aextract_items("thread", before="gone")
    with pytest.raises(ConfigError, match="has the id 'gone'"):
        await world.saver.aextract_items("nobody", before="gone")


async def messages_are_those_of_a_list(world: World) -> None:
    await Run(world.saver).step({"messages": {"not": "a list"}, "pair": (1, 2), "none": None})
    for channel in ("messages", "none"):
        with pytest.raises(ConfigError, match=f"channel '{channel}' is no list of messages"):
            await world.saver.aextract_items("thread", channel=channel)
    assert await world.saver.aextract_items("thread", channel="pair", limit=1) == MessagePage([2], 1, 2)


async def a_delta_channel_is_not_mistaken_for_an_empty_one(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"]}, metadata=_DELTA)
    del run.values["d"]
    await run.step(unsaved=["d"], metadata=_DELTA)
    counted = run.config
    await run.step({"a": 1}, unsaved=["d"])
    for thread in (counted, "thread"):
        for call in (world.saver.aextract(thread, "d[-1]"), world.cold.aextract_items(thread, channel="d")):
            with pytest.raises(ConfigError, match=r"delta channel.*get_state"):
                await call
    await run.step(unsaved=["branch:to:a", "emptied"])
    assert await world.saver.aextract("thread", "branch:to:a", 0) == 0
    assert await world.saver.aextract("thread", "emptied", 0) == 0
    await run.step(unsaved=["d"], metadata=_DELTA)
    (info,) = (await world.saver.alist_threads(extract={"last": "d[-1]", "a": "a"})).threads
    assert info.extracted == {"a": 1}
    assert [(each.kind, "get_state" in each.problem) for each in info.problems] == [("unreadable", True)]


async def what_a_message_says_makes_no_delta_channel_of_it(world: World) -> None:
    said = "_DeltaSnapshot " * 9
    for value in ([Said(said, "m0")], Said(said, "m0"), {"_DeltaSnapshot": Said(said, said)}, said):
        await Run(world.saver).step({"a": value})
        assert await world.cold.aextract("thread", "a") == value


async def a_path_that_cannot_be_read_is_refused_with_its_place(world: World) -> None:
    for path, place in {
        "": "character 1 on, where it ends",
        "messages[": "character 9 on, at '['",
        "messages[-1].": "character 13 on, at '.'",
        "messages[1.5]": "character 9 on",
        "messages['a']": "character 9 on",
        "messages[-1]content": "character 13 on, at 'content'",
        "a.__class__": "only fields",
        'a["\\x"]': "no JSON string",
        ".a": "character 1 on",
        "[0]": "character 1 on",
        "a[" + "9" * 19 + "]": "character 2 on",
    }.items():
        with pytest.raises(ConfigError, match="such as messages") as caught:
            await world.saver.aextract("nobody", path)
        assert place in str(caught.value), path
        with pytest.raises(ConfigError, match="such as messages"):
            await world.saver.alist_threads(extract={"x": path})
    for odd in (None, 3, b"a"):
        with pytest.raises(ConfigError, match="path"):
            await world.saver.aextract("nobody", odd)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigError, match="path"):
        await world.saver.aextract("nobody", "a" * 10_001)
    for extract in ("last", ["last"], {1: "a"}, dict.fromkeys(map(str, range(65)), "a")):
        with pytest.raises(ConfigError, match="extract"):
            await world.saver.alist_threads(extract=extract)  # type: ignore[arg-type]  # that is the point
    for before in (-1, 1.5, True, b"m1"):
        with pytest.raises(ConfigError, match="before"):
            await world.saver.aextract_items("nobody", before=before)  # type: ignore[arg-type]  # that is the point


class _Foreign:
    """A foreign serializer, which knows nothing of parts."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return "foreign", repr(value).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        found: Any = eval(data[1])  # noqa: S307 - a test reads its own text
        return found


async def any_serializer_will_do(world: World) -> None:
    foreign = world.saver.with_serde(_Foreign())
    said = [{"id": f"m{number}", "content": LARGE.hex()[:300]} for number in range(9)]
    await Run(foreign).step({"messages": said, "odd": {1, 2}})
    assert await foreign.aextract("thread", "messages[-1].id") == "m8"
    assert await foreign.aextract("thread", "odd[0]", "none") == "none"
    assert (await foreign.aextract_items("thread", limit=2, before="m3")).messages == said[1:3]
    (info,) = (await foreign.alist_threads(extract={"last": "messages[-1].id"})).threads
    assert info.extracted == {"last": "m8"}
    await world.saver.adelete_thread("thread")


async def in_an_owners_view_only_its_own_parts_are_there(world: World) -> None:
    ada, eve = world.saver.for_owner("ada"), world.another().for_owner("eve")
    for number in range(3):
        await Run(ada, f"ada {number}").step({"a": [number, LARGE[:300]]})
    await Run(eve, "eve 0").step({"a": ["own"]})
    for saver, expected in ((ada, [0, 1, 2]), (eve, ["own"]), (world.another().for_owner("nobody"), [])):
        page = await saver.alist_threads(sort="id", extract={"first": "a[0]"})
        assert [info.extracted["first"] for info in page.threads] == expected
    assert await ada.aextract("ada 1", "a[0]") == 1
    assert await eve.aextract("ada 1", "a[0]", "none") == "none"
    assert await eve.aextract_items("ada 1", channel="a") == MessagePage([], None, 0)
