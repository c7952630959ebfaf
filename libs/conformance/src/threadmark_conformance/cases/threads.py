"""Threads themselves: listed, counted, created, described, renamed. A listing is derived from the stored rows."""

import sys
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from threadmark.errors import ConfigError, SerializationError, ThreadNotFoundError
from threadmark.model import ThreadFilter, ThreadInfo, ThreadStatus
from threadmark.saver.arguments import microseconds_in
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of, listed, values
from threadmark_conformance.leasing import LONG

_LONG = "what takes a segment of its own, at a length that is worth one. " * 8
_NAMES = [f"thread {number:02}" for number in range(7)]


async def _begin(world: World, names: list[str] = _NAMES) -> None:
    for name in names:
        await Run(world.saver, name).step({"a": name})


async def _names(world: World, **options: Any) -> list[str]:
    page = await world.saver.alist_threads(limit=100, **options)
    assert page.cursor is None
    assert await world.saver.acount_threads(**{k: v for k, v in options.items() if k != "sort"}) == len(page.threads)
    return [thread.id for thread in page.threads]


async def _there(world: World, thread_id: str) -> ThreadInfo:
    found = await world.another().aget_thread(thread_id)
    assert found is not None
    return found


async def a_thread_is_named_by_its_id_or_by_a_configuration(world: World) -> None:
    saver, config = world.saver, await Run(world.saver).step({"a": 1})
    for named in ("thread", config, at("thread")):
        assert await values(saver, named) == {"a": 1}
        assert [found.checkpoint["channel_values"] for found in await listed(saver, named)] == [{"a": 1}]
        assert await saver.aget_thread(named) == await _there(world, "thread")
        assert (await saver.averify(named)).checkpoints == (await saver.astats(named)).checkpoints == 1
        assert (await saver.aupdate_thread(named, title="a title")).title == "a title"
        assert (await saver.aprune([named])).threads == 1
        async with saver.lease(named, ttl=LONG) as lease:
            assert lease.thread_id == "thread"
    assert await saver.acopy_thread(config, at("copy"))
    assert await saver.arename_thread(at("copy"), "other")
    assert await saver.adelete_thread(at("other"))
    assert await saver.adelete_thread(config)
    assert await saver.aget("thread") is None


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
                page = await world.another().alist_threads(sort=sort, limit=limit, cursor=cursor)
                found += [thread.id for thread in page.threads]
                cursor = page.cursor
                if cursor is None:
                    break
            assert (found, cursor) == (expected, None)
    page = await world.saver.alist_threads(sort="id", limit=2, offset=3)
    assert [thread.id for thread in page.threads] == _NAMES[3:5]
    assert (await world.saver.alist_threads(limit=0)) == ([], None)


async def threads_that_come_or_go_do_not_shift_the_next_page(world: World) -> None:
    await _begin(world)
    first = await world.saver.alist_threads(sort="-created", limit=3)
    await Run(world.saver, "newer").step({"a": 1})
    await world.saver.adelete_thread(first.threads[-1].id)
    second = await world.saver.alist_threads(sort="-created", limit=3, cursor=first.cursor)
    assert [thread.id for thread in second.threads] == _NAMES[::-1][3:6]


async def threads_updated_at_one_moment_are_in_order_of_their_ids(world: World) -> None:
    page = await world.saver.alist_threads()
    assert page == ([], None)
    await world.saver.acreate_thread("b")
    await world.saver.acopy_thread("b", "c")
    both = await world.saver.alist_threads(sort="updated", limit=1)
    rest = await world.saver.alist_threads(sort="updated", limit=5, cursor=both.cursor)
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
    assert before <= found.created_at <= found.updated_at <= datetime.now(UTC)
    assert (found.status, found.expires_at) == ("idle", None)
    assert len(_LONG) / 2 < found.size_bytes < 40 * len(_LONG)
    smaller = await world.saver.aprune(["thread"])
    assert smaller.checkpoints == 2
    after = await _there(world, "thread")
    assert (after.checkpoints, after.size_bytes) == (2, after.size_bytes)
    assert after.size_bytes <= found.size_bytes - smaller.size_bytes
    assert (await world.saver.alist_threads()).threads == [after]
    assert await world.saver.aget_thread("nobody") is None


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
    listed_now = {thread.id: thread.status for thread in (await world.another().alist_threads()).threads}
    expected = {"asks": "interrupted", "failed": "error", "both": "error", "went on": "idle", "idle": "idle"}
    assert listed_now == expected
    for status in get_args(ThreadStatus):
        assert set(await _names(world, status=status)) == {name for name, its in expected.items() if its == status}


