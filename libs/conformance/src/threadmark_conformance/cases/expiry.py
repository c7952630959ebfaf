"""The option `ttl`: when a thread expires, and which calls extend its life."""

from datetime import UTC, datetime, timedelta
from typing import Any

from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, early_id

_HOUR = timedelta(hours=1)
_MICROSECONDS = 3600 * 1_000_000


async def a_thread_that_begins_gets_an_expiry(world: World) -> None:
    saver = world.with_rules(ttl=_MICROSECONDS)
    before = datetime.now(UTC)
    await Run(saver, "put").step({"a": 1})
    await saver.aput_writes(at("written", "", early_id(1)), [("a", 1)], "task")
    await saver.acreate_thread("created", title="a title")
    await saver.acreate_thread("never", expires_at=None)
    after = datetime.now(UTC)
    for name in ("put", "written", "created"):
        assert before + _HOUR <= await _expires(world, name) <= after + 1.25 * _HOUR
    assert (await saver.aget_thread("never")).expires_at is None  # type: ignore[union-attr]  # it was just created
    await Run(world.saver, "no ttl").step({"a": 1})
    assert (await world.saver.aget_thread("no ttl")).expires_at is None  # type: ignore[union-attr]  # it was just put


async def it_never_expires_early(world: World) -> None:
    """Whatever time is left before a put, the whole ttl is left afterwards."""
    run = Run(world.with_rules(ttl=_MICROSECONDS))
    await run.step({"a": 1})
    for left in (-2 * _HOUR, timedelta(0), 0.5 * _HOUR, 0.99 * _HOUR, 1.1 * _HOUR, 1.25 * _HOUR):
        for change in (run.step, lambda: run.write(("a", 1))):
            await world.saver.aupdate_thread("thread", expires_at=left)
            before = datetime.now(UTC)
            await change()
            assert await _expires(world, "thread") >= before + _HOUR


async def a_far_expiry_is_not_written_again(world: World) -> None:
    run = Run(world.with_rules(ttl=_MICROSECONDS))
    await run.step({"a": 1})
    first = await _expires(world, "thread")
    for number in range(3):
        await run.step({"a": number})
    assert await _expires(world, "thread") == first


async def an_explicit_expiry_stays(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    far, soon = (datetime.now(UTC) + timedelta(days=days) for days in (90, 1))
    for expires in (far, soon):
        await world.saver.aupdate_thread("thread", expires_at=expires)
        await run.step({"a": 2})
        assert await _expires(world, "thread") == expires
    await world.saver.aupdate_thread("thread", expires_at=far)
    with_ttl = Run(world.with_rules(ttl=_MICROSECONDS))
    with_ttl.config = run.config
    await with_ttl.step({"a": 3})
    assert await _expires(world, "thread") == far


async def a_thread_without_an_expiry_is_left_alone(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    saver = world.with_rules(ttl=_MICROSECONDS, refresh_on_read=True)
    await saver.aget_tuple(run.config)
    await saver.aput_writes(run.config, [("a", 1)], "task")
    assert (await world.saver.aget_thread("thread")).expires_at is None  # type: ignore[union-attr]  # it was just put
    await Run(saver, "begun").step({"a": 1})
    await saver.aupdate_thread("begun", expires_at=None)
    await Run(saver, "begun").step({"a": 2})
    assert (await world.saver.aget_thread("begun")).expires_at is None  # type: ignore[union-attr]  # it was just put


async def reading_counts_only_where_it_is_asked_for(world: World) -> None:
    await Run(world.with_rules(ttl=_MICROSECONDS)).step({"a": 1})
    soon = datetime.now(UTC) + 0.5 * _HOUR
    await world.saver.aupdate_thread("thread", expires_at=soon)
    await world.with_rules(ttl=_MICROSECONDS).aget_tuple(at("thread"))
    assert await _expires(world, "thread") == soon
    before = datetime.now(UTC)
    reader = world.with_rules(ttl=_MICROSECONDS, refresh_on_read=True)
    assert await reader.aget_tuple(at("nobody")) is None
    await reader.aget_tuple(at("thread"))
    assert await _expires(world, "thread") >= before + _HOUR
    assert await world.saver.aget_thread("nobody") is None


async def other_settings_outlast_an_extension(world: World) -> None:
    run = Run(world.with_rules(ttl=_MICROSECONDS))
    await run.step({"a": 1})
    await world.saver.aupdate_thread("thread", title="a title", owner="ada", metadata={"a": 1}, expires_at=_HOUR / 2)
    await run.step({"a": 2})
    found = await world.another().aget_thread("thread")
    assert found is not None
    assert (found.title, found.owner, found.metadata) == ("a title", "ada", {"a": 1})
    assert [each.id for each in (await world.saver.alist_threads(owner="ada")).threads] == ["thread"]


async def an_expired_thread_is_removed_and_starts_again(world: World) -> None:
    saver = world.with_rules(ttl=_MICROSECONDS)
    await Run(saver).step({"a": 1})
    assert (await saver.aapply_retention()).expired == 0
    await world.saver.aupdate_thread("thread", expires_at=-_HOUR)
    assert (await saver.aapply_retention()).expired == 1
    before = datetime.now(UTC)
    await Run(saver).step({"a": 1})
    assert await _expires(world, "thread") >= before + _HOUR


async def _expires(world: World, name: str) -> datetime:
    found: Any = await world.saver.aget_thread(name)
    assert found.expires_at is not None
    expires: datetime = found.expires_at
    return expires
