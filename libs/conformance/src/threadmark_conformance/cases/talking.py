"""Messages of conversations: appended, replaced, read a page at a time, and removed with everything of them."""

import asyncio
import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from threadmark import Conversations
from threadmark.errors import (
    ConfigError,
    ConflictError,
    CorruptDataError,
    LeaseLostError,
    SerializationError,
    ThreadBusyError,
    ThreadNotFoundError,
)
from threadmark.ids import new_id
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.proving.checks import checkpoint_row
from threadmark.store import Change, Scope, Store, now
from threadmark.stored import announced_size, expand
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, listed, pending, values

TALK = {"thread_id": "talk"}
LONG = 3600
_MARK = "saffron-heliotrope"


@dataclass
class _Note:
    content: str
    id: str | None = None
    tags: list[str] = field(default_factory=list)


def said(number: int) -> dict[str, Any]:
    """A message."""
    return {"id": f"m{number}", "role": "user", "content": f"message {number}"}


def talk_of(world: World) -> Conversations:
    """Conversations over the first saver."""
    return world.interface(Conversations)


async def _ids(talk: Conversations, **options: Any) -> list[str]:
    return [message["id"] for message in await talk.aget_messages(TALK, **options)]


async def messages_come_back_in_the_order_in_which_they_were_appended(world: World) -> None:
    talk = talk_of(world)
    for number in range(3):
        assert await talk.aput_messages(TALK, [said(number)]) == [f"m{number}"]
    assert await talk.aput_messages(TALK, (said(number) for number in (9, 4, 7))) == ["m9", "m4", "m7"]
    other = world.interface(Conversations, world.another())
    assert await other.aput_messages(TALK, [said(3)]) == ["m3"]
    expected = [said(number) for number in (0, 1, 2, 9, 4, 7, 3)]
    assert await talk.aget_messages(TALK) == expected
    assert await world.interface(Conversations, world.cold).aget_messages(TALK) == expected
    assert await talk.aput_messages(TALK, []) == []


