"""Threads themselves: listed, counted, created, described, renamed. A listing is derived from what is there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError, SerializationError, ThreadNotFoundError
from threadmark.model import ThreadInfo
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, values

_LONG = "what takes a segment of its own, at a length that is worth one. " * 8
_NAMES = [f"thread {number:02}" for number in range(7)]


async def _begin(world: World, names: list[str] = _NAMES) -> None:
    for name in names:
        await Run(world.saver, name).step({"a": name})


async def _names(world: World, **options: Any) -> list[str]:
    page = await world.saver.athreads(limit=100, **options)
    assert page.cursor is None
    assert await world.saver.acount_threads(**{k: v for k, v in options.items() if k != "sort"}) == len(page.threads)
    return [thread.id for thread in page.threads]


async def _there(world: World, thread_id: str) -> ThreadInfo:
    found = await world.another().athread(thread_id)
    assert found is not None
    return found


async def the_most_recently_updated_thread_comes_first(world: World) -> None:
    await _begin(world)
    await Run(world.another(), "thread 03").step({"a": 1})
    assert await _names(world) == ["thread 03", *[name for name in reversed(_NAMES) if name != "thread 03"]]
    assert await _names(world, sort="updated") == [*[name for name in _NAMES if name != "thread 03"], "thread 03"]
    assert await _names(world, sort="-created") == _NAMES[::-1]
    assert await _names(world, sort="created") == _NAMES
    assert await _names(world, sort="id") == _NAMES
    assert await _names(world, sort="-id") == _NAMES[::-1]


async def pages_join_to_the_whole_listing(world: World) -> None:
    await _begin(world)
    for sort in ("-updated", "updated", "-created", "created", "-id", "id"):
        expected = await _names(world, sort=sort)
        for limit in (1, 3, 7):
            found: list[str] = []
            cursor = None
            for _ in range(len(_NAMES)):
                page = await world.another().athreads(sort=sort, limit=limit, cursor=cursor)
                found += [thread.id for thread in page.threads]
                cursor = page.cursor
                if cursor is None:
                    break
            assert (found, cursor) == (expected, None)
    page = await world.saver.athreads(sort="id", limit=2, offset=3)
    assert [thread.id for thread in page.threads] == _NAMES[3:5]
    assert (await world.saver.athreads(limit=0)) == ([], None)


async def threads_that_come_or_go_do_not_shift_the_next_page(world: World) -> None:
    await _begin(world)
    first = await world.saver.athreads(sort="-created", limit=3)
    await Run(world.saver, "newer").step({"a": 1})
    await world.saver.adelete_thread(first.threads[-1].id)
    second = await world.saver.athreads(sort="-created", limit=3, cursor=first.cursor)
    assert [thread.id for thread in second.threads] == _NAMES[::-1][3:6]


async def threads_updated_at_one_moment_are_in_order_of_their_ids(world: World) -> None:
    page = await world.saver.athreads()
    assert page == ([], None)
    await world.saver.acreate_thread("b")
    await world.saver.acopy_thread("b", "c")
    both = await world.saver.athreads(sort="updated", limit=1)
    rest = await world.saver.athreads(sort="updated", limit=5, cursor=both.cursor)
    assert {thread.id for thread in (*both.threads, *rest.threads)} == {"b", "c"}


async def a_thread_tells_what_it_holds(world: World) -> None:
    before = datetime.now(UTC)
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": f"{number}{_LONG}"})
        await run.write(("a", f"{_LONG}{number}"))
    await Run(world.saver, "thread", "child").step({"b": 1})
    found = await _there(world, "thread")
    assert found[:4] == ("thread", None, None, {})
    assert (found.checkpoints, found.namespaces, found.newest) == (4, 2, id_of(run.config))
    assert before <= found.created <= found.updated <= datetime.now(UTC)
    assert (found.status, found.expires) == ("idle", None)
    assert len(_LONG) / 2 < found.bytes < 40 * len(_LONG)
    smaller = await world.saver.aprune(["thread"])
    assert smaller.checkpoints == 2
    after = await _there(world, "thread")
    assert (after.checkpoints, after.bytes) == (2, after.bytes)
    assert after.bytes <= found.bytes - smaller.bytes
    assert (await world.saver.athreads()).threads == [after]
    assert await world.saver.athread("nobody") is None


async def the_status_is_what_the_newest_checkpoint_waits_for(world: World) -> None:
    runs = {name: Run(world.saver, name) for name in ("asks", "failed", "both", "went on", "idle")}
    for run in runs.values():
        await run.step({"a": 1})
    await runs["asks"].write(("__interrupt__", ["?"]))
    await runs["failed"].write(("__error__", "boom"))
    await runs["both"].write(("__interrupt__", ["?"]), task="one")
    await runs["both"].write(("__error__", "boom"), task="two")
    await runs["went on"].write(("__interrupt__", ["?"]))
    await runs["went on"].step({"a": 2})
    await runs["idle"].write(("a", 3))
    listed_now = {thread.id: thread.status for thread in (await world.another().athreads()).threads}
    expected = {"asks": "interrupted", "failed": "error", "both": "error", "went on": "idle", "idle": "idle"}
    assert listed_now == expected
    for status in ("idle", "busy", "interrupted", "error"):
        assert set(await _names(world, status=status)) == {name for name, its in expected.items() if its == status}


async def a_thread_begins_with_whatever_comes_first(world: World) -> None:
    await world.saver.aput_writes(at("writes", "", early_id(1)), [("a", 1)], "task")
    await Run(world.saver, "call", "child").step({"a": 1})
    await world.saver.acreate_thread("created")
    for name, checkpoints in (("writes", 0), ("call", 1), ("created", 0)):
        found = await _there(world, name)
        assert (found.checkpoints, found.newest, found.status) == (checkpoints, None, "idle")
        assert found.updated == found.created
        assert await world.saver.aget_tuple(at(name)) is None
    assert sorted(await _names(world)) == ["call", "created", "writes"]
    await world.saver.aput(at("writes"), checkpoint({"a": 1}, checkpoint_id=early_id(1)), {}, {"a": 1})
    found = await _there(world, "writes")
    assert (found.newest, found.checkpoints) == (early_id(1), 1)
    assert found.updated > found.created
    assert (await _names(world))[0] == "writes"


async def what_is_set_of_a_thread_stays_and_is_patched(world: World) -> None:
    await _begin(world, ["thread"])
    when = datetime(2031, 1, 1, tzinfo=UTC)
    text = 'Überraschung\0 "quoted" \ud83d 例'
    metadata = {"plain": "x", "number": 1.0, "deep": {"a": [1, None, True]}, text: text, "gone": 1}
    await world.saver.aupdate_thread("thread", title=text, metadata=metadata, owner="ada", expires=when)
    await Run(world.saver).step({"a": 1})
    for _ in range(2):
        found = await _there(world, "thread")
        assert found[:4] == ("thread", "ada", text, metadata)
        assert found.expires == when
        await world.saver.aprune(["thread"])
    changed = await world.saver.aupdate_thread("thread", metadata={"gone": None, "plain": "y", "new": False})
    assert changed.metadata == {**{k: v for k, v in metadata.items() if k != "gone"}, "plain": "y", "new": False}
    assert changed == await _there(world, "thread")
    cleared = await world.saver.aupdate_thread("thread", title=None, owner=None, expires=None)
    assert (cleared.title, cleared.owner, cleared.expires) == (None, None, None)
    assert cleared.metadata == changed.metadata
    soon = await world.saver.aupdate_thread("thread", expires=timedelta(hours=1))
    assert soon.expires is not None
    assert timedelta(minutes=59) < soon.expires - datetime.now(UTC) <= timedelta(hours=1)
    assert await values(world.saver, at("thread")) == {"a": 1}


async def threads_are_found_by_owner_metadata_and_text(world: World) -> None:
    await _begin(world)
    for number, name in enumerate(_NAMES):
        await world.saver.aupdate_thread(
            name,
            owner="ada" if number % 2 else "bob",
            title=f"Straße {number}" if number < 3 else f"a way_{number}%",
            metadata={"kind": "even" if number % 2 == 0 else "odd", "number": number, "flag": number == 1},
        )
    assert await _names(world, owner="ada", sort="id") == _NAMES[1::2]
    assert await _names(world, owner="nobody") == []
    assert await _names(world, text="STRASSE", sort="id") == _NAMES[:3]
    assert await _names(world, text="_", sort="id") == _NAMES[3:]
    assert await _names(world, text="%", owner="bob", sort="-id") == [_NAMES[6], _NAMES[4]]
    assert await _names(world, text="ead 05") == ["thread 05"]
    assert await _names(world, metadata={"kind": "even"}, sort="id") == _NAMES[::2]
    assert await _names(world, metadata={"kind": "odd", "number": 3.0}) == ["thread 03"]
    assert await _names(world, metadata={"flag": True}) == ["thread 01"]
    assert await _names(world, metadata={"number": True}) == []
    assert await _names(world, metadata={"missing": None}) == []
    page = await world.saver.athreads(metadata={"kind": "even"}, sort="id", limit=2, offset=1)
    assert [thread.id for thread in page.threads] == [_NAMES[2], _NAMES[4]]
    rest = await world.saver.athreads(metadata={"kind": "even"}, sort="id", cursor=page.cursor)
    assert [thread.id for thread in rest.threads] == [_NAMES[6]]
    await world.saver.aupdate_thread("thread 00", owner="ada")
    assert await _names(world, owner="ada", sort="id") == [_NAMES[0], *_NAMES[1::2]]
    assert (await _names(world, owner="ada"))[-1] == "thread 00"


async def threads_are_found_by_when_they_were_updated(world: World) -> None:
    await _begin(world)
    moments = {name: (await _there(world, name)).updated for name in _NAMES}
    since, until = moments["thread 02"], moments["thread 05"]
    assert await _names(world, since=since, until=until, sort="id") == _NAMES[2:5]
    assert await _names(world, until=since, sort="-id") == _NAMES[1::-1]
    assert await _names(world, since=until) == ["thread 06", "thread 05"]


async def a_created_thread_is_there_and_is_begun_by_a_put(world: World) -> None:
    made = await world.saver.acreate_thread("thread", title="a title", metadata={"a": 1}, owner="ada")
    assert made == await _there(world, "thread")
    with pytest.raises(ConflictError, match="there already"):
        await world.another().acreate_thread("thread")
    await world.saver.aprune(["thread"])
    assert await _there(world, "thread") == made
    await Run(world.another()).step({"a": 1})
    found = await _there(world, "thread")
    assert found[:4] == ("thread", "ada", "a title", {"a": 1})
    assert (found.checkpoints, found.created) == (1, made.created)


async def what_was_set_of_a_thread_goes_with_it(world: World) -> None:
    await _begin(world, ["thread"])
    await world.saver.aupdate_thread("thread", title="old", metadata={"a": 1}, owner="ada", expires=timedelta(1))
    await world.saver.adelete_thread("thread")
    assert await world.saver.athread("thread") is None
    assert await _names(world) == []
    await Run(world.saver).step({"a": 1})
    found = await _there(world, "thread")
    assert (found.owner, found.title, found.metadata, found.expires) == (None, None, {}, None)
    assert await _names(world, owner="ada") == []


async def a_copy_has_what_was_set_of_its_source(world: World) -> None:
    await _begin(world, ["thread"])
    await world.saver.aupdate_thread("thread", title="first", metadata={"a": 1}, owner="ada")
    await world.saver.acopy_thread("thread", "copy")
    copy, source = await _there(world, "copy"), await _there(world, "thread")
    assert copy[1:4] == source[1:4] == ("ada", "first", {"a": 1})
    assert (copy.checkpoints, copy.updated) == (source.checkpoints, source.updated)
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
    assert after._replace(id="thread", created=before.created) == before
    assert [item.checkpoint for item in await listed(world.another(), at("renamed"))] == [
        item.checkpoint for item in read
    ]
    assert (await got(world.saver, at("renamed"))).pending_writes == read[0].pending_writes
    assert await world.saver.athread("thread") is None
    assert await listed(world.saver, at("thread")) == []
    assert await _names(world) == ["renamed"]
    assert await world.saver.arename_thread("thread", "other") is False
    assert await world.saver.arename_thread("renamed", "renamed") is True
    await world.saver.acreate_thread("taken")
    with pytest.raises(ConflictError, match="'taken' is there already"):
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


async def the_last_bad_argument_is_named(world: World) -> None:
    saver = world.saver
    await _begin(world, ["thread"])
    other: Any = saver
    for call, named in (
        (lambda: other.athreads(sort="size"), "sort"),
        (lambda: other.athreads(status="asleep"), "status"),
        (lambda: other.athreads(limit=-1), "limit"),
        (lambda: other.athreads(offset=True), "offset"),
        (lambda: other.athreads(cursor="nonsense"), "cursor"),
        (lambda: other.athreads(cursor=7), "cursor"),
        (lambda: other.athreads(owner=""), "owner"),
        (lambda: other.athreads(owner=7), "owner"),
        (lambda: other.athreads(metadata=[1]), "filter"),
        (lambda: other.athreads(since=datetime(2026, 1, 1)), "since"),  # noqa: DTZ001 - the mistake
        (lambda: other.aupdate_thread("thread", expires="tomorrow"), "expires"),
        (lambda: other.aupdate_thread("thread", title=7), "title"),
        (lambda: other.aupdate_thread("thread", owner="x" * 600), "owner"),
        (lambda: other.acreate_thread("x" * 600), "thread_id"),
        (lambda: other.aput(at("thread"), checkpoint(), {}, {}, expect_newest="no"), "expect_newest"),
        (lambda: _for_owner(saver, ""), "owner"),
    ):
        with pytest.raises(ConfigError, match=named):
            await call()
    with pytest.raises((ConfigError, SerializationError), match=r"metadata|filter"):
        await other.aupdate_thread("thread", metadata={"a": object()})
    with pytest.raises(ThreadNotFoundError, match="'nobody'"):
        await saver.aupdate_thread("nobody", title="x")
    page = await saver.athreads(sort="id", limit=0)
    assert page.threads == []
    found = await _there(world, "thread")
    assert (found.title, found.metadata, found.owner) == (None, {}, None)
    cursor = await _cursor(world)
    with pytest.raises(ConfigError, match="sorted by"):
        await saver.athreads(sort="-id", cursor=cursor)


async def _for_owner(saver: Any, owner: str) -> None:
    saver.for_owner(owner)


async def _cursor(world: World) -> str | None:
    await _begin(world, ["second"])
    return (await world.saver.athreads(sort="id", limit=1)).cursor
