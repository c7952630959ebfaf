"""The result of a scenario on LangGraph's in-memory saver; it is run there once for each API."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_parity.apis import Api

Scenario = Callable[[Api, BaseCheckpointSaver[Any]], Coroutine[Any, Any, Any]]

_known: dict[tuple[Scenario, str], Any] = {}


def expected(scenario: Scenario, api: Api) -> Any:
    """The record of the run."""
    key = (scenario, api.name)
    if key not in _known:
        _known[key] = asyncio.run(scenario(api, InMemorySaver()))
    return _known[key]
