"""Expiry beyond LangGraph's description: without `omit_expired` an item stays until a sweep removes it."""

import asyncio

from langgraph.store.base import GetOp, PutOp

from threadmark_conformance.item_stores.own_worlds import OwnWorld
from threadmark_conformance.item_stores.worlds import Asked

NS = ("passing",)
SHORT = 0.001
"""Minutes."""


async def _with_expired(world: OwnWorld, count: int = 3) -> Asked:
    store = world.store()
    await store.batch([PutOp(NS, f"e{number:04}", {"n": number}, ttl=SHORT) for number in range(count)])
    await store.batch([PutOp(NS, "long", {}, ttl=60), PutOp(NS, "for good", {})])
    await asyncio.sleep(2 * 60 * SHORT)
    return store


async def an_expired_item_stays_until_it_is_swept(world: OwnWorld) -> None:
    store = await _with_expired(world)
    assert await store.get(NS, "e0000", refresh_ttl=False) is not None
    assert len(await store.keys(NS, refresh_ttl=False)) == 5
    assert await world.store(ttl={"omit_expired": True}).keys(NS) == ["for good", "long"]
    assert await store.call("sweep_ttl") == 3
    assert await store.keys(NS) == ["for good", "long"]
    assert await store.call("sweep_ttl") == 0


async def a_sweep_removes_any_number(world: OwnWorld) -> None:
    store = await _with_expired(world, 2100)
    assert await store.call("sweep_ttl") == 2100
    assert await world.store().keys() == ["for good", "long"]


async def a_sweep_spares_what_lives_on(world: OwnWorld) -> None:
    store = await _with_expired(world)
    await store.get(NS, "e0001", refresh_ttl=True)  # for as short a time again
    await store.put(NS, "e0002", {"n": 9}, ttl=60)
    await store.put(NS, "e0000", {"n": 9}, ttl=None)
    assert await store.call("sweep_ttl") <= 1
    assert sorted(key for key in await store.keys(NS) if key != "e0001") == ["e0000", "e0002", "for good", "long"]


async def two_sweeps_at_once_count_every_item_once(world: OwnWorld) -> None:
    await _with_expired(world, 300)
    swept = await asyncio.gather(*(world.store().call("sweep_ttl") for _ in range(3)))
    assert sum(swept) == 300


async def a_get_refreshes_what_it_asked_to_refresh(world: OwnWorld) -> None:
    store = world.store()
    await store.batch([PutOp(NS, key, {}, ttl=60) for key in ("a", "b")] + [PutOp(NS, "c", {})])
    before = [await world.row(NS, key) for key in ("a", "b", "c")]
    await store.batch([GetOp(NS, "a", True), GetOp(NS, "b", False), GetOp(NS, "c", True)])
    after = [await world.row(NS, key) for key in ("a", "b", "c")]
    assert after[1:] == before[1:]
    assert after[0].expires_at is not None
    assert before[0].expires_at is not None
    assert after[0].expires_at > before[0].expires_at
    assert after[0].updated_at == before[0].updated_at


async def a_read_only_batch_of_items_without_a_ttl_writes_nothing(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "a", {})
    before = await world.row(NS, "a")
    await store.get(NS, "a", refresh_ttl=True)
    await store.search(NS, refresh_ttl=True)
    assert await world.row(NS, "a") == before
