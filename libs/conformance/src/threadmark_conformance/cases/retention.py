"""Retention: threads that are expired, idle or too large are removed, and no others."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from threadmark.errors import ConfigError, ThreadNotFoundError
from threadmark.ids import new_id
from threadmark.model import Progress, PruneReport
from threadmark.program import Driver, Program, Transaction
from threadmark.saver import Saver
from threadmark.saver.proving import checkpoint_row, rebound_write
from threadmark.store.contract import Change, Scope, Store, now
from threadmark.store.threads import LeaseRow
from threadmark_conformance.backend import World
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import Run, at, got, listed, values

_DAY = timedelta(days=1)
_LONG = "so much that it is a segment of its own. " * 30
_EVERYTHING = {"idle_for": 60 * _DAY, "keep_last": 2}


class _UpdatesFirst(DriverWrapper):
    """Updates a thread after a retention has listed the threads, and before it removes some."""

    def __init__(self, driver: Driver, store: Store, name: str) -> None:
        super().__init__(driver)
        self._update: Transaction[None] | None = Transaction(_update, (store, name), writes=True)

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        if transaction.writes and self._update is not None:
            update, self._update = self._update, None
            yield update
        return (yield transaction)


async def what_has_expired_goes_whole_and_nothing_else(world: World) -> None:
    await _threads(world, "expired", "expires", "never")
    await _expire(world, "expired")
    await world.saver.aupdate_thread("expires", expires_at=_DAY)
    taken = await _bytes(world, "expired")
    report = await world.another().aapply_retention()
    assert (report.threads, report.expired, report.size_bytes, report.pruned.threads) == (1, 1, taken, 0)
    assert await _left(world) == ["expires", "never"]
    assert (await world.saver.averify()).problems == []
    assert (await world.saver.aapply_retention()).threads == 0


async def idle_threads_go_whole(world: World) -> None:
    await _old_thread(world, "idle", 90 * _DAY)
    await _old_thread(world, "called", 90 * _DAY)
    await Run(world.saver, "called", "child").step({"a": 1})  # nothing new in the namespace "", but in another
    await _old_thread(world, "younger", 30 * _DAY)
    await _threads(world, "new")
    report = await world.saver.aapply_retention(idle_for=60 * _DAY)
    assert (report.idle, report.expired, report.for_space) == (1, 0, 0)
    assert await _left(world) == ["called", "new", "younger"]


async def others_are_pruned_as_prune_does_it(world: World) -> None:
    await _threads(world, "a", "b", "c")
    await _old_thread(world, "old", 30 * _DAY)
    names = ["a", "b", "c", "old"]
    rules: Sequence[dict[str, Any]] = (
        {"keep_last": 3, "older_than": _DAY},
        {"older_than": _DAY},
        {"keep_last": 3},
        {"keep_last": 2, "older_than": timedelta(0)},
    )
    for rule in rules:
        expected = await world.saver.aprune(names, dry_run=True, **rule)
        assert (await world.saver.aapply_retention(**rule)).pruned == expected
        assert (await world.saver.aprune(names, **rule)).checkpoints == 0
    assert len(await listed(world.another(), at("a", ""))) == 2
    assert await values(world.another(), at("a")) == {"a": f"a 3 {_LONG}"}


async def the_least_recently_updated_make_room(world: World) -> None:
    for number, name in enumerate(("d", "b", "a", "c")):
        await _old_thread(world, name, (10 - number) * _DAY)
    sizes = {name: await _bytes(world, name) for name in "abcd"}
    report = await world.saver.aapply_retention(max_bytes=sizes["a"] + sizes["c"])
    assert (report.for_space, report.size_bytes) == (2, sizes["b"] + sizes["d"])
    assert await _left(world) == ["a", "c"]
    assert (await world.saver.aapply_retention(max_bytes=sizes["c"])).for_space == 1
    assert (await world.saver.aapply_retention(max_bytes=0)).for_space == 1
    assert await _left(world) == []


async def a_thread_that_is_updated_concurrently_need_not_make_room(world: World) -> None:
    for number, name in enumerate("abcd"):
        await _old_thread(world, name, (10 - number) * _DAY)
    sizes = {name: await _bytes(world, name) for name in "abcd"}
    retaining = world.behind(partial(_UpdatesFirst, store=world.saver._context.store, name="a"))  # noqa: SLF001 - a program of the store's
    report = await retaining.aapply_retention(max_bytes=sizes["c"] + sizes["d"])
    assert (report.for_space, report.size_bytes) == (1, sizes["b"])
    assert await _left(world) == ["a", "c", "d"]


async def what_pruning_frees_need_not_go_whole(world: World) -> None:
    for number, name in enumerate("abc"):
        await _old_thread(world, name, (10 - number) * _DAY)
    await world.saver.acopy_thread("a", "pruned")
    await world.saver.aprune(["pruned"], keep_last=1)
    most = 3 * await _bytes(world, "pruned") + 100
    await world.saver.adelete_thread("pruned")
    assert most < 3 * await _bytes(world, "a")
    report = await world.saver.aapply_retention(keep_last=1, max_bytes=most)
    assert (report.for_space, report.pruned.threads, report.pruned.checkpoints) == (0, 3, 9)
    assert await _left(world) == ["a", "b", "c"]


async def a_dry_run_says_what_is_then_removed(world: World) -> None:
    rules: Sequence[dict[str, Any]] = (
        {},
        {"idle_for": 60 * _DAY},
        _EVERYTHING,
        {"older_than": _DAY},
        {**_EVERYTHING, "max_bytes": 9_000},
        {"max_bytes": 9_000, "owner": "ada"},
    )
    for rule in rules:
        await _old_thread(world, "idle", 90 * _DAY)
        await _old_thread(world, "older", 40 * _DAY)
        await _old_thread(world, "old", 30 * _DAY)
        await _threads(world, "expired", "idle and expired", "new")
        await world.saver.aupdate_thread("older", owner="ada")
        await _expire(world, "expired")
        await _old_thread(world, "both", 90 * _DAY)
        await _expire(world, "both")
        before = await listed(world.saver, None)
        would = await world.saver.aapply_retention(dry_run=True, **rule)
        assert await listed(world.cold, None) == before
        did = await world.saver.aapply_retention(**rule)
        assert would.dry_run
        assert would._replace(dry_run=False, seconds=0) == did._replace(seconds=0), rule
        assert "would remove" in str(would)
        for name in await _left(world):
            await world.saver.adelete_thread(name)


async def busy_threads_are_left_alone(world: World) -> None:
    for name in ("busy", "free"):
        await _old_thread(world, name, 90 * _DAY)
        await _expire(world, name)
    lease = await world.in_store(lambda store: _lease(store, "busy"))
    rules: Sequence[dict[str, Any]] = ({}, _EVERYTHING, {"max_bytes": 0}, {"idle_for": _DAY})
    for rule in rules:
        report = await world.saver.aapply_retention(**rule)
        assert (report.busy, report.threads) == (1, 1 + report.expired), rule
    assert len(await listed(world.another(), at("busy"))) == 4
    await world.in_store(lambda store: _end_lease(store, "busy", lease))
    assert (await world.saver.aapply_retention()).expired == 1
    assert await _left(world) == []


async def owner_and_metadata_choose_the_threads(world: World) -> None:
    names = ["ada draft", "ada final", "eve draft", "nobody"]
    await _threads(world, *names)
    for name in names[:-1]:
        owner, kind = name.split()
        await world.saver.aupdate_thread(name, owner=owner, metadata={"kind": kind})
    chosen: Sequence[tuple[dict[str, Any], int]] = (
        ({"owner": "ada", "metadata": {"kind": "final"}}, 1),
        ({"metadata": {"kind": "draft"}}, 2),
        ({"metadata": {"kind": "other"}}, 0),
        ({"owner": "bob"}, 0),
        ({}, 1),
    )
    for rule, expected in chosen:
        report = await world.saver.aapply_retention(keep_last=3, **rule)
        assert report.pruned.checkpoints == expected, rule


async def a_view_removes_only_what_is_its_owners(world: World) -> None:
    await _threads(world, "adas", "eves", "nobodys")
    for name, owner in (("adas", "ada"), ("eves", "eve"), ("nobodys", None)):
        await world.saver.aupdate_thread(name, owner=owner, expires_at=-_DAY)
    ada = world.another().for_owner("ada")
    assert (await ada.aprune(None)).threads == 1
    assert (await ada.aapply_retention(owner="eve", max_bytes=0)).threads == 0
    assert (await ada.aapply_retention(max_bytes=0)).expired == 1
    assert await _left(world) == ["eves", "nobodys"]


async def damaged_threads_are_left_and_named(world: World) -> None:
    await _threads(world, "a", "damaged", "unsound", "z")
    for name in ("a", "damaged", "z"):
        await _expire(world, name) if name != "damaged" else None
    await world.in_store(_damage_checkpoint)
    await world.in_store(_damage_row)
    would = await world.saver.aapply_retention(keep_last=1, dry_run=True)
    report = await world.saver.aapply_retention(keep_last=1)
    assert [problem.location.partition(",")[0] for problem in report.problems] == [
        "thread 'damaged'",
        "thread 'unsound'",
    ]
    assert (report.expired, report.threads, would.problems) == (2, 4, report.problems)
    assert "2 damaged" in str(report)
    assert len([row for row in await world.saver.alist_checkpoint_refs() if row.thread_id == "damaged"]) == 4
    for name in ("damaged", "unsound"):
        await world.saver.adelete_thread(name)


async def it_goes_on_where_it_was_interrupted(world: World) -> None:
    """Many threads share a transaction, and an error between two transactions leaves whole threads."""
    await _many(world, 70)
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        raise KeyError("enough")

    with pytest.raises(KeyError):
        await world.saver.aapply_retention(keep_last=1, progress=interrupt)
    assert [progress[:2] for progress in seen] == [(16, 70)]
    assert (await world.saver.aprune(None, dry_run=True)).checkpoints == 54
    report = await world.another().aapply_retention(keep_last=1)
    assert (report.threads, report.pruned.checkpoints) == (70, 54)
    assert (await world.saver.aprune(None, dry_run=True)).checkpoints == 0


async def two_at_once_remove_everything_once(world: World) -> None:
    await _many(world, 70)
    one, other = await asyncio.gather(
        world.saver.aapply_retention(keep_last=1), world.another().aapply_retention(keep_last=1)
    )
    assert 0 < one.pruned.checkpoints + other.pruned.checkpoints <= 70  # less where each thread is committed by itself
    assert (await world.saver.aprune(None, keep_last=1, dry_run=True)).checkpoints == 0
    halves = await asyncio.gather(
        world.saver.aapply_retention(max_bytes=0), world.another().aapply_retention(max_bytes=0)
    )
    assert 0 < sum(half.for_space for half in halves) <= 70
    assert await _left(world) == []


async def a_run_that_goes_on_concurrently_loses_nothing(world: World) -> None:
    runs = [Run(world.saver, f"run {number}") for number in range(4)]

    async def go_on(run: Run) -> None:
        for number in range(6):
            await run.step({"a": f"{number} {_LONG}"})
            await run.write(("a", number))

    async def retain(saver: Saver) -> None:
        for _ in range(4):
            await saver.aapply_retention(keep_last=1, idle_for=_DAY)

    await asyncio.gather(*map(go_on, runs), retain(world.another()))
    await world.saver.aapply_retention(keep_last=1)
    for run in runs:
        found = await got(world.cold, run.config)
        assert (found.checkpoint["channel_values"]["a"], found.pending_writes) == (f"5 {_LONG}", [("task", "a", 5)])


async def prune_takes_all_threads_for_none(world: World) -> None:
    await _many(world, 66)
    await Run(world.saver, "").step({"a": 1})
    seen: list[Progress] = []
    would = await world.saver.aprune(None, dry_run=True, progress=seen.append)
    assert (would.threads, would.checkpoints) == (67, 66)
    assert (seen[-1].threads, seen[-1].of) == (67, 67)
    assert await world.saver.aprune(None) == would
    with pytest.raises(ConfigError, match="every thread"):
        await world.saver.aprune(None, strategy="delete")
    assert await world.saver.aprune(None) == PruneReport(67, 0, 0, 0, 0)


async def unknown_threads_are_named_before_anything_is_removed(world: World) -> None:
    await _threads(world, "a")
    with pytest.raises(ThreadNotFoundError, match=r"'x', 'y'.*nothing was removed"):
        await world.saver.aprune(["a", "x", "y"], strategy="delete", missing_ok=False)
    with pytest.raises(ThreadNotFoundError, match=r"'t 4' and 5 more"):
        await world.saver.aprune([f"t {number}" for number in range(10)], missing_ok=False)
    assert len(await listed(world.saver, at("a"))) == 4
    assert (await world.saver.aprune(["a", "x"])).threads == 1
    assert (await world.saver.aprune(["a"], strategy="delete", missing_ok=False)).checkpoints == 1


async def long_operations_tell_how_far_they_are(world: World) -> None:
    await _threads(world, "a", "b")
    for call in (world.saver.averify, world.saver.astats):
        seen: list[Progress] = []
        await call(progress=seen.append)
        assert seen == [(1, 2, "a"), (2, 2, "b")]
        seen.clear()
        await call("b", progress=seen.append)
        assert seen == [(1, 1, "b")]
    seen = []
    await world.saver.aprune(["b", "unknown"], progress=seen.append)
    assert seen == [(2, 2, "unknown")]

    def refuse(_: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await world.saver.averify(progress=refuse)


async def a_length_of_time_may_be_seconds(world: World) -> None:
    await _threads(world, "old")
    await asyncio.sleep(0.01)
    assert (await world.saver.aapply_retention(idle_for=3600, dry_run=True)).idle == 0
    assert (await world.saver.aapply_retention(idle_for=0.001, dry_run=True)).idle == 1
    assert (await world.saver.aprune(["old"], older_than=3600, dry_run=True)).checkpoints == 0


async def wrong_rules_are_refused(world: World) -> None:
    wrong: Sequence[Mapping[str, Any]] = (
        {"idle_for": 0},
        {"idle_for": timedelta(0)},
        {"keep_last": 0},
        {"older_than": "3"},
        {"max_bytes": -1},
        {"max_bytes": True},
        {"owner": ""},
        {"dry_run": "no"},
        {"progress": "yes"},
    )
    await _threads(world, "a")
    await _expire(world, "a")
    for each in wrong:
        with pytest.raises(ConfigError, match=next(iter(each))):
            await world.saver.aapply_retention(**each)
    with pytest.raises(ConfigError, match="missing_ok"):
        await world.saver.aprune(["a"], missing_ok="no")  # type: ignore[arg-type]  # that is the point
    assert await _left(world) == ["a"]


async def _threads(world: World, *names: str) -> None:
    """Put threads of four checkpoints each."""
    for name in names:
        run = Run(world.saver, name)
        for number in range(4):
            await run.step({"a": f"{name} {number} {_LONG}"})
            await run.write(("a", number))


async def _many(world: World, threads: int) -> None:
    """Put many threads of two checkpoints each."""

    async def put(number: int) -> None:
        run = Run(world.saver, f"{number:03}")
        await run.step({"a": 1})
        await run.step({"a": 2})

    for start in range(0, threads, 25):
        await asyncio.gather(*map(put, range(start, min(threads, start + 25))))


async def _old_thread(world: World, name: str, age: timedelta) -> None:
    """Put a thread, and make all its data look old."""
    await _threads(world, "made now")
    stored_at = now() - age // timedelta(microseconds=1)

    def program(store: Store) -> Program[None]:
        outlines = yield from store.page(Scope("made now"), None, 1000)
        rows = yield from store.rows("made now", [outline.key for outline in outlines])
        writes = yield from store.writes("made now", None)
        sizes = yield from store.segment_sizes("made now")
        segments = yield from store.segments("made now", list(sizes))
        aged = [
            checkpoint_row(row.outline._replace(thread_id=name, created_at=stored_at), row.header, None) for row in rows
        ]
        rebound = [rebound_write("made now", name, write) for write in writes]
        yield from store.add(Change(name, None, stored_at, segments, aged, rebound, None))

    await world.in_store(program)
    await world.saver.adelete_thread("made now")


async def _expire(world: World, name: str) -> None:
    await world.saver.aupdate_thread(name, expires_at=-_DAY)


async def _left(world: World) -> list[str]:
    page = await world.saver.alist_threads(sort="id", limit=1000)
    return [thread.id for thread in page.threads]


async def _bytes(world: World, name: str) -> int:
    thread = await world.saver.aget_thread(name)
    assert thread is not None
    return thread.size_bytes


def _lease(store: Store, name: str) -> Program[LeaseRow]:
    yield from store.lock_lease(name)
    return (yield from store.set_lease(name, LeaseRow(0, left=3600_000_000, holder="somebody")))


def _end_lease(store: Store, name: str, lease: LeaseRow) -> Program[None]:
    yield from store.lock_lease(name)
    yield from store.set_lease(name, lease._replace(left=0))


def _update(store: Store, name: str) -> Program[None]:
    (newest,) = yield from store.page(Scope(name, ns=""), None, 1)
    next_id = new_id()
    outline = newest._replace(id=next_id, rank=next_id, parent=newest.id, created_at=now())
    (row,) = yield from store.rows(name, [newest.key])
    yield from store.add(Change(name, None, now(), {}, [checkpoint_row(outline, row.header, None)], (), None))


def _damage_checkpoint(store: Store) -> Program[None]:
    yield from store.lock("damaged")
    outlines = yield from store.page(Scope("damaged"), None, 1)
    rows = yield from store.rows("damaged", [outlines[0].key])
    yield from store.rewrite("damaged", [rows[0]._replace(check=bytes(len(rows[0].check)))])


def _damage_row(store: Store) -> Program[None]:
    yield from store.lock("unsound")
    found = yield from store.thread("unsound")
    assert found is not None
    yield from store.set_thread(found.row._replace(owner="somebody else", check=b"not what it was"))
