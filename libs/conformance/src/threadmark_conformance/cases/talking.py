"""Messages of conversations: appended, replaced, read by the page, and removed completely."""

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from threadmark import Conversations
from threadmark.errors import (
    ConfigError,
    CorruptDataError,
    SerializationError,
)
from threadmark.format.stored import announced_size, expand
from threadmark.ids import new_id
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Change, Scope, Store, now
from threadmark_conformance.backend import World
from threadmark_conformance.engine import at, listed

TALK = {"thread_id": "talk"}
LONG = 3600
MARK = "saffron-heliotrope"


@dataclass
class _Note:
    content: str
    id: str | None = None
    tags: list[str] = field(default_factory=list)


def said(number: int) -> dict[str, Any]:
    """Return a message."""
    return {"id": f"m{number}", "role": "user", "content": f"message {number}"}


def talk_of(world: World) -> Conversations:
    """Return conversations over the first saver."""
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
    inputs: list[Any] = [
        {"id": "a", "content": "Die STRASSE ist lang"},
        {"id": "b", "content": [{"type": "text", "text": "die straße"}, {"type": "image", "url": "strasse"}]},
        {"id": "c", "content": ["nothing", "of it"]},
        {"id": "f", "content": {"strasse": 1}, "role": "strasse"},
    ]
    await talk.aput_messages(TALK, [*inputs, *(said(number) for number in range(600))])
    assert await _ids(talk, search="strasse") == ["a", "b"]
    assert await _ids(talk, search="STRASSE", limit=1) == ["b"]
    assert await _ids(talk, search="straße", limit=1, offset=1) == ["a"]
    assert await _ids(talk, search="of it") == ["c"]
    assert await _ids(talk, search="strasse", before="b") == ["a"]
    assert await _ids(talk, search="message 59", limit=3) == ["m597", "m598", "m599"]


async def a_message_without_an_id_gets_one_in_a_copy(world: World) -> None:
    talk = talk_of(world)
    inputs = [{"content": "x"}, {"id": None, "content": "y"}]
    before = copy.deepcopy(inputs)
    made = await talk.aput_messages(TALK, inputs)
    assert inputs == before
    assert len(set(made)) == 2
    assert await talk.aget_messages(TALK) == [{"id": made[0], "content": "x"}, {"id": made[1], "content": "y"}]
    assert await talk.aget_message(TALK, made[0]) == {"id": made[0], "content": "x"}
    assert await talk.aget_message(TALK, "no such") is None


async def a_message_may_be_a_dataclass(world: World) -> None:
    talk = talk_of(world)
    inputs = [_Note("Straße", "a"), _Note("none", tags=["x"])]
    first, made = await talk.aput_messages(TALK, inputs)
    assert (first, inputs[1].id) == ("a", None)
    assert await talk.aget_messages(TALK) == [inputs[0], _Note("none", made, ["x"])]
    assert await talk.aget_messages(TALK, search="strasse") == [inputs[0]]
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
    long, short = f"{MARK} {'x' * 3000}", MARK
    await talk.aput_messages(TALK, [said(1), {"id": "long", "content": long}, {"id": "short", "content": short}])
    await talk.aput_messages(TALK, [{"id": "twin", "content": long}, said(2)])
    for message_id in ("long", "short"):
        await talk.aput_messages(TALK, [{"id": message_id, "content": "replaced"}])
    assert await holders(world) == 1  # its twin has the text, too, and shares no bytes with it
    await talk.aput_messages(TALK, [{"id": "long", "content": long}, {"id": "short", "content": short}])
    assert await holders(world) == 3
    assert await talk.adelete_message(TALK, "twin") is True
    assert await talk.adelete_message(TALK, "long") is True
    assert await holders(world) == 1
    assert (await talk.aget_message(TALK, "short"))["content"] == short
    assert await talk.adelete_message(TALK, "short") is True
    assert await holders(world) == 0
    assert await talk.adelete_message(TALK, "short") is False
    assert await talk.adelete_message({"thread_id": "nowhere"}, "short") is False
    assert await _ids(talk) == ["m1", "m2"]
    assert (await world.cold.averify("talk")).problems == []
    assert await talk.adelete_message(TALK, "m1")
    assert await talk.adelete_message(TALK, "m2")
    assert await talk.aget_messages(TALK) == []
    assert await talk.aput_messages(TALK, [said(3)]) == ["m3"]
    assert await _ids(talk) == ["m3"]


async def holders(world: World) -> int:
    """Return how many rows of the thread contain `MARK`, as the saver reads them: decrypted and decompressed."""

    def program(store: Store) -> Program[list[bytes]]:
        outlines = yield from store.page(Scope("talk"), None, 1000)
        rows = yield from store.rows("talk", [outline.key for outline in outlines])
        sizes = yield from store.segment_sizes("talk")
        segments = yield from store.segments("talk", list(sizes))
        return [row.header for row in rows] + list(segments.values())

    rows = await world.in_store(program)
    return sum(MARK.encode() in _expanded(row) for row in rows)


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
        before = (await talk.aget_thread(TALK)).size_bytes  # type: ignore[union-attr]  # it is there
        await talk.aput_messages(TALK, [{"id": f"x{start:03}", "content": "y" * 500}])
        growth.append((await talk.aget_thread(TALK)).size_bytes - before)  # type: ignore[union-attr]  # see above
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
