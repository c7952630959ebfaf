"""The description of a thread (title, metadata, owner, expiry), and how copies and renames keep it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError
from threadmark.model import ThreadInfo
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, listed, values

_LONG = "what takes a segment of its own, at a length that is worth one. " * 8


async def _names(world: World, **options: Any) -> list[str]:
    return [thread.id for thread in (await world.saver.alist_threads(**options)).threads]


async def _there(world: World, thread_id: str) -> ThreadInfo:
    found = await world.another().aget_thread(thread_id)
    assert found is not None
    return found


async def what_is_set_of_a_thread_stays_and_is_patched(world: World) -> None:
    await Run(world.saver).step({"a": "thread"})
    when = datetime(2031, 1, 1, tzinfo=UTC)
    text = 'Überraschung\0 "quoted" \ud83d 例'
    metadata = {"plain": "x", "number": 1.0, "deep": {"a": [1, None, True]}, text: text, "gone": 1}
    await world.saver.aupdate_thread("thread", title=text, metadata=metadata, owner="ada", expires_at=when)
    await Run(world.saver).step({"a": 1})
    for _ in range(2):
        found = await _there(world, "thread")
        assert found[:4] == ("thread", "ada", text, metadata)
        assert found.expires_at == when
        await world.saver.aprune(["thread"])
    changed = await world.saver.aupdate_thread("thread", metadata={"gone": None, "plain": "y", "new": False})
    assert changed.metadata == {**{k: v for k, v in metadata.items() if k != "gone"}, "plain": "y", "new": False}
    assert changed == await _there(world, "thread")
    cleared = await world.saver.aupdate_thread("thread", title=None, owner=None, expires_at=None)
    assert (cleared.title, cleared.owner, cleared.expires_at) == (None, None, None)
    assert cleared.metadata == changed.metadata
    soon = await world.saver.aupdate_thread("thread", expires_at=timedelta(hours=1))
    assert soon.expires_at is not None
    assert timedelta(minutes=59) < soon.expires_at - datetime.now(UTC) <= timedelta(hours=1)
    assert await values(world.saver, at("thread")) == {"a": 1}


async def a_created_thread_is_there_and_is_begun_by_a_put(world: World) -> None:
    made = await world.saver.acreate_thread("thread", title="a title", metadata={"a": 1}, owner="ada")
    assert made == await _there(world, "thread")
    with pytest.raises(ConflictError, match="exists already"):
        await world.another().acreate_thread("thread")
    await world.saver.aprune(["thread"])
    assert await _there(world, "thread") == made
    await Run(world.another()).step({"a": 1})
    found = await _there(world, "thread")
    assert found[:4] == ("thread", "ada", "a title", {"a": 1})
    assert (found.checkpoints, found.created_at) == (1, made.created_at)


async def metadata_of_a_thread_that_is_no_json_is_named(world: World) -> None:
    await Run(world.saver).step({"a": "thread"})
    for odd, said in (
        ({"a": {1}}, r"metadata\['a'\].*store a JSON value"),
        ({1: 2}, "a key of metadata"),
        ([], "metadata must"),
    ):
        with pytest.raises(ConfigError, match=said):
            await world.saver.aupdate_thread("thread", metadata=odd)  # type: ignore[arg-type]  # which is tested
    assert (await _there(world, "thread")).metadata == {}


async def what_was_set_of_a_thread_goes_with_it(world: World) -> None:
    await Run(world.saver).step({"a": "thread"})
    await world.saver.aupdate_thread("thread", title="old", metadata={"a": 1}, owner="ada", expires_at=timedelta(1))
    await world.saver.adelete_thread("thread")
    assert await world.saver.aget_thread("thread") is None
    assert await _names(world) == []
    await Run(world.saver).step({"a": 1})
    found = await _there(world, "thread")
    assert (found.owner, found.title, found.metadata, found.expires_at) == (None, None, {}, None)
    assert await _names(world, owner="ada") == []


async def a_copy_has_what_was_set_of_its_source(world: World) -> None:
    await Run(world.saver).step({"a": "thread"})
    await world.saver.aupdate_thread("thread", title="first", metadata={"a": 1}, owner="ada")
    await world.saver.acopy_thread("thread", "copy")
    copy, source = await _there(world, "copy"), await _there(world, "thread")
    assert copy[1:4] == source[1:4] == ("ada", "first", {"a": 1})
    assert (copy.checkpoints, copy.updated_at) == (source.checkpoints, source.updated_at)
    await world.saver.aupdate_thread("thread", title="second")
    await world.saver.acopy_thread("thread", "copy")
    assert (await _there(world, "copy")).title == "first"
    assert await _names(world, owner="ada", sort="id") == ["copy", "thread"]


async def a_renamed_thread_is_the_same_under_another_id(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": f"{number}{_LONG}"})
    await run.write(("a", _LONG))
    await world.saver.aupdate_thread("thread", title="a title", owner="ada")
    before, read = await _there(world, "thread"), await listed(world.saver, at("thread"))
    assert await world.saver.arename_thread("thread", "renamed") is True
    after = await _there(world, "renamed")
    assert after._replace(id="thread", created_at=before.created_at) == before
    assert [item.checkpoint for item in await listed(world.another(), at("renamed"))] == [
        item.checkpoint for item in read
    ]
    assert (await got(world.saver, at("renamed"))).pending_writes == read[0].pending_writes
    assert await world.saver.aget_thread("thread") is None
    assert await listed(world.saver, at("thread")) == []
    assert await _names(world) == ["renamed"]
    assert await world.saver.arename_thread("thread", "other") is False
    assert await world.saver.arename_thread("renamed", "renamed") is True
    await world.saver.acreate_thread("taken")
    with pytest.raises(ConflictError, match="'taken' exists already"):
        await world.saver.arename_thread("renamed", "taken")


async def a_put_may_expect_to_continue_the_newest(world: World) -> None:
    run = Run(world.saver)
    first = await run.step({"a": 1})
    made = checkpoint({"a": 2}, {"a": 2})
    await world.saver.aput(first, made, {}, {"a": 2}, expect_newest=True)
    await world.saver.aput(first, made, {}, {"a": 2}, expect_newest=True)  # the same again, as after a lost answer
    with pytest.raises(ConflictError, match="no longer the newest"):
        await world.another().aput(first, checkpoint({"a": 3}, {"a": 3}), {}, {"a": 3}, expect_newest=True)
    with pytest.raises(ConflictError):
        await world.saver.aput(at("thread"), checkpoint({"a": 3}, {"a": 3}), {}, {"a": 3}, expect_newest=True)
    assert len(await listed(world.saver, at("thread"))) == 2
    await world.saver.aput(first, checkpoint({"a": 3}, {"a": 3}), {}, {"a": 3}, expect_newest=False)
    assert await values(world.saver, at("thread")) == {"a": 3}
    stale: Any = {"configurable": {**first["configurable"], "expect_newest": True}}
    with pytest.raises(ConflictError):
        await world.saver.aput(stale, checkpoint({"a": 4}, {"a": 4}), {}, {"a": 4})
    stale["configurable"]["expect_newest"] = False
    await world.saver.aput(stale, checkpoint({"a": 4}, {"a": 4}), {"source": "fork"}, {"a": 4})
    assert (await got(world.saver, at("thread"))).metadata == {"source": "fork"}
    await world.saver.aput(at("new"), checkpoint({"a": 1}), {}, {"a": 1}, expect_newest=True)
    await world.saver.aput(at("thread", "child"), checkpoint({"a": 1}), {}, {"a": 1}, expect_newest=True)
