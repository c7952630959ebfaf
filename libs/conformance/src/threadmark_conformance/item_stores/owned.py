"""An owner's view of a saver: a store over it reaches no other owner's items, by any operation."""

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from threadmark_conformance.item_stores.own_worlds import OwnWorld

NS, SECRET = ("shared",), {"secret": "of ada"}


async def an_owner_sees_own_items_only(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", SECRET)
    await ada.put(("adas",), "b", SECRET)
    await eve.put(NS, "e", {"n": 1})
    assert await eve.get(NS, "a") is None
    assert await eve.keys() == await eve.keys(NS) == ["e"]
    assert await eve.keys(NS, filter=SECRET) == []
    assert await eve.namespaces() == [NS]
    answers = await eve.batch([GetOp(NS, "a"), SearchOp(("adas",)), ListNamespacesOp(), GetOp(NS, "e")])
    assert answers[:3] == [None, [], [NS]]
    assert sorted(await ada.keys()) == ["a", "b"]


async def an_owner_removes_own_items_only(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", SECRET)
    await eve.delete(NS, "a")
    await eve.batch([PutOp(NS, "a", None)])
    assert await ada.value(NS, "a") == SECRET
    await ada.delete(NS, "a")
    assert await ada.get(NS, "a") is None


async def an_owner_replaces_own_items_only(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", SECRET)
    with pytest.raises(PermissionError, match="'a' of namespace 'shared' belongs to another owner than 'eve'"):
        await eve.put(NS, "a", {"n": 1})
    with pytest.raises(PermissionError):
        await eve.batch([PutOp(NS, "new", {"n": 1}), PutOp(NS, "a", {"n": 1}), PutOp(NS, "own", None)])
    assert await ada.value(NS, "a") == SECRET
    assert await eve.keys() == []


async def an_owner_does_not_take_items_of_no_owner(world: OwnWorld) -> None:
    every, eve = world.store(), world.of_owner("eve")
    await every.put(NS, "a", SECRET)
    assert await eve.get(NS, "a") is None
    with pytest.raises(PermissionError):
        await eve.put(NS, "a", {"n": 1})
    await eve.delete(NS, "a")
    assert await every.value(NS, "a") == SECRET


async def a_store_without_an_owner_reaches_all_items(world: OwnWorld) -> None:
    every, ada = world.store(), world.of_owner("ada")
    await ada.put(NS, "a", SECRET)
    await ada.put(NS, "b", SECRET)
    assert sorted(await every.keys()) == ["a", "b"]
    await every.put(NS, "a", {"n": 2})
    await every.delete(NS, "b")
    assert await ada.value(NS, "a") == {"n": 2}, "it still belongs to its owner"
    assert await ada.keys() == ["a"]


async def an_item_that_was_removed_belongs_to_the_next_owner(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", SECRET)
    await ada.delete(NS, "a")
    await eve.put(NS, "a", {"n": 1})
    assert await eve.value(NS, "a") == {"n": 1}
    assert await ada.get(NS, "a") is None


async def a_read_of_another_owner_refreshes_nothing(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", SECRET, ttl=60)
    before = await world.row(NS, "a")
    await eve.get(NS, "a", refresh_ttl=True)
    await eve.search(refresh_ttl=True)
    assert await world.row(NS, "a") == before
    await ada.get(NS, "a", refresh_ttl=True)
    assert (await world.row(NS, "a"))._replace(expires_at=before.expires_at) == before
    assert (await world.row(NS, "a")).expires_at != before.expires_at


async def owners_may_have_odd_names(world: OwnWorld) -> None:
    names = "a", "A", "a ", "é", "\x00", "\ud800", "%", "'"
    for name in names:
        await world.of_owner(name).put((*NS, f"of {names.index(name)}"), "k", {"owner": name})
    for name in names:
        assert [item.value for item in await world.of_owner(name).search()] == [{"owner": name}]
