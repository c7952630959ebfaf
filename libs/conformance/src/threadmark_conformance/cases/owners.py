"""An owner's view of a saver: it reaches no other owner's thread, by any method or id."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError, LeaseLostError, ThreadmarkError, ThreadNotFoundError
from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, listed, values
from threadmark_conformance.leasing import LONG, put, under

_SECRET = "the secret of somebody else, long enough for a segment of its own. " * 8


async def _two_owners(world: World) -> tuple[Run, Saver]:
    """Return a thread of Ada's with everything that a thread may have, and Eve's view."""
    config = at("adas")
    config["configurable"]["user_id"] = "ada"
    run = Run(world.saver, "adas")
    run.config = config
    await run.step({"a": _SECRET}, metadata={"run_id": "adas run"})
    await run.step({"a": _SECRET + "2"}, metadata={"run_id": "adas run"})
    await run.write(("a", _SECRET))
    await world.saver.aput_writes(at("adas", "", early_id(1)), [("a", _SECRET)], "orphan")
    await world.saver.aupdate_thread("adas", title=_SECRET, metadata={"a": _SECRET}, expires_at=timedelta(days=1))
    eve = world.another().for_owner("eve")
    own = Run(eve, "eves")
    await own.step({"a": "own"})
    return run, eve


def _named(config: dict[str, Any]) -> bool:
    return "checkpoint_id" in config["configurable"]


Attack = Callable[[Saver, dict[str, Any]], Awaitable[Any]]
_NEW = checkpoint({"a": "planted"})
_MOMENT = timedelta(microseconds=1)

ATTACKS: Mapping[str, Attack] = {
    "get": lambda eve, config: eve.aget(config),
    "get_tuple": lambda eve, config: eve.aget_tuple(config),
    "get_checkpoint_ref": lambda eve, config: eve.aget_checkpoint_ref(config),
    "list": listed,
    "put": lambda eve, config: eve.aput(config, _NEW, {}, {"a": 1}),
    "put_writes": lambda eve, config: eve.aput_writes(config, [("a", "planted")], "planted"),
    "delete_thread": lambda eve, _: eve.adelete_thread("adas"),
    "delete_checkpoint": lambda eve, config: eve.adelete_checkpoint(config),
    "delete_for_runs": lambda eve, _: eve.adelete_for_runs(["adas run"]),
    "copy_thread": lambda eve, _: eve.acopy_thread("adas", "stolen"),
    "rename_thread": lambda eve, _: eve.arename_thread("adas", "stolen"),
    "prune": lambda eve, config: eve.aprune(None if _named(config) else ["adas"]),
    "apply_retention": lambda eve, _: eve.aapply_retention(idle_for=_MOMENT, keep_last=1, max_bytes=0, owner="ada"),
    "get_delta_channel_history": lambda eve, config: eve.aget_delta_channel_history(config=config, channels=["a"]),
    "verify": lambda eve, _: eve.averify("adas", decode=True),
    "stats": lambda eve, _: eve.astats("adas"),
    "list_checkpoint_refs": lambda eve, _: eve.alist_checkpoint_refs(),
    "list_orphan_writes": lambda eve, _: eve.alist_orphan_writes(),
    "reencrypt": lambda eve, _: eve.areencrypt("adas", plain="seal"),
    "extract": lambda eve, config: eve.aextract(config, "a"),
    "extract_items": lambda eve, config: eve.aextract_items(config, channel="a"),
    "history": lambda eve, config: eve.ahistory(config, ns=None),
    "tree": lambda eve, config: eve.atree(config),
    "diff": lambda eve, config: eve.adiff(config, at("adas", "", early_id(1))),
    "blame": lambda eve, config: eve.ablame(config, "a"),
    "search": lambda eve, config: eve.asearch(config, "secret"),
    "fork": lambda eve, config: eve.afork(config, {"a": "planted"}, as_thread="stolen" if _named(config) else None),
    "restore": lambda eve, config: eve.arestore(config),
    "list_threads": lambda eve, _: eve.alist_threads(owner="ada", extract={"a": "a"}),
    "count_threads": lambda eve, _: eve.acount_threads(owner="ada"),
    "unfinished": lambda eve, _: eve.aunfinished(idle_for=0),
    "get_thread": lambda eve, _: eve.aget_thread("adas"),
    "create_thread": lambda eve, _: eve.acreate_thread("adas", title="planted"),
    "update_thread": lambda eve, _: eve.aupdate_thread("adas", title="planted", owner="eve"),
}
"""For each public method, the calls of an attacker. Methods that are missing here take no thread."""

_HARMLESS = {
    "aclose",
    "asetup",
    "ahas_tables",
    "ahas_only_langgraph_data",
    "areport",  # of a Redis saver, about its servers
    "aupgrade",  # in a view it is refused
    "adrain",  # this and the following of a replicated saver, about its databases: in a view they are refused
    "apromote",
    "areconcile",
    "astatus",
}


async def no_method_reaches_the_thread_of_another_owner(world: World) -> None:
    run, eve = await _two_owners(world)
    before = await listed(world.cold, at("adas"))
    about = await world.saver.aget_thread("adas")
    outcomes: dict[str, Any] = {}
    for name, attack in ATTACKS.items():
        # The second view shares the memory of Ada's saver about her thread.
        for view, config in product((eve, world.saver.for_owner("eve")), (at("adas"), run.config)):
            outcomes[name] = None
            with suppress(ThreadmarkError):
                outcomes[name] = await attack(view, config)
            assert _SECRET not in str(outcomes[name]), name
            assert "adas run" not in str(outcomes[name]), name
    assert await listed(world.cold, at("adas")) == before
    assert await world.saver.aget_thread("adas") == about
    assert await world.saver.aget_thread("stolen") is None
    assert outcomes["verify"].checkpoints == outcomes["stats"].checkpoints == 0
    assert {ref.thread_id for ref in outcomes["list_checkpoint_refs"]} == {"eves"}
    assert outcomes["list_orphan_writes"] == outcomes["history"].entries == outcomes["tree"].nodes == []
    assert outcomes["search"].matches == []
    assert (outcomes["diff"], outcomes["blame"]) == (None, None)
    assert (outcomes["delete_thread"], outcomes["copy_thread"], outcomes["rename_thread"]) == (False, False, False)
    assert (outcomes["get"], outcomes["get_tuple"], outcomes["list"], outcomes["get_thread"]) == (None, None, [], None)
    assert outcomes["get_checkpoint_ref"] is None


async def every_method_of_a_saver_is_attacked(world: World) -> None:
    kind = type(world.saver)
    methods = {
        name for name, member in inspect.getmembers(kind, callable) if name[0] == "a" and hasattr(kind, name[1:])
    }
    assert methods - _HARMLESS == {f"a{name}" for name in ATTACKS}


async def writing_to_the_thread_of_another_owner_is_refused(world: World) -> None:
    run, eve = await _two_owners(world)
    for config in (at("adas"), run.config):
        with pytest.raises(ThreadNotFoundError, match="not there for 'eve'"):
            await eve.aput(config, checkpoint({"a": "planted"}), {}, {"a": 1})
    with pytest.raises(ThreadNotFoundError, match="not there for 'eve'"):
        await eve.aput_writes(run.config, [("a", "planted"), ("__interrupt__", "planted")], "task")
    with pytest.raises(ThreadNotFoundError):
        await eve.acopy_thread("eves", "adas")
    with pytest.raises(ThreadmarkError):
        await eve.arename_thread("eves", "adas")
    with pytest.raises(ConflictError, match="taken"):
        await eve.afork(at("eves"), as_thread="adas")
    await Run(world.saver, "nobodys").step({"a": "own"})
    with pytest.raises(ThreadNotFoundError, match="not there for 'eve'"):
        await eve.aput(at("nobodys"), checkpoint({"a": "planted"}), {}, {"a": 1})
    assert await eve.afork(at("eves"), as_thread="another of hers")
    assert {thread.id for thread in (await eve.alist_threads()).threads} == {"eves", "another of hers"}
    with pytest.raises(ConflictError, match="taken"):
        await eve.acreate_thread("adas")
    with pytest.raises(ThreadNotFoundError):
        await eve.aupdate_thread("eves", owner="ada")
    assert await values(eve, at("eves")) == {"a": "own"}
    assert (await values(world.cold, at("adas")))["a"] == _SECRET + "2"


async def an_owner_sees_all_of_what_is_there_for_it(world: World) -> None:
    run, eve = await _two_owners(world)
    ada = world.another().for_owner("ada")
    assert await listed(ada, None) == await listed(world.saver, at("adas"))
    assert [thread.id for thread in (await ada.alist_threads()).threads] == ["adas"]
    assert [thread.id for thread in (await eve.alist_threads()).threads] == ["eves"]
    assert await ada.acount_threads() == 1
    assert (await ada.averify(decode=True)).checkpoints == 2
    assert (await ada.astats()).threads == 1
    assert len(await ada.alist_checkpoint_refs()) == 2
    assert len(await ada.alist_orphan_writes()) == 1
    await ada.aput(run.config, checkpoint({"a": 3}, {"a": 3}), {}, {"a": 3})
    assert await values(ada, at("adas")) == {"a": 3}
    assert (await got(ada, at("adas"))).parent_config is not None
    assert await ada.acopy_thread("adas", "copy") is True
    assert (await world.saver.aget_thread("copy")).owner == "ada"  # type: ignore[union-attr]  # it was just made
    assert await ada.arename_thread("copy", "second") is True
    assert (await ada.aprune(["adas", "eves", "second"])).threads == 2
    assert await ada.adelete_thread("second") is True
    assert await ada.adelete_thread("adas") is True
    assert await ada.alist_threads() == ([], None)
    assert await values(eve, at("eves")) == {"a": "own"}


async def a_thread_that_begins_in_a_view_belongs_to_its_owner(world: World) -> None:
    ada = world.saver.for_owner("ada")
    config = at("one")
    config["configurable"]["user_id"] = "eve"
    await ada.aput(config, checkpoint({"a": 1}), {}, {"a": 1})
    await ada.aput_writes(at("two", "", early_id(1)), [("a", 1)], "task")
    await ada.acreate_thread("three", title="x")
    found = {thread.id: thread.owner for thread in (await world.another().alist_threads()).threads}
    assert found == dict.fromkeys(("one", "two", "three"), "ada")


async def the_configuration_names_the_owner_of_a_new_thread(world: World) -> None:
    for thread, configurable, metadata in (
        ("one", {"user_id": "ada"}, {"user_id": "bob"}),
        ("two", {}, {"user_id": "bob"}),
        ("three", {"user_id": 7}, {}),
        ("four", {"user_id": ["no name"]}, {}),
    ):
        config: Any = {"configurable": {**at(thread)["configurable"], **configurable}, "metadata": metadata}
        await world.saver.aput(config, checkpoint({"a": 1}), {}, {"a": 1})
    await world.saver.aput(at("moved"), checkpoint({"a": 1}), {"user_id": "ada"}, {"a": 1})
    config = {"configurable": {**at("one")["configurable"], "user_id": "eve"}}
    await world.saver.aput(config, checkpoint({"a": 2}), {}, {"a": 1})
    found = {thread.id: thread.owner for thread in (await world.another().alist_threads()).threads}
    assert found == {"one": "ada", "two": "bob", "three": "7", "four": None, "moved": "ada"}


async def an_owner_that_is_too_long_begins_no_thread(world: World) -> None:
    config = {"configurable": {"thread_id": "thread", "user_id": "x" * 513}}
    with pytest.raises(ConfigError, match="at most 512"):
        await world.saver.aput(config, checkpoint({"a": 1}), {}, {"a": 1})
    assert await world.saver.aget_thread("thread") is None


async def a_deleted_thread_may_begin_again_with_another_owner(world: World) -> None:
    ada, eve = world.saver.for_owner("ada"), world.another().for_owner("eve")
    await Run(ada).step({"a": 1})
    await ada.adelete_thread("thread")
    await Run(eve).step({"a": 2})
    assert await ada.aget(at("thread")) is None
    assert await values(eve, at("thread")) == {"a": 2}
    assert [thread.id for thread in (await world.saver.alist_threads(owner="eve")).threads] == ["thread"]


async def a_lease_is_lost_with_the_thread_that_gets_another_owner(world: World) -> None:
    ada = world.another().for_owner("ada")
    async with ada.lease("thread", ttl=LONG) as lease:
        await lease.arenew()
        config = await put(ada, under(lease), a=1)
        await lease.arenew()
        await world.saver.aupdate_thread("thread", owner="eve")
        with pytest.raises(LeaseLostError):
            await lease.arenew()
        assert lease.lost.is_set()
        with pytest.raises(ThreadNotFoundError):
            await put(ada, config, a=2)
    async with world.another().for_owner("eve").lease("thread", on_busy="interrupt") as taken:
        await put(world.saver, under(taken), a=3)


async def a_view_is_left_for_no_other(world: World) -> None:
    _, eve = await _two_owners(world)
    with pytest.raises(ConfigError, match="only the threads of 'eve'"):
        eve.for_owner("ada")
    with pytest.raises(ConfigError, match="only the threads of 'eve'"):
        await eve.areencrypt()
    assert await values(eve.for_owner("eve").with_serde(eve.serde), at("eves")) == {"a": "own"}
    assert await eve.with_serde(eve.serde).aget_thread("adas") is None