async def a_page_has_the_newest_messages_oldest_first(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_messages(TALK, [said(number) for number in range(12)])
    assert await _ids(talk, limit=3) == ["m9", "m10", "m11"]
    assert await _ids(talk, limit=3, before="m9") == ["m6", "m7", "m8"]
    assert await _ids(talk, limit=3, offset=2) == ["m7", "m8", "m9"]
    assert await _ids(talk, limit=2, offset=1, before="m3") == ["m0", "m1"]
    assert await _ids(talk, limit=5, before="m0") == []
    assert await _ids(talk, limit=0) == []
    assert await _ids(talk, offset=20) == []
    assert len(await talk.aget_messages(TALK)) == 12
    with pytest.raises(ConfigError, match="no message 'gone' in thread 'talk'"):
        await talk.aget_messages(TALK, before="gone")
    assert await talk.aget_messages({"thread_id": "another"}) == []


async def messages_are_found_by_their_text_whatever_its_case(world: World) -> None:
    talk = talk_of(world)
    given: list[Any] = [
        {"id": "a", "content": "Die STRASSE ist lang"},
        {"id": "b", "content": [{"type": "text", "text": "die straße"}, {"type": "image", "url": "strasse"}]},
        {"id": "c", "content": ["nothing", "of it"]},
        {"id": "f", "content": {"strasse": 1}, "role": "strasse"},
    ]
    await talk.aput_messages(TALK, [*given, *(said(number) for number in range(600))])
    assert await _ids(talk, search="strasse") == ["a", "b"]
    assert await _ids(talk, search="STRASSE", limit=1) == ["b"]
    assert await _ids(talk, search="straße", limit=1, offset=1) == ["a"]
    assert await _ids(talk, search="of it") == ["c"]
    assert await _ids(talk, search="strasse", before="b") == ["a"]
    assert await _ids(talk, search="message 59", limit=3) == ["m597", "m598", "m599"]


async def a_message_without_an_id_gets_one_in_a_copy(world: World) -> None:
    talk = talk_of(world)
    given = [{"content": "x"}, {"id": None, "content": "y"}]
    before = copy.deepcopy(given)
    made = await talk.aput_messages(TALK, given)
    assert given == before
    assert len(set(made)) == 2
    assert await talk.aget_messages(TALK) == [{"id": made[0], "content": "x"}, {"id": made[1], "content": "y"}]
    assert await talk.aget_message(TALK, made[0]) == {"id": made[0], "content": "x"}
    assert await talk.aget_message(TALK, "no such") is None


async def a_message_may_be_a_dataclass(world: World) -> None:
    talk = talk_of(world)
    given = [_Note("Straße", "a"), _Note("none", tags=["x"])]
    first, made = await talk.aput_messages(TALK, given)
    assert (first, given[1].id) == ("a", None)
    assert await talk.aget_messages(TALK) == [given[0], _Note("none", made, ["x"])]
    assert await talk.aget_messages(TALK, search="strasse") == [given[0]]
    found = await talk.aget_message(TALK, made)
    found.tags.append("spoiled")
    assert await talk.aget_message(TALK, made) == _Note("none", made, ["x"])


async def messages_that_cannot_be_stored_store_none_of_a_call(world: World) -> None:
    talk = talk_of(world)
    with pytest.raises(SerializationError, match='message "bad"'):
        await talk.aput_messages(TALK, [said(1), {"id": "bad", "content": object()}])
    for wrong in ("text", {"id": "x"}, None, 7, [1], ["text"], [{"id": ""}], [{"id": 7}], [{"id": "x" * 257}]):
        with pytest.raises(ConfigError):
            await talk.aput_messages(TALK, wrong)  # type: ignore[arg-type]  # on purpose
    for config in (None, {}, "talk", {"thread_id": None}, {"thread_id": "t", "user_id": ""}, {"configurable": 1}):
        with pytest.raises(ConfigError):
            await talk.aput_messages(config, [said(1)])  # type: ignore[arg-type]  # on purpose
    assert await talk.aget_thread(TALK) is None


async def a_known_id_is_replaced_at_its_place(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_messages(TALK, [said(number) for number in range(4)])
    second = {"id": "m1", "content": "another " * 40}
    before = {ref.checkpoint["id"]: ref for ref in await listed(world.cold, at("talk", MESSAGES_NS))}
    assert await talk.aput_messages(TALK, [said(8), second, said(9)]) == ["m8", "m1", "m9"]
    assert await _ids(talk) == ["m0", "m1", "m2", "m3", "m8", "m9"]
    assert await talk.aget_message(TALK, "m1") == second
    assert len(before) == 4
    await talk.aput_messages(TALK, [{**second, "content": "short"}])
    assert await talk.aget_message(TALK, "m1") == {"id": "m1", "content": "short"}
    assert (await world.cold.averify("talk", decode=True)).problems == []
    repeated = [said(10), {"id": "m10", "content": "the last"}, said(11)]
    assert await talk.aput_messages(TALK, repeated) == ["m10", "m10", "m11"]
    assert await _ids(talk, limit=2) == ["m10", "m11"]
    assert (await talk.aget_message(TALK, "m10"))["content"] == "the last"


async def a_deleted_message_is_in_no_row(world: World) -> None:
    talk = talk_of(world)
    long, short = f"{_MARK} {'x' * 3000}", _MARK
    await talk.aput_messages(TALK, [said(1), {"id": "long", "content": long}, {"id": "short", "content": short}])
    await talk.aput_messages(TALK, [{"id": "twin", "content": long}, said(2)])
    for message_id in ("long", "short"):
        await talk.aput_messages(TALK, [{"id": message_id, "content": "replaced"}])
    assert await _holders(world) == 1  # its twin has the text, too, and shares no bytes with it
    await talk.aput_messages(TALK, [{"id": "long", "content": long}, {"id": "short", "content": short}])
    assert await _holders(world) == 3
    assert await talk.adelete_message(TALK, "twin") is True
    assert await talk.adelete_message(TALK, "long") is True
    assert await _holders(world) == 1
    assert (await talk.aget_message(TALK, "short"))["content"] == short
    assert await talk.adelete_message(TALK, "short") is True
    assert await _holders(world) == 0
    assert await talk.adelete_message(TALK, "short") is False
    assert await talk.adelete_message({"thread_id": "nowhere"}, "short") is False
    assert await _ids(talk) == ["m1", "m2"]
    assert (await world.cold.averify("talk")).problems == []
    assert await talk.adelete_message(TALK, "m1")
    assert await talk.adelete_message(TALK, "m2")
    assert await talk.aget_messages(TALK) == []
    assert await talk.aput_messages(TALK, [said(3)]) == ["m3"]
    assert await _ids(talk) == ["m3"]


async def _holders(world: World) -> int:
    """How many rows of the thread have the secret in them, as the saver reads them: opened and expanded."""

    def program(store: Store) -> Program[list[bytes]]:
        outlines = yield from store.page(Scope("talk"), None, 1000)
        rows = yield from store.rows("talk", [outline.key for outline in outlines])
        sizes = yield from store.segment_sizes("talk")
        segments = yield from store.segments("talk", list(sizes))
        return [row.header for row in rows] + list(segments.values())

    rows = await world.in_store(program)
    return sum(_MARK.encode() in _expanded(row) for row in rows)


def _expanded(row: bytes) -> bytes:
    try:
        return expand(row, announced_size(row))
    except CorruptDataError:
        return row  # a header


async def messages_of_equal_text_share_no_bytes(world: World) -> None:
    talk = talk_of(world)
    same = "the same " * 50

    def sizes(store: Store) -> Program[int]:
        return len((yield from store.segment_sizes("talk")))

    await talk.aput_messages(TALK, [{"id": "a", "content": same}, {"id": "b", "content": same}])
    count = await world.in_store(sizes)
    await talk.aput_messages(TALK, [{"id": "c", "content": same}])
    assert (count, await world.in_store(sizes)) == (2, 3)
    await talk.adelete_message(TALK, "b")
    assert [message["content"] for message in await talk.aget_messages(TALK)] == [same, same]
    assert await world.in_store(sizes) == 2


async def appending_costs_the_same_whatever_the_length(world: World) -> None:
    talk = talk_of(world)
    growth = []
    for start in (0, 300):
        await talk.aput_messages(TALK, [said(1000 + start + number) for number in range(300)])
        before = (await talk.aget_thread(TALK)).bytes  # type: ignore[union-attr]  # it is there
        await talk.aput_messages(TALK, [{"id": f"x{start:03}", "content": "y" * 500}])
        growth.append((await talk.aget_thread(TALK)).bytes - before)  # type: ignore[union-attr]  # see above
    assert abs(growth[0] - growth[1]) <= 8


async def two_who_append_at_once_lose_nothing(world: World) -> None:
    talks = [world.interface(Conversations, world.another()) for _ in range(2)]
    await asyncio.gather(
        *(talk.aput_messages(TALK, [said(10 * place + n)]) for n in range(6) for place, talk in enumerate(talks))
    )
    found = await _ids(talks[0])
    assert sorted(found) == sorted(f"m{10 * place + n}" for n in range(6) for place in range(2))


async def one_message_that_is_put_twice_at_once_is_there_once(world: World) -> None:
    talks = [world.interface(Conversations, world.another()) for _ in range(4)]
    await asyncio.gather(*(talk.aput_messages(TALK, [said(1), said(2)]) for talk in talks))
    assert await _ids(talks[0]) == ["m1", "m2"]


async def a_message_comes_last_though_another_clock_is_ahead(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_messages(TALK, [said(1)])
    ahead = f"ffffffff{new_id()[8:]}"

    def from_the_future(store: Store) -> Program[None]:
        rows = yield from store.rows("talk", [(MESSAGES_NS, "m1")])
        outline = rows[0].outline._replace(rank=ahead)
        yield from store.replace(
            Change("talk", None, now(), {}, [checkpoint_row(outline, rows[0].header, None)], (), None)
        )

    await world.in_store(from_the_future)
    await talk.aput_messages(TALK, [said(2), said(3)])
    await world.interface(Conversations, world.another()).aput_messages(TALK, [said(4)])
    assert await _ids(talk) == ["m1", "m2", "m3", "m4"]


async def a_user_reaches_only_its_own_conversations(world: World) -> None:
    talk = talk_of(world)
    ada, eve = {**TALK, "user_id": "ada"}, {**TALK, "user_id": "eve"}
    await talk.aput_messages(ada, [said(1)])
    await talk.aput_state(ada, {"mood": "fine"})
    with pytest.raises(ThreadNotFoundError, match="not there for 'eve'"):
        await talk.aput_messages(eve, [said(2)])
    with pytest.raises(ThreadNotFoundError, match="not there for 'eve'"):
        await talk.aput_messages(eve, [{"id": "m1", "content": "planted"}])
    with pytest.raises(ThreadNotFoundError):
        await talk.aput_state(eve, {"mood": "planted"})
    assert await talk.aget_messages(eve) == []
    assert await talk.aget_message(eve, "m1") is None
    assert await talk.adelete_message(eve, "m1") is False
    assert await talk.aget_state(eve) is None
    assert await talk.aget_state_cache(eve) is None
    assert await talk.aput_state_cache(eve, {"mood": "fine"}) is False
    assert await talk.aclear_state(eve) is False
    assert await talk.aget_thread(eve) is None
    assert (await talk.aget_threads(eve)).threads == []
    assert await talk.adelete_thread(eve) is False
    assert await talk.aget_messages(ada) == [said(1)]
    assert await talk.aget_messages(TALK) == [said(1)]  # no user is named: all threads are there
    assert (await talk.aget_thread(ada)).owner == "ada"  # type: ignore[union-attr]  # it is there
    assert await talk.aget_messages({"configurable": {**ada, "checkpoint_ns": ""}}) == [said(1)]
    of_ada = world.interface(Conversations, world.another().for_owner("ada"))
    assert await of_ada.aget_messages(TALK) == [said(1)]
    with pytest.raises(ConfigError, match="only the threads of 'ada'"):
        await of_ada.aget_messages(eve)


async def conversations_are_listed_by_their_last_message(world: World) -> None:
    talk = talk_of(world)
    for name in ("one", "two", "three"):
        await talk.aput_messages({"thread_id": name, "user_id": "ada"}, [said(1)])
    await talk.aput_messages({"thread_id": "of nobody"}, [said(1)])
    await talk.aput_state({"thread_id": "two"}, {"a": 1})
    await talk.aput_messages({"thread_id": "one"}, [said(2)])
    names = [thread.id for thread in (await talk.aget_threads()).threads]
    assert names == ["one", "two", "of nobody", "three"]
    page = await talk.aget_threads({"user_id": "ada"}, limit=2)
    rest = await talk.aget_threads({"user_id": "ada"}, limit=2, cursor=page.cursor)
    assert [thread.id for thread in page.threads + rest.threads] == ["one", "two", "three"]
    await world.saver.aupdate_thread("three", title="Die Straße")
    assert [thread.id for thread in (await talk.aget_threads(search="STRASSE")).threads] == ["three"]
    assert [thread.id for thread in (await talk.aget_threads(offset=3)).threads] == ["three"]
    before = (await talk.aget_thread({"thread_id": "one"})).updated  # type: ignore[union-attr]  # it is there
    await talk.adelete_message({"thread_id": "one"}, "m2")
    assert (await talk.aget_thread({"thread_id": "one"})).updated == before  # type: ignore[union-attr]  # see above
    assert await talk.adelete_thread({"thread_id": "one"}) is True
    assert await talk.aget_messages({"thread_id": "one"}) == []
    assert await talk.adelete_thread({"thread_id": "one"}) is False


async def nothing_that_removes_old_checkpoints_takes_messages(world: World) -> None:
    talk = talk_of(world)
    run = Run(world.saver, "talk")
    await run.step({"a": 1}, metadata={"run_id": "r"})
    await talk.aput_messages({**TALK, "run_id": "r"}, [said(number) for number in range(5)])
    await run.step({"a": 2}, metadata={"run_id": "r"})
    expected = await talk.aget_messages(TALK)
    assert (await world.saver.aprune(["talk"])).checkpoints == 1
    await world.saver.aprune(None, keep_last=1, older_than=timedelta(0))
    report = await world.saver.aretention(keep_last=1, older_than=timedelta(0), idle_for=timedelta(days=1))
    assert (report.idle, report.expired) == (0, 0)
    keeping = Run(world.with_rules(keep_last=1), "talk")
    for number in range(4):
        await keeping.step({"b": number})
    assert await talk.aget_messages(TALK) == expected
    await world.saver.adelete_for_runs(["r"])
    assert await talk.aget_messages(TALK) == expected
    assert (await world.saver.aprune(["talk"], strategy="delete")).checkpoints >= 5
    assert await talk.aget_thread(TALK) is None


async def a_message_keeps_a_thread_from_being_idle(world: World) -> None:
    talk = talk_of(world)
    for name in ("talk", "idle"):
        await Run(world.saver, name).step({"a": 1})
    await asyncio.sleep(0.3)
    await talk.aput_messages(TALK, [said(1)])
    report = await world.saver.aretention(idle_for=timedelta(seconds=0.25), dry_run=True)
    assert report.idle == 1
    assert await talk.aget_messages(TALK) == [said(1)]


async def messages_are_copied_renamed_and_verified_with_their_thread(world: World) -> None:
    talk = talk_of(world)
    await Run(world.saver, "talk").step({"a": 1})
    await talk.aput_messages(TALK, [said(number) for number in range(3)])
    source = await talk.aget_thread(TALK)
    assert await world.saver.acopy_thread("talk", "copy") is True
    await talk.aput_messages(TALK, [said(3)])
    await talk.adelete_message(TALK, "m0")
    found = await talk.aget_messages({"thread_id": "copy"})
    assert found == [said(number) for number in range(3)]
    copied = await talk.aget_thread({"thread_id": "copy"})
    assert source is not None
    assert copied is not None
    assert (copied.checkpoints, copied.namespaces, copied.updated) == (4, 2, source.updated)
    assert await world.saver.arename_thread("copy", "renamed") is True
    await talk.aput_messages({"thread_id": "renamed"}, [said(4)])
    assert len(await talk.aget_messages({"thread_id": "renamed"})) == 4
    assert (await world.cold.averify(decode=True)).problems == []
    assert (await world.cold.astats("renamed")).checkpoints == 5


async def a_lease_keeps_others_from_appending(world: World) -> None:
    talk = talk_of(world)
    async with world.saver.lease("talk", ttl=LONG) as lease:
        with pytest.raises(ThreadBusyError):
            await talk.aput_messages(TALK, [said(1)])
        held = {**TALK, "lease_token": lease.token}
        await talk.aput_messages(held, [said(1)])
        await talk.aput_messages(held, [said(1), said(2)])
        await talk.aput_state(held, {"a": 1})
        with pytest.raises(ThreadBusyError):
            await talk.aput_state(TALK, {"a": 2})
        with pytest.raises(ThreadBusyError):
            await talk.aput_messages(TALK, [{"id": "m1", "content": "another"}])
    with pytest.raises(LeaseLostError):
        await talk.aput_messages(held, [said(3)])
    assert await talk.aget_messages(TALK) == [said(1), said(2)]


async def a_thread_that_begins_with_a_message_expires_like_any_other(world: World) -> None:
    saver = world.with_rules(ttl=LONG * 1_000_000)
    talk = world.interface(Conversations, saver)
    await talk.aput_messages({**TALK, "user_id": "ada"}, [said(1)])
    found = await talk.aget_thread(TALK)
    assert found is not None
    assert found.expires is not None
    assert found.owner == "ada"
    await saver.aupdate_thread("talk", expires=timedelta(seconds=-1))
    await talk.aput_messages(TALK, [said(2)])
    again = await talk.aget_thread(TALK)
    assert again is not None
    assert again.expires is not None
    assert again.expires >= found.expires


async def a_thread_that_begins_again_is_not_held_up_by_messages_of_before(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_messages(TALK, [{"id": "zzz", "content": "x"}])
    assert await talk.adelete_thread(TALK) is True
    later = new_id()
    await world.saver.aput_writes(at("talk", "", later), [("a", 1)], "task")
    await world.saver.aput(at("talk"), checkpoint({"a": 1}, checkpoint_id=later), {}, {"a": 1})
    assert await pending(world.cold, at("talk")) == [("task", "a", 1)]
    assert await talk.aget_messages(TALK) == []


async def the_namespace_of_messages_is_not_for_checkpoints(world: World) -> None:
    with pytest.raises(ConfigError, match="is that of messages"):
        await world.saver.aput(at("talk", MESSAGES_NS), checkpoint({"message": 1}), {}, {"message": 1})
    with pytest.raises(ConfigError, match="is that of messages"):
        await world.saver.aput_writes(at("talk", MESSAGES_NS, new_id()), [("message", 1)], "task")
    assert await world.saver.athread("talk") is None


async def a_graph_and_messages_stand_side_by_side_in_one_thread(world: World) -> None:
    talk = talk_of(world)
    run = Run(world.saver, "talk")
    await run.step({"messages": ["x" * 300], "mood": "fine"})
    await talk.aput_messages(TALK, [said(1), said(2)])
    await run.step({"messages": ["x" * 300, "y" * 300]})
    await talk.adelete_message(TALK, "m1")
    await run.step({"messages": ["x" * 300, "y" * 300, "z"]})
    assert await talk.aget_state(TALK) == await values(world.cold, at("talk"))
    assert [item.checkpoint["id"] for item in await listed(world.cold, at("talk", MESSAGES_NS))] == ["m2"]
    assert len(await listed(world.cold, at("talk"))) == 4
    with pytest.raises(ConflictError):
        await world.saver.acreate_thread("talk")
