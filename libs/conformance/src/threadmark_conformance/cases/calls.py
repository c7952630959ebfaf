"""Calls of subgraphs: a call's namespace is removed with the checkpoint that made the call, and not before."""

from datetime import timedelta
from typing import Any

from threadmark.ids import new_id
from threadmark.program import Program
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Change, Scope, Store, now
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, early_id, id_of, listed, pending

_DAY = timedelta(days=1)


class _Graph:
    """A thread whose steps call subgraphs as LangGraph does: each task has a namespace for its call."""

    def __init__(self, world: World, ns: str = "", parents: dict[str, str] | None = None) -> None:
        self.world = world
        self.run = Run(world.saver, ns=ns)
        self.ns = ns
        self.parents = parents or {}

    async def step(self, checkpoint_id: str | None = None, **metadata: Any) -> dict[str, Any]:
        """One step of this graph."""
        merged = {"source": "loop", "parents": self.parents, **metadata}
        return await self.run.step({"a": self.run.count}, metadata=merged, checkpoint_id=checkpoint_id)

    def call(self, name: str, caller: str | None = None, suffix: str = "") -> "_Graph":
        """The subgraph calls of a task of the newest step."""
        parents = {**self.parents, self.ns: caller or id_of(self.run.config)}
        enclosing = f"{self.ns}|" if self.ns else ""
        return _Graph(self.world, f"{enclosing}{name}{suffix}", parents)


async def a_finished_call_goes_with_its_caller(world: World) -> None:
    graph = _Graph(world)
    for turn in range(4):
        await graph.step()
        for call in (graph.call(f"node:task {turn}"), graph.call(f"node:task {turn}", suffix="|1")):
            for number in range(3):
                await call.step()
                await call.run.write(("a", number))
    head = await graph.step()
    removed = await world.saver.aprune(["thread"])
    assert (removed.checkpoints, removed.writes) == (4 + 4 * 2 * 3, 4 * 2 * 3)
    assert [item.config for item in await listed(world.another(), at("thread"))] == [head]
    assert (await world.saver.averify()).problems == []


async def a_pruned_thread_stops_growing(world: World) -> None:
    graph = _Graph(world)
    sizes = []
    for turn in range(12):
        await graph.step()
        outer = graph.call(f"outer:task {turn}")
        for number in range(3):
            await outer.step()
            await outer.call(f"inner:task {turn} {number}").step()
        await graph.step()
        await world.saver.aprune(["thread"])
        held = await world.saver.aprune(["thread"], strategy="delete", dry_run=True)
        sizes.append((held.checkpoints, held.segments))
    assert sizes[3:] == sizes[2:-1]


async def an_open_call_stays_whole(world: World) -> None:
    graph = _Graph(world)
    for turn in range(3):
        await graph.step()
        outer = graph.call(f"outer:task {turn}")
        for number in range(2):
            await outer.step()
            inner = outer.call(f"inner:task {turn} {number}")
            await inner.step()
            await inner.run.write(("__interrupt__", f"question {turn} {number}"))
    await world.saver.aprune(["thread"])
    newest = [graph.run.config, outer.run.config, inner.run.config]
    found = await listed(world.another(), at("thread"))
    assert [item.config for item in reversed(found)] == newest
    assert await pending(world.another(), inner.run.config) == [("task", "__interrupt__", "question 2 1")]


async def parallel_calls_of_one_step_stay_together(world: World) -> None:
    graph = _Graph(world)
    await graph.step()
    calls = [graph.call(f"node:task {number}") for number in range(4)]
    for call in calls:
        await call.step()
        await call.step()
    await world.saver.aprune(["thread"])
    found = {item.config["configurable"]["checkpoint_ns"] for item in await listed(world.another(), at("thread"))}
    assert found == {"", *(call.ns for call in calls)}


async def calls_stay_with_every_checkpoint_that_is_kept(world: World) -> None:
    graph = _Graph(world)
    called = []
    for turn in range(5):
        await graph.step()
        call = graph.call(f"node:task {turn}")
        for _ in range(3):
            await call.step()
        called.append(call.ns)
    await world.saver.aprune(["thread"], keep_last=2)
    found = [item.config["configurable"]["checkpoint_ns"] for item in await listed(world.another(), at("thread"))]
    assert sorted(found) == ["", "", *sorted([*called[-2:], *called[-2:]])]


