"""Searching a thread for a text."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from threadmark.errors import ConfigError
from threadmark.saver import Saver
from threadmark.store.contract import CheckpointRow, Store
from threadmark.travel.model import Match
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, id_of


async def _all(saver: Saver, text: str, limit: int = 20, ns: str | None = None) -> list[Match]:
    """All matches, read page by page."""
    found: list[Match] = []
    cursor: str | None = None
    while True:
        page = await saver.asearch("thread", text, limit=limit, ns=ns, cursor=cursor)
        assert len(page.matches) <= limit
        found += page.matches
        cursor = page.cursor
        if cursor is None:
            return found


async def a_text_is_found_once_in_each_place(world: World) -> None:
    run, ids = Run(world.saver), []
    for number in range(16):
        text = f"The Straße number {number:02}. " + f"{number} and more text for a segment. " * 20
        items = [*run.values.get("m", []), {"id": str(number), "content": text}]
        metadata = {"user": "Ada Lovelace", "note": "halfway" if number == 9 else ""}
        ids.append(id_of(await run.step({"m": items, "k": {f"key {number}": 1}}, metadata=metadata)))
    await run.write(("m", [{"content": "PENDING straße"}]))
    child = Run(world.saver, ns="child")
    below = id_of(await child.step({"x": "a street below: STRASSE"}))
    for saver in (world.saver, world.cold):
        (found,) = await _all(saver, "strasse NUMBER 07")
        assert found[:4] == ("", ids[7], "values", 'm[7]["content"]')
        assert found[4:] == ("The ", "Straße number 07", ". 7 and more text for a segment. 7 and m")
        everywhere = await _all(saver, "strasse", limit=7)
        # Newest first: the namespaces' checkpoints come in the order in which they were stored.
        expected = [("child", below, "values"), ("", ids[15], "values"), ("", ids[15], "writes")]
        expected += [("", id_, "values") for id_ in ids[14::-1]]
        assert [match[:3] for match in everywhere] == expected
        assert everywhere == await _all(saver, "STRASSE", limit=100)
        assert [match[1:4] for match in await _all(saver, "LOVELACE")] == [(ids[0], "metadata", "user")]
        assert [match[1:4] for match in await _all(saver, "halfway")] == [(ids[9], "metadata", "note")]
        assert [match.path for match in await _all(saver, "key 3", ns="")][-1] == 'k["key 3"]'
        assert [match.ns for match in await _all(saver, "below", ns="child")] == ["child"]
        assert await _all(saver, "below", ns="") == await _all(saver, "nowhere") == []
        assert (await saver.asearch("nobody", "x")).matches == []
        assert (await saver.asearch("thread", "x", limit=0)).matches == []
    with pytest.raises(ConfigError, match="not empty"):
        await world.saver.asearch("thread", "")
    with pytest.raises(ConfigError, match="cursor"):
        await world.saver.asearch("thread", "x", cursor="nonsense")


async def a_text_that_came_about_by_an_edit_is_found(world: World) -> None:
    run, long = Run(world.saver), "some words that go on and on. " * 60
    await run.step({"text": f"{long} re-x-fund {long}"})
    edited = id_of(await run.step({"text": f"{long} refund {long}"}))
    moved = id_of(await run.step({"text": f"{long} {long}refund", "other": 1}))
    other = run.fork(run.config)
    back = id_of(await other.step({"text": f"{long} ref {long}", "again": f"{long} refund {long}"}))
    found = [(match.id, match.path) for match in await _all(world.cold, "refund")]
    assert found == [(back, "again"), (edited, "text")]
    assert moved not in [id_ for id_, _ in found]  # its text had it before


async def what_is_damaged_is_passed_over_and_named(world: World) -> None:
    run = Run(world.saver)
    ids = [id_of(await run.step({"a": f"needle {number} " * 60})) for number in range(6)]

    def damage(store: Store) -> Any:
        rows: Sequence[CheckpointRow] = yield from store.rows("thread", [("", ids[2])])
        yield from store.lock("thread")
        yield from store.rewrite("thread", [rows[0]._replace(header=b"\0\0nothing")])

    await world.in_store(damage)
    page = await world.cold.asearch("thread", "needle")
    assert {match.id for match in page.matches} == {ids[3], ids[0]}  # the damaged one's child counts as new
    (problem,) = page.problems
    assert problem.kind == "damaged"
    assert ids[2] in problem.location
    await world.saver.adelete_thread("thread")


async def a_search_reads_what_is_new_and_no_more(world: World) -> None:
    run, chance = Run(world.saver), random.Random(4)
    for number in range(40):
        await run.step({"m": [*run.values.get("m", []), f"{number}: {chance.randbytes(1000).hex()}"]})
    sizes = await world.in_store(lambda store: store.segment_sizes("thread"))
    saver, reads = world.counting()
    assert (await saver.asearch("thread", "not there at all")).matches == []
    assert reads.bytes <= sum(sizes.values()) * 1.2  # some headers are read again, with the next batch
    assert len(reads.questions) <= 12
