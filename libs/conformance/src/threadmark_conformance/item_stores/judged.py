"""Filters beyond LangGraph's description: missing keys, types that do not compare, operators at any depth."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from langgraph.store.base import PutOp

from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_conformance.item_stores.worlds import Asked

NS = ("judged",)

VALUES: dict[str, dict[str, Any]] = {
    "missing": {"other": 1},
    "none": {"v": None},
    "true": {"v": True},
    "one": {"v": 1},
    "float": {"v": 1.0},
    "text": {"v": "1"},
    "word": {"v": "b"},
    "list": {"v": [1, 2]},
    "dict": {"v": {"a": 1, "b": "x"}},
    "deep": {"v": {"a": {"b": [{"c": 1}]}}},
    "huge": {"v": 2**53 + 1},
    "beyond": {"v": 10**30},
    "fraction": {"v": 0.1 + 0.2},
    "bytes": {"v": b"b"},
    "tuple": {"v": (1, 2)},
    "time": {"v": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
    "decimal": {"v": Decimal("1.5")},
}
NUMBERS = {"one", "float", "huge", "beyond", "fraction"}

FOUND: list[tuple[Any, set[str]]] = [
    (None, {"missing", "none"}),
    ({"$eq": None}, {"missing", "none"}),
    ({"$ne": None}, set(VALUES) - {"missing", "none"}),
    (True, {"true"}),
    (False, set()),
    (1, {"one", "float"}),
    (1.0, {"one", "float"}),
    ({"$ne": 1}, set(VALUES) - {"one", "float"}),
    ("1", {"text"}),
    ({"$gt": 0}, NUMBERS),
    ({"$gte": 1}, NUMBERS - {"fraction"}),
    ({"$lt": 1}, {"fraction"}),
    ({"$gt": "1"}, {"word"}),
    ({"$gte": "1"}, {"text", "word"}),
    ({"$lt": "b"}, {"text"}),
    ({"$lte": "b"}, {"text", "word"}),
    ({"$gt": None}, set()),
    ({"$gt": True}, set()),
    ({"$gt": [1]}, set()),
    (2**53 + 1, {"huge"}),
    (2**53, set()),
    (10**30, {"beyond"}),
    ({"$gt": 2**53}, {"huge", "beyond"}),
    ({"$gt": 2**53 + 1}, {"beyond"}),
    (0.3, set()),
    (0.1 + 0.2, {"fraction"}),
    ({"$gt": 0.3, "$lt": 1}, {"fraction"}),
    ([1, 2], {"list", "tuple"}),
    ([1], set()),
    ([1, {"$gte": 2}], {"list", "tuple"}),
    ({"a": 1}, {"dict"}),
    ({"a": {"$gte": 1}}, {"dict"}),
    ({"a": {"$gt": 1}}, set()),
    ({"a": {"$ne": 5}}, {"dict", "deep"}),
    ({"a": None}, set()),
    ({"c": None}, {"dict", "deep"}),
    ({"a": {"b": [{"c": 1}]}}, {"deep"}),
    ({"a": {"b": [{"c": {"$lt": 2}}]}}, {"deep"}),
    ({"$eq": {"a": 1, "b": "x"}}, {"dict"}),
    ({"$eq": {"a": 1}}, set()),
    ({"$eq": {"a": True, "b": "x"}}, set()),
    ({"$ne": {"a": 1, "b": "x"}}, set(VALUES) - {"dict"}),
    (b"b", {"bytes"}),
    (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), {"time"}),
    (Decimal("1.5"), {"decimal"}),
    (float("inf"), set()),
]
"""A condition on "v", and the items that meet it."""


async def _holds(store: Asked) -> None:
    for condition, expected in FOUND:
        assert set(await store.keys(NS, filter={"v": condition})) == expected, condition


async def _put_all(store: Asked) -> None:
    await store.batch([PutOp(NS, key, value) for key, value in VALUES.items()])


async def every_condition_finds_what_meets_it(world: OwnWorld) -> None:
    await _put_all(world.store())
    await _holds(world.store())


async def a_sealed_value_meets_the_same_conditions(world: OwnWorld) -> None:
    await _put_all(world.with_keyring(KEYRING))
    await _holds(world.with_keyring(KEYRING))


async def conditions_must_all_hold(world: OwnWorld) -> None:
    store = world.store()
    await _put_all(store)
    assert await store.keys(NS, filter={"v": 1, "other": 1}) == []
    assert await store.keys(NS, filter={"v": None, "other": 1}) == ["missing"]
    assert await store.keys(NS, filter={"v": {"a": 1, "b": {"$gt": "w", "$lt": "y"}}}) == ["dict"]


async def any_key_of_a_value_can_be_asked_for(world: OwnWorld) -> None:
    store = world.store()
    names = (
        *("a.b", "a b", "", "'", '"', "\\", "é", "日本", "[0]", "a[0]", "0", "%", "a\x00", "\ud800", "it's", "--"),
        *("$.a", "$eq", "$ne", "$"),
    )
    for name in names:
        await store.put(NS, name, {name: {name: 1, "deep": 1}, "a": {"b": 2}})
    for name in names:
        assert await store.keys(NS, filter={name: {"deep": {"$gt": 0, "$lte": 1.0}}}) == [name]
        if not name.startswith("$"):
            assert await store.keys(NS, filter={name: {name: 1}}) == [name]
    assert len(await store.keys(NS, filter={"a": {"b": 2}})) == len(names)


async def text_is_compared_by_code_points(world: OwnWorld) -> None:
    store = world.store()
    words = ["", "A", "B", "a", "b", "z", "é", "日", "\uffff", "\U0001f600"]
    for word in words:
        await store.put(NS, word, {"v": word})
    for place, word in enumerate(words):
        assert sorted(await store.keys(NS, filter={"v": {"$gt": word}})) == words[place + 1 :]
        assert sorted(await store.keys(NS, filter={"v": {"$lte": word}})) == words[: place + 1]


async def a_filter_that_means_nothing_is_refused(world: OwnWorld) -> None:
    store = world.store()
    for condition, text in (
        ({"v": {"$near": 1}}, "unknown operator '\\$near': use \\$eq"),
        ({"v": {"deep": {"$in": [1]}}}, "unknown operator"),
        ({"v": [1, {"$in": [1]}]}, "unknown operator"),
        ({"v": {"$eq": [{"$in": [1]}]}}, "unknown operator"),
        ({"v": {"$gt": 1, "also": 2}}, "mixes operators and keys"),
    ):
        with pytest.raises(ValueError, match=text):
            await store.search(NS, filter=condition)


async def a_rare_value_is_found_among_many(world: OwnWorld) -> None:
    store, count = world.store(), 2500
    await store.batch([PutOp(NS, f"k{n:04}", {"n": n, "deep": {"rare": n % 1000 == 7}}) for n in range(count)])
    for condition in ({"deep": {"rare": True}}, {"deep": {"$ne": {"rare": False}}}):
        assert await store.keys(NS, filter=condition) == ["k2007", "k1007", "k0007"]
        assert await store.keys(NS, filter=condition, limit=1, offset=1) == ["k1007"]
    assert await store.keys(NS, filter={"n": {"$lt": 2}}) == ["k0001", "k0000"]
    assert len(await store.keys(NS, filter={"n": {"$gte": 0}}, limit=count, offset=100)) == count - 100