async def a_subgraph_with_a_memory_of_its_own_stays(world: World) -> None:
    graph = _Graph(world)
    memory = _Graph(world, "remembers")
    for turn in range(3):
        await graph.step()
        memory.parents = {"": id_of(graph.run.config)}
        await memory.step()
        inner = memory.call(f"inner:task {turn}")
        await inner.step()
    await graph.step()
    await world.saver.aprune(["thread"])
    # The next call may resume the calls of the memory's newest checkpoint, at any step.
    found = {item.config["configurable"]["checkpoint_ns"] for item in await listed(world.another(), at("thread"))}
    assert found == {"", "remembers", inner.ns}


async def a_namespace_that_says_nothing_of_a_caller_stays(world: World) -> None:
    graph = _Graph(world)
    for ns in ("tenant:7", "tenant:8"):
        other = Run(world.saver, ns=ns)
        await other.step(metadata={"parents": ["no map"]} if ns == "tenant:8" else {})
    await graph.step()
    await graph.step()
    await world.saver.aprune(["thread"])
    assert len(await listed(world.another(), at("thread"))) == 3


async def a_call_that_came_before_its_caller_stays(world: World) -> None:
    graph = _Graph(world)
    await graph.step()
    call = graph.call("node:task", caller=early_id(1))
    await call.step()
    await call.run.write(("__interrupt__", "a question"))
    await graph.step()  # of another run on the thread, which was quicker
    await world.saver.aprune(["thread"])
    assert await pending(world.another(), call.run.config) == [("task", "__interrupt__", "a question")]


async def a_call_stays_while_its_caller_is_still_to_come(world: World) -> None:
    graph = _Graph(world)
    await graph.step()
    call = graph.call("node:task", caller=new_id())
    await call.step()
    await _let_days_pass(world)  # a step that takes so long, of a run that stores its checkpoint at the end
    await world.saver.aprune(["thread"])
    assert [item.config for item in await listed(world.another(), at("thread", call.ns))] == [call.run.config]


async def a_call_whose_caller_is_long_gone_goes(world: World) -> None:
    graph = _Graph(world)
    await graph.step()
    lost = graph.call("node:lost", caller=early_id(1))
    nested = lost.call("inner:lost", caller=early_id(2))
    for each in (lost, nested):
        await each.step()
    assert (await world.saver.aprune(["thread"])).checkpoints == 0
    await _let_days_pass(world)
    assert (await world.saver.aprune(["thread"])).checkpoints == 2
    assert [item.config for item in await listed(world.another(), at("thread"))] == [graph.run.config]


async def only_calls_that_are_old_enough_go(world: World) -> None:
    graph = _Graph(world)
    await graph.step()
    call = graph.call("node:task")
    await call.step()
    await graph.step()
    assert (await world.saver.aprune(["thread"], older_than=_DAY)).checkpoints == 0
    assert (await world.saver.aprune(["thread"], older_than=-_DAY)).checkpoints == 2


async def deleting_a_run_takes_what_it_made_of_a_call(world: World) -> None:
    graph = _Graph(world)
    await graph.step(run_id="first")
    call = graph.call("node:task")
    await call.step(run_id="first")
    kept = await call.step(run_id="second")
    head = await graph.step(run_id="second")
    await world.saver.adelete_for_runs(["first"])
    assert [item.config for item in await listed(world.another(), at("thread"))] == [head, kept]


async def _let_days_pass(world: World) -> None:
    """Make all stored data some days older."""

    def program(store: Store) -> Program[None]:
        outlines = yield from store.page(Scope("thread"), None, 1000)
        rows = yield from store.rows("thread", [outline.key for outline in outlines])
        older = [row.outline._replace(created_at=row.outline.created_at - 3 * 24 * 3600 * 1_000_000) for row in rows]
        aged = [checkpoint_row(outline, row.header, None) for outline, row in zip(older, rows, strict=True)]
        yield from store.replace(Change("thread", None, now(), {}, aged, (), None))

    await world.in_store(program)
