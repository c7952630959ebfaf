"""Items: a put stores one, a get returns it, a delete removes it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import Item

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

NS = ("users", "ann")

ODD_KEYS = (
    *("a.b", "a/b", "a b", " ", "\n", "a\n", "%", "_", "*", "?", "[a]", "'", '"', "\\", "$", "0", "None", "true"),
    *("k", "K", "é", "e\u0301", "ß", "\u0131", "日本", "\U0001f600", "\u200b", "\x7f", "k" * 255),
)

JSON_VALUES: dict[str, Any] = {
    "text": ["", " ", "a\nb\t\\\"'", "é", "e\u0301", "日本", "\U0001f600", "\u2028", "\x7f", "x" * 100_000],
    "integers": [0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "floats": [0.0, 1.0, -1.0, 0.1, -2.5, 1.5e-9, 123456789.125],
    "constants": [None, True, False],
    "containers": [[], {}, [[]], [{}], {"": {"": []}}, [1, [2, [3, {"a": [None]}]]]],
    "odd keys": {"": 1, " ": 2, "a.b": 3, "$gt": 4, "'": 5, '"': 6, "\\": 7, "é": 8, "日本": 9, "0": 10},
}


def typed(value: Any) -> Any:
    """Return the value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value), value


async def an_item_comes_back_as_it_was_put(world: StoreWorld) -> None:
    store = await world.store()
    before = datetime.now(UTC)
    await store.put(NS, "a", {"n": 1, "deep": {"list": [1, "x"]}})
    found = await store.get(NS, "a")
    assert isinstance(found, Item)
    assert (found.namespace, found.key, found.value) == (NS, "a", {"n": 1, "deep": {"list": [1, "x"]}})
    for moment in (found.created_at, found.updated_at):
        assert abs(moment.replace(tzinfo=moment.tzinfo or UTC) - before) < timedelta(minutes=10)


async def a_missing_item_is_none(world: StoreWorld) -> None:
    store = await world.store()
    assert await store.get(NS, "a") is None
    await store.put(NS, "a", {"n": 1})
    for namespace, key in (((*NS, "below"), "a"), (NS[:1], "a"), (("users", "bob"), "a"), (NS, "b"), (NS, "A")):
        assert await store.get(namespace, key) is None


async def a_put_replaces_the_whole_value(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {"old": 1, "both": {"old": 1}})
    await store.put(NS, "a", {"new": 2, "both": {"new": 2}})
    assert await store.value(NS, "a") == {"new": 2, "both": {"new": 2}}
    assert await store.keys(NS) == ["a"]


async def an_empty_value_is_an_item(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {})
    assert await store.value(NS, "a") == {}
    assert await store.keys(NS) == ["a"]


async def _clock_moved(store: Asked) -> None:
    """Wait until the next update has another time: some databases count whole seconds."""
    first = await _update_time(store)
    async with asyncio.timeout(30):
        while await _update_time(store) == first:  # noqa: ASYNC110 - a clock raises no event
            await asyncio.sleep(0.02)


async def _update_time(store: Asked) -> datetime:
    await store.put(("clock",), "now", {})
    found = await store.get(("clock",), "now")
    assert found is not None
    return found.updated_at


async def the_time_of_creation_stays_and_that_of_the_update_grows(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {"n": 1})
    first = await store.get(NS, "a")
    await _clock_moved(store)
    await store.put(NS, "a", {"n": 2})
    second = await store.get(NS, "a")
    (searched,) = await store.search(NS)
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at == searched.created_at
    assert second.updated_at == searched.updated_at > first.updated_at


async def a_put_of_the_same_value_stores_it_again(world: StoreWorld) -> None:
    store = await world.store()
    for _ in range(2):
        await store.put(NS, "a", {"n": 1})
    assert await store.value(NS, "a") == {"n": 1}
    assert await store.keys(NS) == ["a"]


async def a_get_changes_nothing(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {"n": 1})
    first = await store.get(NS, "a")
    await _clock_moved(store)
    await store.search(NS)
    assert await store.get(NS, "a") == first


