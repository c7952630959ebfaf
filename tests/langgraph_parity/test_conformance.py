"""LangGraph's own conformance suite, every capability, on every backend and both APIs."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from langgraph_parity.backends import Backend
from langgraph_parity.blocking import BlockingAsAsync


@pytest.mark.parametrize("blocking", [False, True], ids=["asyncio", "blocking"])
def test_every_capability_is_detected_and_passes(backend: Backend, tmp_path: Path, *, blocking: bool) -> None:
    databases = count()

    @checkpointer_test(name=f"{backend.name}, {'blocking' if blocking else 'asyncio'}")
    async def fresh() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        with backend.open(tmp_path / str(next(databases))) as saver:
            yield BlockingAsAsync(saver) if blocking else saver

    report = asyncio.run(validate(fresh))
    results = report.results.items()
    assert {name for name, result in results if result.detected} == {each.value for each in ALL_CAPABILITIES}
    assert [failure for _, result in results for failure in result.failures] == []
    assert all(result.tests_passed for _, result in results)
    assert report.conformance_level() == "FULL"
