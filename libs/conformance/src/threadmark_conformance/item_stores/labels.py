"""The rules of labels: text that is not empty, without a dot and NUL, and "langgraph" is not the first one of a put."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError, PutOp

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

BAD_LABELS: tuple[tuple[Any, ...], ...] = (
    ("",),
    ("a", ""),
    ("a.b",),
    ("a", "b."),
    ("a\x00",),
    (1,),
    (None,),
    ("a", b"b"),
)

CALLS: dict[str, Callable[[Asked, Any], Awaitable[Any]]] = {
    "put": lambda store, namespace: store.put(namespace, "k", {"n": 1}),
    "get": lambda store, namespace: store.get(namespace, "k"),
    "delete": lambda store, namespace: store.delete(namespace, "k"),
    "search": lambda store, namespace: store.search(namespace),
    "prefix": lambda store, namespace: store.namespaces(prefix=namespace),
    "suffix": lambda store, namespace: store.namespaces(suffix=namespace),
}


async def bad_labels_are_refused_by_every_call(world: StoreWorld) -> None:
    store = await world.store()
    for name, call in CALLS.items():
        for namespace in BAD_LABELS:
            with pytest.raises(InvalidNamespaceError):
                await call(store, namespace)
            assert await store.search() == [], name


async def an_empty_namespace_is_refused_by_a_put(world: StoreWorld) -> None:
    store = await world.store()
    with pytest.raises(InvalidNamespaceError):
        await store.put((), "k", {"n": 1})
    assert await store.search() == []


async def the_label_langgraph_is_refused_at_the_root(world: StoreWorld) -> None:
    store = await world.store()
    with pytest.raises(InvalidNamespaceError):
        await store.put(("langgraph", "foo"), "k", {"n": 1})
    assert await store.search() == []
    for namespace in (("foo", "langgraph", "foo"), ("foo", "langgraph"), ("langgraph2",), ("LangGraph",)):
        await store.put(namespace, "k", {"n": 1})
        assert await store.value(namespace, "k") == {"n": 1}


async def a_batch_may_use_the_label_langgraph(world: StoreWorld) -> None:
    store = await world.store()
    await store.batch([PutOp(("langgraph", "foo"), "k", {"n": 1})])
    assert await store.value(("langgraph", "foo"), "k") == {"n": 1}
    assert await store.keys(("langgraph",)) == ["k"]
    await store.delete(("langgraph", "foo"), "k")
    assert await store.get(("langgraph", "foo"), "k") is None


async def odd_labels_are_labels(world: StoreWorld) -> None:
    store = await world.store()
    labels = (
        " ",
        "\n",
        "a b",
        "%",
        "_",
        "*",
        "?",
        "'",
        '"',
        "\\",
        "/",
        "é",
        "日本",
        "\U0001f600",
        "0",
        "null",
        "x" * 255,
    )
    for label in labels:
        await store.put((label, "below"), "k", {"label": label})
    for label in labels:
        assert await store.value((label, "below"), "k") == {"label": label}
    assert sorted(await store.namespaces()) == sorted((label, "below") for label in labels)
