"""Several stores on one database, at once: each sees at once the puts of the others, and nothing is lost."""

import asyncio

from langgraph.store.base import PutOp

from threadmark_conformance.item_stores.own_worlds import OwnWorld

NS = ("crowd",)


async def another_store_sees_every_change_at_once(world: OwnWorld) -> None:
    one, other = world.store(), world.store()
    assert await other.get(NS, "a") is None
    for number in range(5):
        await one.put(NS, "a", {"n": number})
        assert await other.value(NS, "a") == {"n": number}
        assert [item.value for item in await other.search(NS, filter={"n": number})] == [{"n": number}]
        await other.put((*NS, str(number)), "b", {"n": number})
        assert len(await one.namespaces()) == number + 2
    await one.delete(NS, "a")
    assert await other.get(NS, "a") is None


async def stores_that_begin_at_once_make_the_tables_once(world: OwnWorld) -> None:
    stores = [world.store() for _ in range(8)]
    await asyncio.gather(*(store.put(NS, f"k{number}", {"n": number}) for number, store in enumerate(stores)))
    assert sorted(await world.store().keys()) == [f"k{number}" for number in range(8)]
    for store in stores:
        await store.call("setup")
    assert len(await world.store().keys()) == 8


async def stores_over_one_saver_share_its_items(world: OwnWorld) -> None:
    one, other = world.store(world.saver), world.store(world.saver)
    await one.put(NS, "a", {"n": 1})
    assert await other.value(NS, "a") == {"n": 1}
    assert await world.store().value(NS, "a") == {"n": 1}


async def puts_at_once_lose_nothing(world: OwnWorld) -> None:
    stores = [world.store() for _ in range(4)]

    async def put(number: int) -> None:
        store = stores[number % 4]
        await store.put((*NS, str(number % 3)), f"k{number}", {"n": number})
        await store.batch([PutOp(NS, f"both{number % 2}", {"n": number}), PutOp(NS, f"own{number}", {"n": number})])

    await asyncio.gather(*map(put, range(40)))
    found = {item.key: item.value["n"] for item in await world.store().search(NS, limit=200)}
    assert {f"k{number}": number for number in range(40)}.items() <= found.items()
    assert {f"own{number}": number for number in range(40)}.items() <= found.items()
    assert len(found) == 82


async def puts_and_deletes_of_one_key_at_once_end_in_one_of_them(world: OwnWorld) -> None:
    stores = [world.store() for _ in range(3)]

    async def change(number: int) -> None:
        await (
            stores[number % 3].delete(NS, "a") if number % 4 == 0 else stores[number % 3].put(NS, "a", {"n": number})
        )

    await asyncio.gather(*map(change, range(30)))
    found = await world.store().get(NS, "a")
    assert found is None or found.value["n"] % 4
    assert len({str(await store.get(NS, "a")) for store in stores}) == 1


async def the_item_that_was_put_last_comes_first(world: OwnWorld) -> None:
    store, other = world.store(), world.store()
    for key in ("a", "b", "c"):
        await store.put(NS, key, {})
    assert await other.keys(NS) == ["c", "b", "a"]
    await other.put(NS, "a", {})
    assert await store.keys(NS) == ["a", "c", "b"]
    await store.batch([PutOp(NS, key, {}) for key in ("x", "c", "y")])
    assert await other.keys(NS) == ["y", "c", "x", "a", "b"]


async def items_of_one_moment_have_one_order(world: OwnWorld) -> None:
    store, names = world.store(), [f"k{number:02}" for number in range(40)]
    await store.batch([PutOp((*NS, name[-1]), name, {"odd": int(name[1:]) % 2}) for name in names])
    rows = [await world.row((*NS, name[-1]), name) for name in names]
    await world.set_rows(*(row._replace(updated_at=rows[0].updated_at) for row in rows))
    whole = await store.keys(NS)
    assert sorted(whole) == names
    assert whole == sorted(names, key=lambda name: (name[-1], name))
    for size in (1, 7, 39):
        paged = [await world.store().keys(NS, limit=size, offset=offset) for offset in range(0, 40, size)]
        assert [key for page in paged for key in page] == whole
    odd = [name for name in whole if int(name[1:]) % 2]
    assert await store.keys(NS, filter={"odd": {"$ne": 0}}) == odd
    assert await store.keys(NS, filter={"odd": 1}, limit=5, offset=10) == odd[10:15]


async def a_put_of_one_item_leaves_the_order_of_the_others(world: OwnWorld) -> None:
    store, names = world.store(), [f"k{number:02}" for number in range(30)]
    await store.batch([PutOp(NS, name, {}) for name in names])
    before = await store.keys(NS)
    await store.put(NS, before[20], {"n": 1})
    assert await store.keys(NS) == [before[20], *before[:20], *before[21:]]
    await store.delete(NS, before[10])
    assert await store.keys(NS) == [before[20], *before[:10], *before[11:20], *before[21:]]