async def a_thread_begins_with_whatever_comes_first(world: World) -> None:
    await world.saver.aput_writes(at("writes", "", early_id(1)), [("a", 1)], "task")
    await Run(world.saver, "call", "child").step({"a": 1})
    await world.saver.acreate_thread("created")
    for name, checkpoints in (("writes", 0), ("call", 1), ("created", 0)):
        found = await _there(world, name)
        assert (found.checkpoints, found.newest, found.status) == (checkpoints, None, "idle")
        assert found.updated_at == found.created_at
        assert await world.saver.aget_tuple(at(name)) is None
    assert sorted(await _names(world)) == ["call", "created", "writes"]
    await world.saver.aput(at("writes"), checkpoint({"a": 1}, checkpoint_id=early_id(1)), {}, {"a": 1})
    found = await _there(world, "writes")
    assert (found.newest, found.checkpoints) == (early_id(1), 1)
    assert found.updated_at > found.created_at
    assert (await _names(world))[0] == "writes"


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
    page = await world.saver.alist_threads(metadata={"kind": "even"}, sort="id", limit=2, offset=1)
    assert [thread.id for thread in page.threads] == [_NAMES[2], _NAMES[4]]
    rest = await world.saver.alist_threads(metadata={"kind": "even"}, sort="id", cursor=page.cursor)
    assert [thread.id for thread in rest.threads] == [_NAMES[6]]
    await world.saver.aupdate_thread("thread 00", owner="ada")
    assert await _names(world, owner="ada", sort="id") == [_NAMES[0], *_NAMES[1::2]]
    assert (await _names(world, owner="ada"))[-1] == "thread 00"


async def threads_are_found_by_when_they_were_updated(world: World) -> None:
    await _begin(world)
    moments = {name: (await _there(world, name)).updated_at for name in _NAMES}
    since, until = moments["thread 02"], moments["thread 05"]
    assert await _names(world, since=since, until=until, sort="id") == _NAMES[2:5]
    assert await _names(world, until=since, sort="-id") == _NAMES[1::-1]
    assert await _names(world, since=until) == ["thread 06", "thread 05"]


async def every_filter_leaves_out_the_other_threads(world: World) -> None:
    await _begin(world)
    second = (await _there(world, _NAMES[1])).updated_at
    await world.saver.aupdate_thread("thread 02", owner="ada", title="Invoices", metadata={"kind": "bill"})
    asks = Run(world.saver, "thread 05")
    await asks.step({"a": "asked"})
    await asks.write(("__interrupt__", ["?"]))
    examples = {
        "owner": ("ada", "thread 02"),
        "status": ("interrupted", "thread 05"),
        "metadata": ({"kind": "bill"}, "thread 02"),
        "text": ("invoice", "thread 02"),
        "since": ((await _there(world, "thread 05")).updated_at, "thread 05"),
        "until": (second, _NAMES[0]),
    }
    assert examples.keys() == ThreadFilter.__annotations__.keys(), "a filter has no example here"
    for name, (value, expected) in examples.items():
        assert await _names(world, **{name: value}) == [expected], name
    wrong: dict[str, Any] = {"color": "red"}
    with pytest.raises(TypeError, match=r"no argument 'color': .* owner, status"):
        await world.saver.alist_threads(**wrong)


