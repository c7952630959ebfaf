"""Parts of a state: one value, a page of messages, a part of each thread of a listing; and no more is read for it."""

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from threadmark.errors import ConfigError, CorruptDataError
from threadmark.model import MessagePage
from threadmark.program import Program
from threadmark.serde import Serde
from threadmark.store import Store
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, early_id

_LARGE = random.Random(0).randbytes(200_000)
"""What no compression makes shorter."""

_DELTA = {"counters_since_delta_snapshot": {"d": [1, 1]}}


@dataclass
class _Said:
    """A message as an application may have it."""

    content: Any
    id: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def shouted(self) -> str:
        raise AssertionError("a property runs code")


class _Pair(NamedTuple):
    left: Any
    right: Any


def _chat(count: int) -> list[Any]:
    """Messages of each sort that there is, none like another."""
    return [
        _Said(f"text {number} " * 9, f"m{number}", {"n": number})
        if number % 2
        else {"content": f"text {number} " * 9, "id": f"m{number}"}
        for number in range(count)
    ]


async def _begin(world: World, thread: str = "thread", count: int = 30) -> Run:
    run = Run(world.saver, thread)
    await run.step({"files": {"a.py": {"size": 3, "blob": _LARGE}}, "other": _LARGE[::-1]})
    for some in (count // 2, count):
        await run.step({"messages": _chat(some), "pair": _Pair(1, [2, _Pair(3, 4)])})
        await run.write(("files", _LARGE[:1000]), ("messages", _chat(1)))
    return run


async def a_path_leads_to_a_part_of_the_newest_state(world: World) -> None:
    await _begin(world)
    parts = {
        "messages[-1].content": "text 29 " * 9,
        "messages[28].content[:6]": "text 2",
        'messages[0]["id"]': "m0",
        "messages[3].extra.n": 3,
        "messages[-2:]": _chat(30)[-2:],
        "messages[1:4][1].id": "m2",
        "messages": _chat(30),
        'files["a.py"].size': 3,
        '["pair"].right[1].left': 3,
        "pair[0]": 1,
        "other[-3:]": _LARGE[::-1][-3:],
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
        assert await world.cold.amessages(thread) == MessagePage([], None, 0)
    await Run(world.saver, "none").step({"a": None, "b": [None]})
    assert await world.cold.aextract("none", "a", nothing) is None
    assert await world.cold.aextract("none", "b[0]", nothing) is None
    assert await world.cold.aextract("none", "a.b", nothing) is nothing


async def a_part_of_an_older_checkpoint_or_another_namespace_can_be_read(world: World) -> None:
    run = Run(world.saver)
    first = await run.step({"messages": _chat(2)})
    await run.step({"messages": _chat(9)})
    await Run(world.saver, "thread", "child").step({"messages": _chat(4)})
    for saver in (world.saver, world.cold):
        assert await saver.aextract(first, "messages[-1].id") == "m1"
        assert await saver.aextract("thread", "messages[-1].id") == "m8"
        assert await saver.aextract(at("thread", "child"), "messages[-1].id") == "m3"
        assert (await saver.amessages(first)).total == 2


async def a_part_is_the_callers_own(world: World) -> None:
    await _begin(world)
    for _ in range(2):
        message = await world.saver.aextract("thread", "messages[-1]")
        assert message == _chat(30)[-1]
        message.extra["n"] = "changed"
        page = await world.saver.amessages("thread", limit=2)
        assert page.messages == _chat(30)[-2:]
        page.messages[1].extra.clear()


async def only_the_channel_of_the_path_is_read(world: World) -> None:
    run = await _begin(world)
    saver, reads = world.counting()
    for thread in ("thread", run.config):
        for call in (saver.aextract(thread, "messages[-1].content"), saver.amessages(thread, limit=3)):
            reads.begin_anew()
            await call
            assert reads.writes == 0
            assert reads.bytes < 10_000
            assert 0 < reads.segments < 12
            assert len(reads.questions) <= 3
            assert not {"find", "writes", "page"} & set(reads.questions)
    reads.begin_anew()
    assert await saver.aextract("thread", "nobody") is None
    assert len(reads.questions) <= 2
    reads.begin_anew()
    assert await saver.aextract("thread", 'files["a.py"].size') == 3
    assert 200_000 < reads.bytes < 210_000


async def a_part_that_was_read_before_is_not_fetched_again(world: World) -> None:
    await _begin(world)
    saver, reads = world.counting(cache_bytes=10_000_000)
    before = await saver.aextract("thread", 'files["a.py"].size')
    assert reads.bytes > len(_LARGE)
    reads.begin_anew()
    assert await saver.aextract("thread", 'files["a.py"].size') == before == 3
    assert len((await saver.amessages("thread")).messages) == 20
    assert reads.bytes < 20_000
    run = Run(saver)
    run.config = at("thread")
    await run.step({"messages": [*_chat(30), "next"]})
    assert await saver.aextract("thread", "messages[-1]") == "next"
    await saver.adelete_thread("thread")
    assert await saver.aextract("thread", "messages[-1]") is None


async def pages_join_to_the_whole_chat(world: World) -> None:
    await _begin(world)
    chat = _chat(30)
    for limit in (1, 7, 30, 100):
        read: list[Any] = []
        before: int | None = None
        for _ in range(31):
            page = await world.saver.amessages("thread", limit=limit, before=before)
            assert page.total == 30
            read = page.messages + read
            before = page.before
            if before is None:
                break
        assert (read, before) == (chat, None)
    assert await world.saver.amessages("thread") == MessagePage(chat[10:], 10, 30)
    assert await world.saver.amessages("thread", limit=0, before=4) == MessagePage([], 4, 30)
    assert await world.saver.amessages("thread", before=0) == MessagePage([], None, 30)
    assert await world.saver.amessages("thread", limit=2, before=99) == MessagePage(chat[28:], 28, 30)
    assert await world.saver.amessages("thread", limit=1, before=5, channel="pair[0]") == MessagePage([], None, 0)


async def a_page_ends_before_the_message_of_an_id(world: World) -> None:
    await _begin(world)
    chat = _chat(30)
    for number in (0, 1, 2, 15, 29):
        page = await world.cold.amessages("thread", limit=2, before=f"m{number}")
        assert page.messages == chat[max(0, number - 2) : number]
    with pytest.raises(ConfigError, match=r"has the id 'gone'.*begin again"):
        await world.saver.amessages("thread", before="gone")
    with pytest.raises(ConfigError, match="has the id 'gone'"):
        await world.saver.amessages("nobody", before="gone")


async def messages_are_those_of_a_list(world: World) -> None:
    await Run(world.saver).step({"messages": {"not": "a list"}, "pair": (1, 2), "none": None})
    for channel in ("messages", "none"):
        with pytest.raises(ConfigError, match=f"channel '{channel}' is no list of messages"):
            await world.saver.amessages("thread", channel=channel)
    assert await world.saver.amessages("thread", channel="pair", limit=1) == MessagePage([2], 1, 2)


async def a_delta_channel_is_not_mistaken_for_an_empty_one(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"]}, metadata=_DELTA)
    del run.values["d"]
    await run.step(unsaved=["d"], metadata=_DELTA)
    counted = run.config
    await run.step({"a": 1}, unsaved=["d"])
    for thread in (counted, "thread"):
        for call in (world.saver.aextract(thread, "d[-1]"), world.cold.amessages(thread, channel="d")):
            with pytest.raises(ConfigError, match=r"delta channel.*get_state"):
                await call
    await run.step(unsaved=["branch:to:a", "emptied"])
    assert await world.saver.aextract("thread", "branch:to:a", 0) == 0
    assert await world.saver.aextract("thread", "emptied", 0) == 0
    await run.step(unsaved=["d"], metadata=_DELTA)
    (info,) = (await world.saver.athreads(extract={"last": "d[-1]", "a": "a"})).threads
    assert info.extracted == {"a": 1}
    assert [(each.kind, "get_state" in each.problem) for each in info.problems] == [("unreadable", True)]


async def what_a_message_says_makes_no_delta_channel_of_it(world: World) -> None:
    said = "_DeltaSnapshot " * 9
    for value in ([_Said(said, "m0")], _Said(said, "m0"), {"_DeltaSnapshot": _Said(said, said)}, said):
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
            await world.saver.athreads(extract={"x": path})
    for odd in (None, 3, b"a"):
        with pytest.raises(ConfigError, match="path"):
            await world.saver.aextract("nobody", odd)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigError, match="path"):
        await world.saver.aextract("nobody", "a" * 10_001)
    for extract in ("last", ["last"], {1: "a"}, dict.fromkeys(map(str, range(65)), "a")):
        with pytest.raises(ConfigError, match="extract"):
            await world.saver.athreads(extract=extract)  # type: ignore[arg-type]  # that is the point
    for before in (-1, 1.5, True, b"m1"):
        with pytest.raises(ConfigError, match="before"):
            await world.saver.amessages("nobody", before=before)  # type: ignore[arg-type]  # that is the point


async def a_listing_has_a_part_of_each_thread(world: World) -> None:
    names = [f"thread {number:02}" for number in range(12)]
    for number, name in enumerate(names):
        run = Run(world.saver, name)
        await run.step({"other": _LARGE[number:]})
        await run.step({"messages": _chat(number + 1), **({"title": name} if number % 2 else {})})
    await world.saver.acreate_thread("without checkpoints")
    await Run(world.saver, "without a root", "child").step({"title": "of the child"})
    extract = {"last": "messages[-1].id", "title": "title", "whole": "messages[0]"}
    page = await world.cold.athreads(sort="id", limit=100, extract=extract)
    found = {info.id: info.extracted for info in page.threads}
    for number, name in enumerate(names):
        title = name if number % 2 else None
        assert found[name] == {"last": f"m{number}", "title": title, "whole": _chat(1)[0]}
    assert found["without checkpoints"] == found["without a root"] == dict.fromkeys(extract)
    assert all(list(info.problems) == [] for info in page.threads)
    some = await world.another().athreads(sort="id", limit=2, cursor=None, extract={"last": "messages[-1].id"})
    assert [info.extracted for info in some.threads] == [{"last": "m0"}, {"last": "m1"}]
    plain = await world.saver.athreads(sort="id", limit=100)
    assert [info.extracted for info in plain.threads] == [{}] * 14
    assert [info._replace(extracted={}) for info in page.threads] == plain.threads


async def a_listing_asks_as_often_for_many_threads_as_for_one(world: World) -> None:
    for number in range(40):
        run = Run(world.saver, f"thread {number:02}")
        await run.step({"other": _LARGE[: 20_000 + number]})
        await run.step({"messages": _chat(8)})
    saver, reads = world.counting()
    questions = []
    for limit in (1, 40):
        reads.begin_anew()
        page = await saver.athreads(limit=limit, extract={"last": "messages[-1].id"})
        assert [info.extracted for info in page.threads] == [{"last": "m7"}] * limit
        questions.append(reads.questions)
        assert reads.writes == 0
        assert reads.bytes < limit * 4_000
    assert questions[0] == questions[1]
    assert len(questions[0]) <= 5


async def large_values_are_read_a_few_threads_at_once(world: World) -> None:
    large = _LARGE * 30
    for number in range(5):
        await Run(world.saver, f"thread {number}").step({"a": [large, number], "b": number})
    saver, reads = world.counting()
    page = await saver.athreads(sort="id", extract={"number": "a[1]", "b": "b"})
    assert [info.extracted for info in page.threads] == [{"number": n, "b": n} for n in range(5)]
    assert 3 <= reads.questions.count("newest") <= 4


async def a_damaged_thread_of_a_listing_is_reported_and_the_others_are_listed(world: World) -> None:
    for name in ("good", "lost", "sound"):
        await Run(world.saver, name).step({"messages": [name, _LARGE[:500]], "title": name})

    def lose_segments(store: Store) -> Program[None]:
        sizes = yield from store.segment_sizes("lost")
        yield from store.remove("lost", (), sorted(sizes))

    await world.in_store(lose_segments)
    page = await world.cold.athreads(sort="id", extract={"last": "messages[0]", "title": "title"})
    good, lost, sound = page.threads
    assert good.extracted == {"last": "good", "title": "good"}
    assert sound.extracted == {"last": "sound", "title": "sound"}
    assert lost.extracted == {}
    assert [(problem.kind, "'lost'" in problem.location) for problem in lost.problems] == [("damaged", True)]
    for call in (world.cold.aextract("lost", "messages[0]"), world.cold.amessages("lost")):
        with pytest.raises(CorruptDataError, match="'lost'"):
            await call
    await world.saver.adelete_thread("lost")


async def a_part_that_this_program_may_not_load_is_reported(world: World) -> None:
    await Run(world.saver).step({"said": _Said("x", "m0"), "plain": 1})
    strict = world.another().with_serde(Serde(allow=[]))
    (info,) = (await strict.athreads(extract={"said": "said", "id": "said.id", "plain": "plain"})).threads
    assert info.extracted == {"id": "m0", "plain": 1}
    assert [(problem.kind, "'said'" in problem.location) for problem in info.problems] == [("unreadable", True)]


class _Foreign:
    """A serializer of somebody else's, which knows nothing of parts."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return "foreign", repr(value).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        found: Any = eval(data[1])  # noqa: S307 - a test reads what it has written
        return found


async def any_serializer_will_do(world: World) -> None:
    foreign = world.saver.with_serde(_Foreign())
    chat = [{"id": f"m{number}", "content": _LARGE.hex()[:300]} for number in range(9)]
    await Run(foreign).step({"messages": chat, "odd": {1, 2}})
    assert await foreign.aextract("thread", "messages[-1].id") == "m8"
    assert await foreign.aextract("thread", "odd[0]", "none") == "none"
    assert (await foreign.amessages("thread", limit=2, before="m3")).messages == chat[1:3]
    (info,) = (await foreign.athreads(extract={"last": "messages[-1].id"})).threads
    assert info.extracted == {"last": "m8"}
    await world.saver.adelete_thread("thread")


async def in_an_owners_view_only_its_own_parts_are_there(world: World) -> None:
    ada, eve = world.saver.for_owner("ada"), world.another().for_owner("eve")
    for number in range(3):
        await Run(ada, f"ada {number}").step({"a": [number, _LARGE[:300]]})
    await Run(eve, "eve 0").step({"a": ["own"]})
    for saver, expected in ((ada, [0, 1, 2]), (eve, ["own"]), (world.another().for_owner("nobody"), [])):
        page = await saver.athreads(sort="id", extract={"first": "a[0]"})
        assert [info.extracted["first"] for info in page.threads] == expected
    assert await ada.aextract("ada 1", "a[0]") == 1
    assert await eve.aextract("ada 1", "a[0]", "none") == "none"
    assert await eve.amessages("ada 1", channel="a") == MessagePage([], None, 0)