async def a_delete_removes_one_item(world: StoreWorld) -> None:
    store = await world.store()
    places = [(NS, "a"), (NS, "b"), ((*NS, "below"), "a"), (("users", "bob"), "a")]
    for namespace, key in places:
        await store.put(namespace, key, {"n": 1})
    await store.delete(NS, "a")
    assert [await store.value(*place) for place in places] == [None, *[{"n": 1}] * 3]
    assert sorted(await store.keys(("users",))) == ["a", "a", "b"]
    await store.delete(NS, "a")
    await store.delete(("never", "was"), "a")
    assert len(await store.keys()) == 3


async def a_removed_item_can_be_put_again(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {"n": 1})
    await store.delete(NS, "a")
    assert await store.keys(NS) == []
    await store.put(NS, "a", {"n": 2})
    assert await store.value(NS, "a") == {"n": 2}


async def odd_keys_are_different_keys(world: StoreWorld) -> None:
    store = await world.store()
    for number, key in enumerate(ODD_KEYS):
        await store.put(NS, key, {"n": number})
    for number, key in enumerate(ODD_KEYS):
        found = await store.get(NS, key)
        assert found is not None, repr(key)
        assert (found.key, found.value) == (key, {"n": number})
    assert sorted(await store.keys(NS)) == sorted(ODD_KEYS)
    await store.delete(NS, "k")
    assert sorted([*await store.keys(NS), "k"]) == sorted(ODD_KEYS)


async def _json(world: StoreWorld, kind: str) -> None:
    store = await world.store()
    await store.put(NS, "a", {"value": JSON_VALUES[kind]})
    assert typed(await store.value(NS, "a")) == typed({"value": JSON_VALUES[kind]})
    (searched,) = await store.search(NS)
    assert typed(searched.value) == typed({"value": JSON_VALUES[kind]})


async def text_comes_back_exactly(world: StoreWorld) -> None:
    await _json(world, "text")


async def integers_come_back_exactly(world: StoreWorld) -> None:
    await _json(world, "integers")


async def floats_come_back_exactly(world: StoreWorld) -> None:
    await _json(world, "floats")


async def constants_come_back_exactly(world: StoreWorld) -> None:
    await _json(world, "constants")


async def containers_come_back_exactly(world: StoreWorld) -> None:
    await _json(world, "containers")


async def odd_keys_of_a_value_come_back_exactly(world: StoreWorld) -> None:
    await _json(world, "odd keys")


async def a_deep_value_comes_back_exactly(world: StoreWorld) -> None:
    store = await world.store()
    value: dict[str, Any] = {"n": 1}
    for _ in range(60):
        value = {"a": [value]}
    await store.put(NS, "a", value)
    assert await store.value(NS, "a") == value


async def a_large_value_comes_back_exactly(world: StoreWorld) -> None:
    store = await world.store()
    value = {"list": [{"n": number, "text": f"the text of entry {number}"} for number in range(5000)]}
    await store.put(NS, "a", value)
    assert await store.value(NS, "a") == value


async def a_ttl_is_taken_or_refused(world: StoreWorld) -> None:
    store = await world.store()
    if store.store.supports_ttl:
        await store.put(NS, "a", {"n": 1}, ttl=60)
        assert await store.value(NS, "a") == {"n": 1}
    else:
        with pytest.raises(NotImplementedError):
            await store.put(NS, "a", {"n": 1}, ttl=60)
        assert await store.get(NS, "a") is None


async def index_is_taken_by_a_store_without_an_index(world: StoreWorld) -> None:
    store = await world.store()
    for key, index in (("a", None), ("b", False), ("c", ["text", "deep.text"])):
        await store.put(NS, key, {"text": "t"}, index=index)
    assert sorted(await store.keys(NS)) == ["a", "b", "c"]
    assert [item.score for item in await store.search(NS)] == [None] * 3


async def items_show_themselves_as_dictionaries(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(NS, "a", {"n": 1})
    found = await store.get(NS, "a")
    (searched,) = await store.search(NS)
    assert found is not None
    assert found.dict()["namespace"] == searched.dict()["namespace"] == list(NS)
    assert searched.dict()["score"] is None
    assert datetime.fromisoformat(found.dict()["created_at"]) == found.created_at
