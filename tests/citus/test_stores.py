"""Stores and caches are on the coordinator, as their tables are not distributed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from citus.nodes import Nodes, shared_nodes, skip_without_citus
from threadmark import ConfigError
from threadmark_postgres import PostgresSaver
from threadmark_store import Cache, Store

skip_without_citus()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = shared_nodes()
    with PostgresSaver(nodes.url, schema="remembering") as saver:
        saver.setup(distribute="citus")
    yield nodes
    nodes.execute("DROP SCHEMA IF EXISTS remembering CASCADE")


def test_they_work_on_the_coordinator(nodes: Nodes) -> None:
    with PostgresSaver(nodes.url, schema="remembering") as saver:
        store, cache = Store(saver), Cache(saver)
        store.put(("a",), "k", {"text": "b"})
        cache.set({(("a",), "k"): ("b", None)})
        assert [item.key for item in store.search(("a",))] == ["k"]
        assert cache.get([(("a",), "k")]) == {(("a",), "k"): "b"}


@pytest.mark.parametrize(
    "call",
    [
        lambda saver: Store(saver).setup(),
        lambda saver: Store(saver).get(("a",), "k"),
        lambda saver: Store(saver).put(("a",), "k", {"text": "b"}),
        lambda saver: Store(saver).search(("a",)),
        lambda saver: Store(saver).verify(),
        lambda saver: Cache(saver).set({(("a",), "k"): ("b", None)}),
        lambda saver: Cache(saver).clear(),
    ],
    ids=["setup", "get", "put", "search", "verify", "cached", "cleared"],
)
def test_a_worker_refuses_them(nodes: Nodes, call: Callable[[PostgresSaver], Any]) -> None:
    for node in nodes.workers:
        with (
            PostgresSaver(node.url, schema="remembering") as saver,
            pytest.raises(ConfigError, match="the coordinator's URL"),
        ):
            call(saver)