async def what_is_more_than_anything_is_no_limit(world: World) -> None:
    await _begin(world)
    everything = [thread.id for thread in (await world.saver.alist_threads()).threads]
    for most in (sys.maxsize, 1 << 63, 1 << 70):
        for text in (None, ""):
            page = await world.saver.alist_threads(limit=most, text=text)
            assert [thread.id for thread in page.threads] == everything
            assert await world.saver.alist_threads(limit=most, offset=most, text=text) == ([], None)
    for duration in (timedelta.max, timedelta.min):
        updated = await world.saver.aupdate_thread(everything[0], expires_at=duration)
        assert updated == await _there(world, everything[0])
        await world.saver.aupdate_thread(everything[0], expires_at=None)
    assert (await world.saver.aapply_retention(idle_for=timedelta.max, max_bytes=1 << 70)).for_space == 0
    await world.with_rules(ttl=microseconds_in(timedelta.max)).aput(at("new"), checkpoint({"a": 1}), {}, {"a": 1})
    assert (await _there(world, "new")).expires_at == datetime.max.replace(tzinfo=UTC)


async def the_last_bad_argument_is_named(world: World) -> None:
    saver = world.saver
    await _begin(world, ["thread"])
    other: Any = saver
    for call, named in (
        (lambda: other.alist_threads(sort="size"), "sort"),
        (lambda: other.alist_threads(status="asleep"), "status"),
        (lambda: other.alist_threads(limit=-1), "limit"),
        (lambda: other.alist_threads(offset=True), "offset"),
        (lambda: other.alist_threads(cursor="nonsense"), "cursor"),
        (lambda: other.alist_threads(cursor=7), "cursor"),
        (lambda: other.alist_threads(owner=""), "owner"),
        (lambda: other.alist_threads(owner=7), "owner"),
        (lambda: other.alist_threads(metadata=[1]), "filter"),
        (lambda: other.alist_threads(since=datetime(2026, 1, 1)), "since"),  # noqa: DTZ001 - the mistake
        (lambda: other.aupdate_thread("thread", expires_at="tomorrow"), "expires"),
        (lambda: other.aupdate_thread("thread", title=7), "title"),
        (lambda: other.aupdate_thread("thread", owner="x" * 600), "owner"),
        (lambda: other.acreate_thread("x" * 600), "thread_id"),
        (lambda: other.aput(_owned("x" * 600), checkpoint(), {}, {}), "owner"),
        (lambda: other.aput_writes(_owned("x" * 600), [("a", 1)], "task"), "owner"),
        (lambda: other.aput(at("thread"), checkpoint(), {}, {}, expect_newest="no"), "expect_newest"),
        (lambda: _for_owner(saver, ""), "owner"),
    ):
        with pytest.raises(ConfigError, match=named):
            await call()
    with pytest.raises((ConfigError, SerializationError), match=r"metadata|filter"):
        await other.aupdate_thread("thread", metadata={"a": object()})
    with pytest.raises(ThreadNotFoundError, match="'nobody'"):
        await saver.aupdate_thread("nobody", title="x")
    page = await saver.alist_threads(sort="id", limit=0)
    assert page.threads == []
    assert await saver.aget_thread("new") is None
    found = await _there(world, "thread")
    assert (found.title, found.metadata, found.owner) == (None, {}, None)
    cursor = await _cursor(world)
    with pytest.raises(ConfigError, match="sorted by"):
        await saver.alist_threads(sort="-id", cursor=cursor)


def _owned(owner: str) -> dict[str, Any]:
    return {"configurable": {**at("new", "", early_id(1))["configurable"], "user_id": owner}}


async def a_cursor_that_was_made_up_is_refused(world: World) -> None:
    await _begin(world)
    for place in ('Infinity, "x"', 'NaN, "x"', f'{1 << 63}, "x"', '"7", "x"', 'true, "x"', '[7], "x"', "7, 7", "7"):
        cursor = urlsafe_b64encode(f'["-updated", {place}]'.encode()).decode()
        with pytest.raises(ConfigError, match="is no cursor"):
            await world.saver.alist_threads(cursor=cursor)


async def _for_owner(saver: Any, owner: str) -> None:
    saver.for_owner(owner)


async def _cursor(world: World) -> str | None:
    await _begin(world, ["second"])
    return (await world.saver.alist_threads(sort="id", limit=1)).cursor
