"""The behaviour of a cache of nodes' results, LangGraph's `BaseCache`, as a suite that you run in the tests of yours.

Describe your cache by one context manager (`NodeCaches`). With pytest the whole suite is then

    @pytest.mark.parametrize("api", NODE_CACHE_APIS)
    @pytest.mark.parametrize("case", NODE_CACHE_CASES, ids=lambda case: case.__name__)
    def test_behaviour(case, api, tmp_path):
        run_node_cache_case(case, my_caches, api, tmp_path)
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

FullKey = tuple[tuple[str, ...], str]

NodeCaches = Callable[[Path], AbstractContextManager[Callable[[], Any]]]
"""Takes an empty folder and provides, while the context lasts, a function that opens a cache.

All caches that it opens share one empty database, and nothing in memory, as if in several processes. A cache that lives
in its process is opened once. The suite closes those that have `aclose` or `close`.
"""

NODE_CACHE_APIS: Final = ("asyncio", "blocking")

_ODD_NAMES = (
    "",
    "a",
    "a,b",
    "a:b",
    "a.b",
    "a/b",
    "é",
    "z\x00",
    "%_*?[a]",
    "{b}",
    "\U0001f600",
    "\ud800",
    "long " * 1000,
)
_PATIENCE = 20.0


class NodeCacheWorld:
    """The world of a case: an empty cache with one API, and other caches on its database."""

    def __init__(self, open_cache: Callable[[], Any], api: str) -> None:
        self._open = open_cache
        self._api = api
        self._opened: list[Any] = []
        self.cache = self.another()

    def another(self) -> Any:
        """Open another cache on the same database."""
        opened = self._open()
        self._opened.append(opened)
        return opened if self._api == "asyncio" else _Blocking(opened)

    async def close(self) -> None:
        """Close all caches."""
        for cache in self._opened:
            if hasattr(cache, "aclose"):
                await cache.aclose()
            elif hasattr(cache, "close"):
                cache.close()


class _Blocking:
    """Calls the blocking methods of a cache, each on some thread of a pool."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    async def aget(self, keys: Sequence[FullKey]) -> Any:
        return await asyncio.to_thread(self._cache.get, keys)

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        await asyncio.to_thread(self._cache.set, pairs)

    async def aclear(self, *namespaces: Sequence[tuple[str, ...]] | None) -> None:
        await asyncio.to_thread(self._cache.clear, *namespaces)


def run_node_cache_case(
    case: Callable[[NodeCacheWorld], Awaitable[None]], caches: NodeCaches, api: str, folder: Path
) -> None:
    """Run one case on an empty database, in its own event loop."""

    async def in_world(open_cache: Callable[[], Any]) -> None:
        world = NodeCacheWorld(open_cache, api)
        try:
            await case(world)
        finally:
            await world.close()

    with caches(folder) as open_cache:
        asyncio.run(in_world(open_cache))


def _key(name: str = "key", *labels: str) -> FullKey:
    return labels or ("graph", "node"), name


async def a_value_that_was_set_is_found(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key(): ({"result": 42}, None)})
    assert await world.cache.aget([_key()]) == {_key(): {"result": 42}}


async def only_keys_with_a_value_are_in_the_answer(world: NodeCacheWorld) -> None:
    assert await world.cache.aget([_key()]) == {}
    await world.cache.aset({_key("one"): (1, None), _key("two"): (2, None)})
    found = await world.cache.aget([_key("none"), _key("two"), _key("one"), _key("two")])
    assert found == {_key("one"): 1, _key("two"): 2}


async def a_value_is_replaced(world: NodeCacheWorld) -> None:
    for value in ("first", "second"):
        await world.cache.aset({_key(): (value, None)})
    assert await world.cache.aget([_key()]) == {_key(): "second"}


async def none_is_a_value(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key(): (None, None)})
    assert await world.cache.aget([_key()]) == {_key(): None}


async def the_writes_of_a_task_come_back(world: NodeCacheWorld) -> None:
    writes = deque([("messages", ["a", {"role": "user"}]), ("total", 1.5), ("branch:to:next", None)])
    await world.cache.aset({_key(): (writes, None)})
    found = (await world.cache.aget([_key()]))[_key()]
    assert [(channel, value) for channel, value in found] == list(writes)


async def the_answer_is_a_copy(world: NodeCacheWorld) -> None:
    value = {"items": [1]}
    await world.cache.aset({_key(): (value, None)})
    value["items"].append(2)
    (await world.cache.aget([_key()]))[_key()]["items"].append(3)
    assert await world.cache.aget([_key()]) == {_key(): {"items": [1]}}


async def namespaces_are_apart(world: NodeCacheWorld) -> None:
    pairs = {_key("key", *labels): (index, None) for index, labels in enumerate(_similar())}
    await world.cache.aset(pairs)
    assert await world.cache.aget(list(pairs)) == {key: value for key, (value, _) in pairs.items()}


async def a_namespace_may_be_empty(world: NodeCacheWorld) -> None:
    await world.cache.aset({((), "key"): ("no labels", None), (("",), "key"): ("an empty label", None)})
    found = await world.cache.aget([((), "key"), (("",), "key"), ((), "other")])
    assert found == {((), "key"): "no labels", (("",), "key"): "an empty label"}


async def names_may_be_any_text(world: NodeCacheWorld) -> None:
    pairs = {((label, "node"), name): ([label, name], None) for label in _ODD_NAMES for name in _ODD_NAMES}
    pairs = {key: ([repr(part) for part in parts], ttl) for key, (parts, ttl) in pairs.items()}
    await world.cache.aset(pairs)
    assert await world.cache.aget(list(pairs)) == {key: value for key, (value, _) in pairs.items()}


