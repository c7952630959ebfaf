"""Items that expire, in a store that omits them: `ttl` in minutes, refreshed by reads or not, and defaults."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.store.base import TTLConfig

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

NS = ("passing",)
SHORT = 0.004
"""Minutes."""
PATIENCE = 30
"""Seconds."""
OMITS: TTLConfig = {"omit_expired": True}


async def _is_gone(store: Asked, key: str = "a") -> None:
    """Wait until an item has expired. No look at it refreshes it."""
    async with asyncio.timeout(PATIENCE):
        while await store.get(NS, key, refresh_ttl=False) is not None:  # noqa: ASYNC110 - a clock raises no event
            await asyncio.sleep(0.02)


async def _lives_on(store: Asked, read: Callable[[], Awaitable[Any]]) -> None:
    """Fail unless an item lives twice as long as its `ttl`, while `read` finds it again and again.

    A machine that is too slow to read it in time tries once more.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            await store.put(NS, "a", {"n": 1}, ttl=SHORT)
            began = last = time.monotonic()
            longest = 0.0
            while last - began < 2 * 60 * SHORT:
                found = await read()
                longest = max(longest, time.monotonic() - last)
                last = time.monotonic()
                if not found:
                    break
                await asyncio.sleep(0.05)
            if found:
                return
            assert longest > 60 * SHORT / 2, "it was read in time, and yet it has expired"


async def _expires_in_spite_of(store: Asked, read: Callable[[], Awaitable[Any]]) -> None:
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    async with asyncio.timeout(PATIENCE):
        while await read():  # noqa: ASYNC110 - a clock raises no event
            await asyncio.sleep(0.02)


async def an_expired_item_is_omitted_everywhere(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    await store.put((*NS, "below"), "b", {"n": 1}, ttl=SHORT)
    await store.put(("lasting",), "c", {"n": 1})
    await store.put(("lasting",), "d", {"n": 1}, ttl=60)
    await _is_gone(store)
    await asyncio.sleep(0.05)
    assert sorted(await store.keys()) == ["c", "d"]
    assert sorted(await store.keys(filter={"n": 1})) == ["c", "d"]
    assert await store.search(NS) == []
    assert await store.namespaces() == [("lasting",)]


async def an_expired_item_takes_no_place_on_a_page(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    for key in ("b", "a", "c"):
        await store.put(NS, key, {"n": 1}, **({"ttl": SHORT} if key == "a" else {}))
    await _is_gone(store)
    assert sorted(await store.keys(NS, limit=2)) == ["b", "c"]
    assert sorted(await store.keys(NS, limit=2, filter={"n": 1})) == ["b", "c"]
    assert await store.keys(NS, limit=2, offset=2) == []


async def a_get_refreshes_by_default(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await _lives_on(store, lambda: store.get(NS, "a"))


async def a_search_refreshes_by_default(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await _lives_on(store, lambda: store.search(NS))


async def a_call_may_refresh_against_the_configuration(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "refresh_on_read": False})
    await _lives_on(store, lambda: store.get(NS, "a", refresh_ttl=True))
    await _lives_on(store, lambda: store.search(NS, filter={"n": 1}, refresh_ttl=True))


async def the_configuration_may_refresh(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "refresh_on_read": True})
    await _lives_on(store, lambda: store.get(NS, "a"))


async def a_configuration_may_refuse_to_refresh(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "refresh_on_read": False})
    await _expires_in_spite_of(store, lambda: store.get(NS, "a"))
    await _expires_in_spite_of(store, lambda: store.search(NS))


async def a_call_may_refuse_to_refresh(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "refresh_on_read": True})
    await _expires_in_spite_of(store, lambda: store.get(NS, "a", refresh_ttl=False))
    await _expires_in_spite_of(store, lambda: store.search(NS, refresh_ttl=False))


async def a_read_does_not_bring_an_expired_item_back(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    await _is_gone(store)
    for _ in range(2):
        assert await store.get(NS, "a", refresh_ttl=True) is None
        assert await store.search(NS, refresh_ttl=True) == []


async def an_expired_item_can_be_put_again(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    await _is_gone(store)
    await store.put(NS, "a", {"n": 2}, ttl=60)
    assert await store.value(NS, "a") == {"n": 2}
    assert await store.keys(NS) == ["a"]


async def a_put_without_a_ttl_ends_the_expiry(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    for key in ("a", "b"):
        await store.put(NS, key, {"n": 1}, ttl=SHORT)
    await store.put(NS, "b", {"n": 2}, ttl=None)
    await _is_gone(store)
    await asyncio.sleep(60 * SHORT)
    assert await store.value(NS, "b") == {"n": 2}


async def the_default_ttl_holds_for_puts_without_one(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "default_ttl": SHORT})
    await store.put(NS, "a", {"n": 1})
    await store.put(NS, "longer", {"n": 1}, ttl=60)
    await store.put(NS, "for good", {"n": 1}, ttl=None)
    await _is_gone(store)
    assert sorted(await store.keys(NS)) == ["for good", "longer"]


async def an_item_without_a_ttl_stays(world: StoreWorld) -> None:
    store = await world.store(OMITS)
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    await store.put(NS, "b", {"n": 1})
    await _is_gone(store)
    await asyncio.sleep(60 * SHORT)
    assert await store.keys(NS) == ["b"]


async def a_put_over_an_expired_item_begins_it_again(world: StoreWorld) -> None:
    store = await world.store({**OMITS, "refresh_on_read": False})
    await store.put(NS, "a", {"n": 1}, ttl=SHORT)
    before = await store.get(NS, "a")
    await _is_gone(store)
    await store.put(NS, "a", {"n": 2})
    after = await store.get(NS, "a")
    assert before is not None
    assert after is not None
    assert before.updated_at < after.created_at == after.updated_at
