"""A thread's past, read from rows: its history page by page, and the tree of its branches."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from threadmark.errors import CorruptDataError
from threadmark.interfaces import Conversations
from threadmark.model import CheckpointTuple
from threadmark.saver import Saver
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import CheckpointRow, Store
from threadmark.travel.model import HistoryEntry, HistoryPage, Tree, WriteInfo
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of, listed

_LONG = "a value that stands in segments of its own, and that no history reads. " * 60


async def _pages(saver: Saver, limit: int, ns: str | None = "") -> list[HistoryEntry]:
    """All entries of the thread, read page by page."""
    found: list[HistoryEntry] = []
    cursor: str | None = None
    while True:
        page = await saver.ahistory("thread", ns=ns, limit=limit, cursor=cursor)
        assert len(page.entries) <= limit
        found += page.entries
        cursor = page.cursor
        if cursor is None:
            return found


async def a_history_tells_everything_but_values(world: World) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    seen: dict[str, Any] = {"__input__": {}}
    first = checkpoint({"a": _LONG, "b": 1}, {"a": 1, "b": 1}, versions_seen=seen, updated_channels=["a"])
    root = await world.saver.aput(at("thread"), first, {"source": "input", "step": -1}, {"a": 1, "b": 1})
    writes = [("a", _LONG), ("b", 2)]
    await world.saver.aput_writes(root, writes, "t1", "~__pregel_pull, plan")
    seen = {**seen, "__start__": {"a": 1}, "plan": {"a": 1}, "sent": {}}
    second = checkpoint({"a": _LONG, "b": 2}, {"a": 1, "b": 2, "c": 2}, versions_seen=seen)
    placed = await world.saver.aput(root, second, {"source": "loop", "step": 0, "user": "ada"}, {"b": 2, "c": 2})
    await world.saver.aput_writes(placed, [("__interrupt__", "?")], "t2", "~__pregel_pull, ask, me")
    await world.saver.aput_writes(placed, [("b", 3)], "t3", "~__pregel_push, 0000000000")
    other = checkpoint({"b": 3}, {"b": 2.5}, odd=(1, 2), versions_seen={"plan": ("a", "tuple")})
    await world.saver.aput(placed, other, {"step": "no number", "source": None}, {"b": 2.5})
    for saver in (world.saver, world.cold):
        newest, middle, oldest = (await saver.ahistory("thread")).entries
        assert (await saver.ahistory(at("thread"))).entries == [newest, middle, oldest]
        assert (await saver.ahistory(placed)).entries == [middle, oldest]
        begun = await saver.ahistory(placed, limit=1)
        assert begun.entries == [middle]
        assert (await saver.ahistory(placed, cursor=begun.cursor)).entries == [oldest]
        assert (await saver.ahistory(root, limit=1)) == HistoryPage([oldest], None, [])
        for nowhere in (await saver.ahistory(placed, ns="other"), await saver.ahistory(at("thread", "", "?"))):
            assert nowhere == HistoryPage([], None, [])
        assert newest[:3] == ("", other["id"], second["id"])
        assert newest[4:8] == (None, None, ["ask, me"], ["b"])  # the fields of this one need the serializer
        assert middle[:3] == ("", second["id"], first["id"])
        assert middle[4:8] == (0, "loop", ["plan", "sent"], ["b", "c"])
        assert middle.metadata == {"source": "loop", "step": 0, "user": "ada"}
        assert [write[:3] for write in middle.writes] == [
            ("t2", "ask, me", "__interrupt__"),
            ("t3", None, "b"),
        ]
        assert oldest[4:8] == (-1, "input", [], ["a"])
        assert [write[:3] for write in oldest.writes] == [("t1", "plan", "a"), ("t1", "plan", "b")]
        assert all(isinstance(write, WriteInfo) and 0 < write.size_bytes < 200 for write in oldest.writes)
        assert all(50 < entry.size_bytes < 1000 and entry.problem is None for entry in (newest, middle, oldest))
        assert (
            began
            <= oldest.created_at
            <= middle.created_at
            <= newest.created_at
            <= datetime.now(UTC) + timedelta(seconds=1)
        )
        assert (await saver.ahistory("nobody")).entries == (await saver.ahistory("thread", limit=0)).entries == []


async def pages_of_a_history_are_a_listing_in_parts(world: World) -> None:
    run, child = Run(world.saver), Run(world.saver, ns="child")
    for number in range(7):
        await run.step({"n": number})
        await child.step({"n": number})
    talk = world.interface(Conversations)
    await talk.aput_messages({"thread_id": "thread"}, [{"id": f"m{number}"} for number in range(12)])
    whole = await listed(world.saver, at("thread"))
    names = [(each.config["configurable"]["checkpoint_ns"], each.checkpoint["id"]) for each in whole]
    names = [name for name in names if name[0] != "__messages__"]
    for limit in (1, 4, 7, 100):
        assert [entry[:2] for entry in await _pages(world.saver, limit, None)] == names
        assert [entry[:2] for entry in await _pages(world.cold, limit)] == [name for name in names if not name[0]]
    assert [entry[:2] for entry in await _pages(world.saver, 3, "child")] == [name for name in names if name[0]]
    page = await world.saver.ahistory("thread", limit=3)
    newer = id_of(await run.step({"n": 7}))
    later = await world.saver.ahistory("thread", limit=4, cursor=page.cursor)
    assert [entry.id for entry in later.entries] == [id_ for ns, id_ in names if not ns][3:7]
    assert (await world.saver.ahistory("thread", limit=1)).entries[0].id == newer
    assert later.cursor is None
    assert {node.ns for node in (await world.saver.atree("thread")).nodes} == {"", "child"}


async def a_page_of_a_history_takes_a_few_questions(world: World) -> None:
    run, chance = Run(world.saver), random.Random(1)
    for number in range(24):
        await run.step({"a": chance.randbytes(4000), f"{number}" * 30: number})
        await run.write(("a", chance.randbytes(4000)))
    saver, reads = world.counting()
    page = await saver.ahistory("thread", limit=20)
    assert [entry.problem for entry in page.entries] == [None] * 20
    assert len(reads.questions) <= 4
    assert reads.questions.count("segments") <= 1
    assert not {"find", "newest", "segments_of"} & set(reads.questions)
    sizes = await world.in_store(lambda store: store.segment_sizes("thread"))
    assert reads.bytes < sum(sizes.values()) / 10  # of headers alone
    reads.reset()
    assert len((await saver.atree("thread")).nodes) == 24
    assert reads.questions == ["page", "counted_heads", "heads"]


async def what_is_damaged_is_an_entry_that_says_so(world: World) -> None:
    run = Run(world.saver)
    ids = []
    for number in range(6):
        ids.append(id_of(await run.step({"a": f"{number}{_LONG}"})))
        await run.write(("a", number), path="~__pregel_pull, node")

    def damage(store: Store) -> Any:
        rows: Sequence[CheckpointRow] = yield from store.rows("thread", [("", ids[1]), ("", ids[3])])
        other, unlike = rows if rows[0].outline.id == ids[1] else rows[::-1]
        yield from store.lock("thread")
        yield from store.rewrite("thread", [other._replace(header=b"\0\0nothing")])
        metadata = unlike.outline._replace(metadata="not JSON")
        yield from store.rewrite("thread", [checkpoint_row(metadata, unlike.header, None)])

    await world.in_store(damage)
    for saver in (world.another(), world.cold):
        entries = await _pages(saver, 2)
        assert [entry.id for entry in entries] == ids[::-1]
        problems = {entry.id: entry.problem for entry in entries if entry.problem}
        assert problems.keys() == {ids[1], ids[3]}
        for checkpoint_id, problem in problems.items():
            assert problem.kind == "damaged"
            assert f"checkpoint {checkpoint_id!r}" in problem.location
        assert "not JSON" in problems[ids[3]].problem
        assert [entry.step for entry in entries] == [5, 4, None, 2, None, 0]
        assert [len(entry.writes) for entry in entries] == [1, 1, 0, 1, 0, 1]
        tree = await saver.atree("thread")
        assert [node.id for node in tree.nodes] == ids[::-1]
        for refused in (ids[1], ids[3]):
            for again in (saver.afork(at("thread", "", refused)), saver.arestore(at("thread", "", refused))):
                try:
                    await again
                except CorruptDataError:
                    continue
                raise AssertionError(refused)
    assert len((await world.saver.ahistory("thread")).entries) == 6
    await world.saver.adelete_thread("thread")


async def a_tree_has_every_branch_of_every_namespace(world: World) -> None:
    run = Run(world.saver)
    ids = [id_of(await run.step({"a": number}, checkpoint_id=early_id(number))) for number in range(4)]
    fork = run.fork(at("thread", "", ids[1]))
    forked = [id_of(await fork.step({"a": number}, checkpoint_id=early_id(10 + number))) for number in range(3)]
    again = run.fork(at("thread", "", ids[1]))
    second = [id_of(await again.step({"a": 9}, checkpoint_id=early_id(20)))]
    await run.step({"a": "newest"}, checkpoint_id=early_id(30))
    child = Run(world.saver, ns="child:1")
    await child.step({"a": 1}, checkpoint_id=early_id(25))
    root = await world.saver.aput(at("thread"), checkpoint(checkpoint_id=early_id(5)), {"source": "fork"}, {})
    tree = await world.cold.atree("thread")
    assert tree.thread_id == "thread"
    assert tree.branches == [
        ("", early_id(30), ids[0], None, 5, True),
        ("child:1", early_id(25), early_id(25), None, 1, True),
        ("", second[0], second[0], ids[1], 1, False),
        ("", forked[2], forked[0], ids[1], 3, False),
        ("", id_of(root), id_of(root), None, 1, False),
    ]
    assert _of_branches(tree) == [5, 1, 1, 3, 1]
    assert [node.id for node in tree.nodes] == [
        item.checkpoint["id"] for item in await listed(world.saver, at("thread"))
    ]
    assert [(node.step, node.source) for node in tree.nodes if node.id in (ids[3], id_of(root))] == [
        (None, "fork"),
        (3, None),
    ]
    parents = {node.id: node.parent for node in tree.nodes}
    assert (parents[forked[0]], parents[second[0]], parents[ids[0]]) == (ids[1], ids[1], None)
    # A checkpoint whose parent was removed is a beginning.
    await world.saver.aprune(["thread"], keep_last=5)
    pruned = await world.saver.atree("thread")
    assert [branch.checkpoints for branch in pruned.branches] == [1, 1, 1, 3]
    assert [branch.forked_from for branch in pruned.branches] == [None] * 4
    assert (await world.saver.atree("nobody"))[1:] == ([], [], [])


async def a_clock_that_is_set_back_does_not_disturb_a_tree(world: World) -> None:
    run = Run(world.saver)
    ids = [id_of(await run.step({"a": number}, checkpoint_id=early_id(10 - number))) for number in range(4)]
    tree = await world.saver.atree("thread")
    assert tree.branches == [("", ids[3], ids[0], None, 4, True)]
    assert [entry.id for entry in await _pages(world.cold, 3)] == ids[::-1] == [node.id for node in tree.nodes]
    found: list[CheckpointTuple] = await listed(world.saver, at("thread"))
    assert [item.checkpoint["id"] for item in found] == ids[::-1]


def _of_branches(tree: Tree) -> list[int]:
    """Return how many nodes belong to each branch."""
    return [sum(node.branch == number for node in tree.nodes) for number in range(len(tree.branches))]
