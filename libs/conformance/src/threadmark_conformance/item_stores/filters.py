"""Filters: equal values, the operators, nested values. All of it follows from LangGraph's description of `SearchOp`."""

from contextlib import suppress
from typing import Any

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

NS = ("docs",)


async def _over(world: StoreWorld, *values: Any, key: str = "v") -> Asked:
    """Return a store in which the item "0" has the first value, and so on."""
    store = await world.store()
    for number, value in enumerate(values):
        await store.put(NS, str(number), {key: value, "other": "x"})
    return store


async def _found(store: Asked, condition: dict[str, Any]) -> str:
    """Return the keys that a filter finds, in order, as one text."""
    return "".join(sorted(await store.keys(NS, filter=condition)))


async def an_empty_filter_finds_everything(world: StoreWorld) -> None:
    store = await _over(world, 1, 2)
    assert await _found(store, {}) == "01"


async def equal_text_is_found(world: StoreWorld) -> None:
    store = await _over(world, "red", "Red", "red ", "", "rouge", "é", "1")
    for number, text in enumerate(("red", "Red", "red ", "", "rouge", "é", "1")):
        assert await _found(store, {"v": text}) == str(number)
        assert await _found(store, {"v": {"$eq": text}}) == str(number)
    assert await _found(store, {"v": "e\u0301"}) == ""


async def equal_numbers_are_found(world: StoreWorld) -> None:
    store = await _over(world, 0, 1, -1, 1.5, 10, 1e6)
    for number, value in enumerate((0, 1, -1, 1.5, 10, 1e6)):
        assert await _found(store, {"v": value}) == str(number)
        assert await _found(store, {"v": {"$eq": value}}) == str(number)
    assert await _found(store, {"v": 2}) == ""


async def equal_booleans_are_found(world: StoreWorld) -> None:
    store = await _over(world, True, False, True)
    assert await _found(store, {"v": True}) == "02"
    assert await _found(store, {"v": False}) == "1"
    assert await _found(store, {"v": {"$eq": True}}) == "02"
    assert await _found(store, {"v": {"$ne": True}}) == "1"


async def a_key_with_dots_is_one_key(world: StoreWorld) -> None:
    store = await world.store()
    values: list[dict[str, Any]] = [{"a.b": 1}, {"a": {"b": 1}}, {"a.b": 2, "a": {"b": 1}}]
    for number, value in enumerate(values):
        await store.put(NS, str(number), value)
    assert await _found(store, {"a.b": 1}) == "0"
    assert await _found(store, {"a.b": {"$eq": 2}}) == "2"
    assert await _found(store, {"a": {"b": 1}}) == "12"


async def none_is_found(world: StoreWorld) -> None:
    store = await _over(world, None, 0, "", False, "None", "null")
    assert await _found(store, {"v": None}) == "0"
    assert await _found(store, {"v": {"$eq": None}}) == "0"


async def unequal_values_are_found(world: StoreWorld) -> None:
    store = await _over(world, "red", "blue", "green")
    assert await _found(store, {"v": {"$ne": "red"}}) == "12"
    assert await _found(store, {"v": {"$ne": "grey"}}) == "012"


async def unequal_numbers_are_found(world: StoreWorld) -> None:
    store = await _over(world, 1, 2, 1.5)
    assert await _found(store, {"v": {"$ne": 1}}) == "12"


async def greater_numbers_are_found(world: StoreWorld) -> None:
    store = await _over(world, 9, 10, -1, 9.5, 100)
    assert await _found(store, {"v": {"$gt": 9}}) == "134"
    assert await _found(store, {"v": {"$gte": 9}}) == "0134"
    assert await _found(store, {"v": {"$gt": 9.4}}) == "134"
    assert await _found(store, {"v": {"$gte": -1}}) == "01234"


async def less_numbers_are_found(world: StoreWorld) -> None:
    store = await _over(world, 9, 10, -1, 9.5, 100)
    assert await _found(store, {"v": {"$lt": 10}}) == "023"
    assert await _found(store, {"v": {"$lte": 10}}) == "0123"
    assert await _found(store, {"v": {"$lt": -0.5}}) == "2"
    assert await _found(store, {"v": {"$lt": -1}}) == ""


async def several_operators_must_all_hold(world: StoreWorld) -> None:
    store = await _over(world, 1, 2, 3, 4)
    assert await _found(store, {"v": {"$gt": 1, "$lt": 4}}) == "12"
    assert await _found(store, {"v": {"$gte": 1, "$lte": 3, "$ne": 2}}) == "02"