async def a_value_expires(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key("brief"): (1, 1), _key("long"): (2, 3600), _key("endless"): (3, None)})
    assert await world.cache.aget([_key("long"), _key("endless")]) == {_key("long"): 2, _key("endless"): 3}
    await asyncio.sleep(1.1)
    keys = [_key("brief"), _key("long"), _key("endless")]
    assert await world.cache.aget(keys) == {_key("long"): 2, _key("endless"): 3}


async def a_new_value_has_its_own_ttl(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key("extended"): (1, 1), _key("endless"): (2, 1), _key("brief"): (3, None)})
    await world.cache.aset({_key("extended"): (4, 3600), _key("endless"): (5, None), _key("brief"): (6, 1)})
    await asyncio.sleep(1.1)
    keys = [_key("extended"), _key("endless"), _key("brief")]
    assert await world.cache.aget(keys) == {_key("extended"): 4, _key("endless"): 5}


async def a_ttl_of_nothing_has_ended(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key(): (1, None)})
    await world.cache.aset({_key(): (2, 0)})
    await asyncio.sleep(0.01)
    assert await world.cache.aget([_key()]) == {}


async def nothing_to_do_is_no_error(world: NodeCacheWorld) -> None:
    await world.cache.aset({_key(): (1, None)})
    await world.cache.aset({})
    await world.cache.aclear([])
    assert await world.cache.aget([]) == {}
    assert await world.cache.aget([_key()]) == {_key(): 1}


async def clear_removes_everything(world: NodeCacheWorld) -> None:
    await world.cache.aclear()
    pairs = {_key("key", *labels): (index, None) for index, labels in enumerate(_similar())}
    await world.cache.aset(pairs)
    await world.cache.aclear()
    assert await world.cache.aget(list(pairs)) == {}
    await world.cache.aset(pairs)
    await world.cache.aclear(None)
    assert await world.cache.aget(list(pairs)) == {}


async def clear_removes_exactly_the_namespaces_that_it_names(world: NodeCacheWorld) -> None:
    pairs = {_key(name, *labels): (name, None) for labels in _similar() for name in ("one", "two")}
    await world.cache.aset(pairs)
    await world.cache.aclear([("a",), ("a", "b", "c"), ("unknown",), ("a",)])
    left = {key: value for key, (value, _) in pairs.items() if key[0] not in (("a",), ("a", "b", "c"))}
    assert await world.cache.aget(list(pairs)) == left


async def other_caches_of_the_database_find_it(world: NodeCacheWorld) -> None:
    other = world.another()
    await world.cache.aset({_key("one"): (1, None), _key("two"): (2, None)})
    assert await other.aget([_key("one"), _key("two")]) == {_key("one"): 1, _key("two"): 2}
    await other.aset({_key("one"): ("replaced", None)})
    assert await world.cache.aget([_key("one")]) == {_key("one"): "replaced"}
    await other.aclear([_key()[0]])
    assert await world.cache.aget([_key("one"), _key("two")]) == {}


async def many_values_are_set_and_found_at_once(world: NodeCacheWorld) -> None:
    pairs = {_key(str(index), "graph", str(index % 7)): ([index], None) for index in range(1000)}
    await world.cache.aset(pairs)
    assert await world.cache.aget(list(pairs)) == {key: value for key, (value, _) in pairs.items()}


async def a_value_may_be_large(world: NodeCacheWorld) -> None:
    value = {"bytes": bytes(range(256)) * 8192, "numbers": list(range(10_000))}
    await world.cache.aset({_key(): (value, 3600)})
    assert await world.cache.aget([_key()]) == {_key(): value}


async def callers_at_the_same_time_find_whole_values(world: NodeCacheWorld) -> None:
    caches = [world.cache, world.another()]
    keys = [_key(str(index)) for index in range(10)]

    async def caller(number: int) -> None:
        cache = caches[number % len(caches)]
        for turn in range(10):
            own = _key(f"own {number}")
            value = [number, turn] * 50
            order = keys if number % 2 else keys[::-1]  # so that two take rows in opposite orders
            await cache.aset({**dict.fromkeys(order, (value, None)), own: (value, None)})
            found = await cache.aget([*keys, own])
            assert found[own] == value
            assert all(found[key] == found[key][:2] * 50 for key in keys)
            if turn == number:
                await cache.aclear([("another", "node")])

    async with asyncio.timeout(_PATIENCE):
        await asyncio.gather(*map(caller, range(8)))


def _similar() -> list[tuple[str, ...]]:
    """Return namespaces that a careless separator would mix up."""
    return [
        ("a",),
        ("a", "b"),
        ("a", "b", "c"),
        ("a,b",),
        ("a:b",),
        ("a.b",),
        ("a/b",),
        ("a", ""),
        ("", "a"),
        ("ab",),
        ("A",),
        ("a*",),
        ("a%",),
    ]


NODE_CACHE_CASES: Final = (
    a_value_that_was_set_is_found,
    only_keys_with_a_value_are_in_the_answer,
    a_value_is_replaced,
    none_is_a_value,
    the_writes_of_a_task_come_back,
    the_answer_is_a_copy,
    namespaces_are_apart,
    a_namespace_may_be_empty,
    names_may_be_any_text,
    a_value_expires,
    a_new_value_has_its_own_ttl,
    a_ttl_of_nothing_has_ended,
    nothing_to_do_is_no_error,
    clear_removes_everything,
    clear_removes_exactly_the_namespaces_that_it_names,
    other_caches_of_the_database_find_it,
    many_values_are_set_and_found_at_once,
    a_value_may_be_large,
    callers_at_the_same_time_find_whole_values,
)
