"""Values come back with their types, also those that JSON has not, and share no object with the caller's."""

import datetime as dt
import math
import threading
import uuid
from collections import OrderedDict
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from langgraph.store.base import GetOp, Item, PutOp

from threadmark.errors import SerializationError
from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_conformance.odd_values import Number, Word, long_text

NS = ("users", "ann")

BEYOND_JSON: dict[str, Any] = {
    "NUL": "a\x00b",
    "surrogate": "\ud800",
    "2**63": 2**63,
    "-2**63 - 1": -(2**63) - 1,
    "10**400": 10**400,
    "-0.0": -0.0,
    "1e300": 1e300,
    "least float": 5e-324,
    "greatest float": 1.7976931348623157e308,
    "1e22": 1e22,
    "inf": float("inf"),
    "-inf": float("-inf"),
    "bytes": b"\x00\xff",
    "tuple": (1, (2, [3])),
    "set": {1, "a"},
    "frozenset": frozenset({1}),
    "OrderedDict": OrderedDict(b=1, a=2),
    "keys that are no text": {1: "a", None: "b", (1, 2): "c"},
    "datetime": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "naive datetime": dt.datetime(2026, 1, 2),  # noqa: DTZ001 - that is the point
    "date": dt.date(2026, 1, 2),
    "timedelta": dt.timedelta(days=-1, microseconds=1),
    "Decimal": Decimal("1.10"),
    "UUID": uuid.UUID(int=7),
    "complex": 1 + 2j,
    "path": PurePosixPath("/a"),
    "StrEnum": Word.A,
    "IntEnum": Number.ONE,
    "NUL in a key": {"a\x00": 1},
    "surrogate in a key": {"\udfff": 1},
}


def _exact(value: Any) -> Any:
    """Return the value with its types at every depth; floats as they print, which tells the sign of 0."""
    if isinstance(value, dict):
        return type(value), [(_exact(key), _exact(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_exact(item) for item in value]
    return type(value), repr(value)


async def values_beyond_json_keep_their_types(world: OwnWorld) -> None:
    store, other = world.store(), world.store()
    for name, value in BEYOND_JSON.items():
        await store.put(NS, name, {"plain": [1, "x"], "value": value})
    for name, value in BEYOND_JSON.items():
        expected = {"plain": [1, "x"], "value": value}
        assert _exact(await other.value(NS, name)) == _exact(expected), name
    for item in await other.search(NS, limit=100):
        assert _exact(item.value["value"]) == _exact(BEYOND_JSON[item.key]), item.key


async def not_a_number_comes_back(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "a", {"value": float("nan")})
    found = await world.store().value(NS, "a")
    assert found["value"] != found["value"]


async def the_keys_of_a_value_keep_their_order(world: OwnWorld) -> None:
    await world.store().put(NS, "a", {"b": 1, "a": {"z": 1, "y": 2, "aa": 3}})
    found = await world.store().value(NS, "a")
    assert (list(found), list(found["a"])) == (["b", "a"], ["z", "y", "aa"])


async def any_mapping_is_a_value(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "proxy", MappingProxyType({"n": 1}))
    await store.put(NS, "ordered", OrderedDict(n=1))
    assert await store.value(NS, "proxy") == await store.value(NS, "ordered") == {"n": 1}


async def only_a_mapping_is_a_value(world: OwnWorld) -> None:
    for store in (world.store(), world.with_keyring(KEYRING)):
        values: tuple[Any, ...] = ([1], [("a", 1)], "text", b"bytes", 1, True, object())
        for value in values:
            with pytest.raises(TypeError, match="must be a dictionary, not "):
                await store.put(NS, "a", value)
            with pytest.raises(TypeError, match="must be a dictionary, not "):
                await store.batch([PutOp(NS, "whole", {"n": 1}), PutOp(NS, "a", value)])
        assert await store.search() == []


async def a_value_that_cannot_come_back_is_refused(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "a", {"n": 1})
    with pytest.raises(SerializationError):
        await store.put(NS, "a", {"lock": threading.Lock()})
    assert await store.value(NS, "a") == {"n": 1}


async def a_ttl_that_has_no_end_is_refused(world: OwnWorld) -> None:
    store = world.store()
    for ttl in (math.nan, math.inf, -math.inf, 1e30, 10**40):
        with pytest.raises(ValueError, match="a ttl has at most 1,000,000,000 minutes"):
            await store.put(NS, "a", {"n": 1}, ttl=ttl)
    with pytest.raises(TypeError, match="a ttl must be a number of minutes, not '5'"):
        await store.put(NS, "a", {"n": 1}, ttl="5")
    assert await store.keys() == []
    await store.put(NS, "a", {"n": 1}, ttl=10**9)
    assert await store.value(NS, "a") == {"n": 1}


async def keys_may_be_any_text(world: OwnWorld) -> None:
    store, other = world.store(), world.store()
    keys = "", "\x00", "a\x00", "a\x00b", "\ud800", "a\udfff", "\U0010ffff", "\uffff", long_text(2000), "%00", "\\x00"
    for number, key in enumerate(keys):
        await store.put(NS, key, {"n": number})
    assert [await other.value(NS, key) for key in keys] == [{"n": number} for number in range(len(keys))]
    assert sorted(await other.keys(NS)) == sorted(keys)
    for key in keys:
        await other.delete(NS, key)
    assert await store.keys() == []


async def labels_may_be_any_text_without_dots_and_nul(world: OwnWorld) -> None:
    store = world.store()
    labels = "\ud800", "\udfff", "\uffff", "\U0010ffff", "%2E", "\u2024", "-", "/", "0", long_text(600)
    for label in labels:
        await store.put((label,), "k", {"label": label})
        await store.put((label, "below"), "k", {"label": label})
    for label in labels:
        found = await world.store().search((label,))
        assert [item.value for item in found] == [{"label": label}] * 2
        assert {item.namespace for item in found} == {(label,), (label, "below")}
    assert set(await store.namespaces(suffix=("below",))) == {(label, "below") for label in labels}


async def namespaces_come_in_the_order_of_their_labels(world: OwnWorld) -> None:
    store = world.store()
    spaces = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "é"), ("a!",), ("a-b",), ("a\U0001f600",), ("b",), ("é",)]
    for namespace in reversed(spaces):
        await store.put(namespace, "k", {})
    assert await store.namespaces() == sorted(spaces)