async def several_keys_must_all_hold(world: StoreWorld) -> None:
    store = await world.store()
    for key, color, size in (("a", "red", 1), ("b", "red", 2), ("c", "blue", 2)):
        await store.put(NS, key, {"color": color, "size": size})
    assert await _found(store, {"color": "red", "size": 2}) == "b"
    assert await _found(store, {"color": "red", "size": {"$gte": 1}}) == "ab"
    assert await _found(store, {"color": {"$ne": "red"}, "size": {"$lt": 2}}) == ""


async def infinite_and_huge_bounds_are_numbers(world: StoreWorld) -> None:
    store = await _over(world, 10, 20, -30)
    assert await _found(store, {"v": {"$lt": float("inf")}}) == "012"
    assert await _found(store, {"v": {"$gt": float("-inf")}}) == "012"
    assert await _found(store, {"v": {"$lt": 10**100}}) == "012"
    assert await _found(store, {"v": {"$gt": 10**100}}) == ""
    assert await _found(store, {"v": {"$eq": float("nan")}}) == ""


async def nested_values_are_found(world: StoreWorld) -> None:
    store = await _over(world, {"name": "ann", "age": 7}, {"name": "bob"}, {"deep": {"name": "ann"}}, "ann", None)
    assert await _found(store, {"v": {"name": "ann"}}) == "0"
    assert await _found(store, {"v": {"deep": {"name": "ann"}}}) == "2"
    assert await _found(store, {"v": {"name": "ann", "age": 7}}) == "0"
    assert await _found(store, {"v": {"name": "ann", "age": 8}}) == ""


async def equal_lists_are_found(world: StoreWorld) -> None:
    store = await _over(world, ["draft"], ["draft", "old"], ["old"], [], "draft")
    assert await _found(store, {"v": ["draft"]}) == "0"
    assert await _found(store, {"v": ["old"]}) == "2"


async def any_key_can_be_asked_for(world: StoreWorld) -> None:
    names = "access-level", "123abc", "a_b", "UPPER", "a1"
    store = await world.store()
    for name in names:
        await store.put(NS, name, {name: "yes", "other": "no"})
    for name in names:
        assert await store.keys(NS, filter={name: "yes"}) == [name]


async def a_key_that_is_no_word_is_asked_for_or_refused(world: StoreWorld) -> None:
    store = await world.store()
    names = "a b", "it's", 'say "x"', "é", "日本", "a;b", "a)b", "$", "back\\slash", "--", "%", "?"
    for name in names:
        await store.put(NS, name, {name: "yes", "other": "no"})
    for name in names:
        with suppress(ValueError):
            assert await store.keys(NS, filter={name: "yes"}) == [name]


async def a_filter_is_no_statement(world: StoreWorld) -> None:
    store = await world.store()
    for key, title in (("0", "Public"), ("1", "O'Brien's"), ("2", "'; --"), ("3", '") OR 1=1 --')):
        await store.put(NS, key, {"v": title, "access": key})
    for text in ("Public' OR '1'='1", "Public'; --", "Public' union select * from store --", "''''", "' OR 'א'='א"):
        assert await _found(store, {"v": text}) == ""
        assert await _found(store, {"v": {"$eq": text}}) == ""
    assert await _found(store, {"v": "O'Brien's"}) == "1"
    assert await _found(store, {"v": "'; --"}) == "2"
    assert await _found(store, {"v": '") OR 1=1 --'}) == "3"
    for name in ("v') = 'Public' OR '1'='1' OR json_extract(value, '$.v", "v' OR 1=1 --", 'v") OR (1=1'):
        with suppress(ValueError):
            assert await _found(store, {name: "no"}) == ""


async def an_unknown_operator_is_an_error(world: StoreWorld) -> None:
    store = await _over(world, 1)
    refused = False
    try:
        await _found(store, {"v": {"$near": 1}})
    except ValueError:
        refused = True
    assert refused


async def a_filter_holds_below_the_namespace_only(world: StoreWorld) -> None:
    store = await world.store()
    for namespace in (("a",), ("a", "b"), ("ab",), ("c",)):
        await store.put(namespace, "k", {"v": 1})
        await store.put(namespace, "other", {"v": 2})
    found = await store.search(("a",), filter={"v": 1})
    assert {(item.namespace, item.key) for item in found} == {(("a",), "k"), (("a", "b"), "k")}


async def a_filter_sees_the_newest_value(world: StoreWorld) -> None:
    store = await _over(world, "old", "old")
    await store.put(NS, "0", {"v": "new"})
    assert await _found(store, {"v": "old"}) == "1"
    assert await _found(store, {"v": "new"}) == "0"
    await store.delete(NS, "1")
    assert await _found(store, {"v": "old"}) == ""
