"""Stores on every backend, with both APIs, behave as the suite for stores says, and LangGraph's store runs it, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore, TTLConfig
from langgraph.store.memory import InMemoryStore

from store_backends import BACKENDS, WAYS
from threadmark_conformance.item_stores import (
    APIS,
    OWN_CASES,
    STORE_CASES,
    WITHOUT_TTL,
    StoreCase,
    over_savers,
    run_own_case,
    run_store_case,
)

FAILED_BY_LANGGRAPH = {
    "items.the_time_of_creation_stays_and_that_of_the_update_grows": "a put begins the item again",
    "namespaces.an_empty_store_has_no_namespaces": "a get and a delete add the namespace",
    "namespaces.a_namespace_goes_with_its_last_item": "it stays",
}
"""The cases that LangGraph's store in memory fails, and its behaviour."""


@pytest.mark.parametrize(("backend", "api"), WAYS)
@pytest.mark.parametrize("case", STORE_CASES, ids=str)
def test_a_case_of_any_store(case: StoreCase, backend: str, api: str, tmp_path: Path) -> None:
    run_store_case(case, over_savers(BACKENDS[backend]), api, tmp_path)


@pytest.mark.parametrize(("backend", "api"), WAYS)
@pytest.mark.parametrize("case", OWN_CASES, ids=str)
def test_a_case_of_our_stores(case: StoreCase, backend: str, api: str, tmp_path: Path) -> None:
    run_own_case(case, BACKENDS[backend], api, tmp_path)


@asynccontextmanager
async def _of_langgraph(_folder: Path, _api: str, _ttl: TTLConfig | None) -> AsyncIterator[BaseStore]:
    yield InMemoryStore()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("case", WITHOUT_TTL, ids=str)
def test_a_store_of_langgraph(case: StoreCase, api: str, tmp_path: Path) -> None:
    if str(case) in FAILED_BY_LANGGRAPH:
        with pytest.raises(AssertionError):
            run_store_case(case, _of_langgraph, api, tmp_path)
    else:
        run_store_case(case, _of_langgraph, api, tmp_path)


def test_a_case_is_a_coroutine_function_of_a_world(tmp_path: Path) -> None:
    seen = []

    async def case(world: object) -> None:
        seen.append(asyncio.get_running_loop() is not None and world is not None)

    run_store_case(case, _of_langgraph, "blocking", tmp_path)
    assert seen == [True]