async def changing_a_value_changes_no_item(world: OwnWorld) -> None:
    store = world.store()
    value: dict[str, Any] = {"list": [1], "deep": {"a": {"b": 1}}}
    await store.put(NS, "a", value)
    for spoilt in (value, await store.value(NS, "a"), (await store.search(NS))[0].value):
        spoilt["list"].append("spoilt")
        spoilt["deep"]["a"]["b"] = "spoilt"
        spoilt["new"] = 1
        assert await store.value(NS, "a") == {"list": [1], "deep": {"a": {"b": 1}}}
    one, other = await store.batch([GetOp(NS, "a"), GetOp(NS, "a")])
    assert isinstance(one, Item)
    assert isinstance(other, Item)
    one.value["list"].append("spoilt")
    assert other.value["list"] == [1]


async def times_are_in_utc_and_of_microseconds(world: OwnWorld) -> None:
    store = world.store()
    before = dt.datetime.now(dt.UTC)
    await store.put(NS, "a", {})
    found = await store.get(NS, "a")
    after = dt.datetime.now(dt.UTC)
    assert found is not None
    assert before - dt.timedelta(seconds=1) <= found.created_at <= after + dt.timedelta(seconds=1)
    assert found.created_at.utcoffset() == found.updated_at.utcoffset() == dt.timedelta(0)


async def a_namespace_may_be_a_list(world: OwnWorld) -> None:
    store = world.store()
    await store.put(["test", "docs"], "a", {"n": 1})
    assert await store.value(["test", "docs"], "a") == await store.value(("test", "docs"), "a") == {"n": 1}
    assert await store.keys(["test"]) == await store.keys(["test", "docs"]) == ["a"]
    assert await store.namespaces(prefix=["test"]) == await store.namespaces(suffix=["docs"]) == [("test", "docs")]
    await store.delete(["test", "docs"], "a")
    assert await store.keys() == []
