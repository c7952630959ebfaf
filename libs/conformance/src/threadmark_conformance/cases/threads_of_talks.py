"""Conversations and their threads: owners, listings, and the fate of messages when a thread is changed."""

from datetime import timedelta

import pytest

from threadmark import Conversations
from threadmark.errors import ConfigError, ConflictError, LeaseLostError, ThreadBusyError, ThreadNotFoundError
from threadmark.ids import new_id
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Change, Scope, Store, now
from threadmark_conformance.backend import World
from threadmark_conformance.cases.talking import LONG, MARK, TALK, holders, said, talk_of
from threadmark_conformance.engine import Run, at, checkpoint, listed, pending, values


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
    for overlooked in ({"user_id": "eve"}, {"thread_id": "other"}, {"lease_token": 1}):
        with pytest.raises(ConfigError, match="outside of"):
            await talk.aget_messages({"configurable": TALK, **overlooked})
    with pytest.raises(ConfigError, match="outside of"):
        await talk.aget_threads({"configurable": {}, "user_id": "eve"})
    of_a_run = {"configurable": ada, "run_id": new_id(), "metadata": {"thread_id": "talk", "user_id": "ada"}}
    assert await talk.aget_messages(of_a_run) == [said(1)]
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
    before = (await talk.aget_thread({"thread_id": "one"})).updated_at  # type: ignore[union-attr]  # it is there
    await talk.adelete_message({"thread_id": "one"}, "m2")
    assert (await talk.aget_thread({"thread_id": "one"})).updated_at == before  # type: ignore[union-attr]  # see above
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
    report = await world.saver.aapply_retention(keep_last=1, older_than=timedelta(0), idle_for=timedelta(days=1))
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
        await _age(world, name)
    a_day = timedelta(days=1)
    assert (await world.saver.aapply_retention(idle_for=a_day, dry_run=True)).idle == 2
    await talk.aput_messages(TALK, [said(1)])
    assert (await world.saver.aapply_retention(idle_for=a_day)).idle == 1
    assert await talk.aget_messages(TALK) == [said(1)]
    assert await talk.aget_thread({"thread_id": "idle"}) is None


async def _age(world: World, name: str) -> None:
    """Make a thread's checkpoints a week old."""
    week_ago = now() - 7 * 86_400_000_000

    def program(store: Store) -> Program[None]:
        outlines = yield from store.page(Scope(name), None, 10)
        rows = yield from store.rows(name, [outline.key for outline in outlines])
        aged = [checkpoint_row(row.outline._replace(created_at=week_ago), row.header, None) for row in rows]
        yield from store.replace(Change(name, None, week_ago, {}, aged, (), None))

    await world.in_store(program)


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
    assert (copied.checkpoints, copied.namespaces, copied.updated_at) == (4, 2, source.updated_at)
    assert await world.saver.arename_thread("copy", "renamed") is True
    await talk.aput_messages({"thread_id": "renamed"}, [said(4)])
    assert len(await talk.aget_messages({"thread_id": "renamed"})) == 4
    assert (await world.cold.averify(decode=True)).problems == []
    assert (await world.cold.astats("renamed")).checkpoints == 5


async def a_copy_over_a_thread_leaves_nothing_of_the_messages_that_it_replaces(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_messages(TALK, [{"id": "m1", "content": MARK * 20}, said(2)])
    await talk.aput_messages({"thread_id": "source"}, [said(1)])
    assert await world.saver.acopy_thread("source", "talk") is True
    assert await talk.aget_message(TALK, "m1") == said(1)
    assert len(await talk.aget_messages(TALK)) == 2
    assert await holders(world) == 0
    assert (await world.cold.averify("talk")).problems == []


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
    assert found.expires_at is not None
    assert found.owner == "ada"
    await saver.aupdate_thread("talk", expires_at=timedelta(seconds=-1))
    await talk.aput_messages(TALK, [said(2)])
    again = await talk.aget_thread(TALK)
    assert again is not None
    assert again.expires_at is not None
    assert again.expires_at >= found.expires_at


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
    with pytest.raises(ConfigError, match="is reserved for messages"):
        await world.saver.aput(at("talk", MESSAGES_NS), checkpoint({"message": 1}), {}, {"message": 1})
    with pytest.raises(ConfigError, match="is reserved for messages"):
        await world.saver.aput_writes(at("talk", MESSAGES_NS, new_id()), [("message", 1)], "task")
    assert await world.saver.aget_thread("talk") is None


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
