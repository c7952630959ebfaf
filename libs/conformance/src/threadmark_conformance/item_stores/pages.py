"""Limits and offsets: the pages of a search make up the whole, in one order."""

from typing import Any

from langgraph.store.base import PutOp

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

NS = ("pages",)
COUNT = 25


async def _over(world: StoreWorld) -> Asked:
    store = await world.store()
    await store.batch([PutOp((*NS, str(n % 3)), f"k{n:02}", {"n": n, "even": n % 2 == 0}) for n in range(COUNT)])
    return store


async def _pages(store: Asked, size: int, **options: Any) -> list[list[str]]:
    pages = [await store.keys(NS, limit=size, offset=size * number, **options) for number in range(COUNT // size + 2)]
    assert all(len(page) <= size for page in pages)
    return pages


async def pages_make_up_the_whole(world: StoreWorld) -> None:
    store = await _over(world)
    whole = await store.keys(NS)
    assert sorted(whole) == [f"k{n:02}" for n in range(COUNT)]
    for size in (1, 7, 24, 25, 26):
        assert [key for page in await _pages(store, size) for key in page] == whole


async def pages_of_a_filter_make_up_its_whole(world: StoreWorld) -> None:
    store = await _over(world)
    whole = await store.keys(NS, filter={"even": True})
    assert sorted(whole) == [f"k{n:02}" for n in range(0, COUNT, 2)]
    for size in (1, 5, 13):
        assert [key for page in await _pages(store, size, filter={"even": True}) for key in page] == whole


async def a_filter_finds_all_of_many_items_of_one_moment(world: StoreWorld) -> None:
    store = await world.store()
    await store.batch([PutOp(NS, f"k{n:03}", {"of": [n % 50]}) for n in range(150)])
    for group in (0, 7, 49):
        expected = [f"k{n:03}" for n in (group, group + 50, group + 100)]
        assert sorted(await store.keys(NS, filter={"of": [group]})) == expected


async def a_page_is_full_while_there_are_items(world: StoreWorld) -> None:
    store = await _over(world)
    assert [len(page) for page in await _pages(store, 10)] == [10, 10, 5, 0]
    assert [len(page) for page in await _pages(store, 10, filter={"even": True})] == [10, 3, 0, 0]


async def the_default_limit_of_a_search_is_ten(world: StoreWorld) -> None:
    store = await _over(world)
    assert len(await store.search(NS)) == 10
    assert len(await store.search(NS, offset=20)) == 5


async def a_limit_of_0_finds_nothing(world: StoreWorld) -> None:
    store = await _over(world)
    assert await store.search(NS, limit=0) == []
    assert await store.search(NS, limit=0, filter={"even": True}) == []
    assert await store.namespaces(limit=0) == []


async def a_large_limit_is_no_mistake(world: StoreWorld) -> None:
    store = await _over(world)
    assert len(await store.search(NS, limit=2**31)) == COUNT
    assert await store.search(NS, limit=2**31, offset=2**31) == []


async def equal_searches_have_equal_answers(world: StoreWorld) -> None:
    store = await _over(world)
    first = await store.search(NS, limit=100)
    assert await store.search(NS, limit=100) == first
    for item in first[:5]:
        assert await store.get(item.namespace, item.key) is not None
    assert await store.search(NS, limit=100) == first
