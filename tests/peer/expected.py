"""What a scenario gives on LangGraph's in-memory saver; it is run there once for each face."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from peer.faces import Face

Scenario = Callable[[Face, BaseCheckpointSaver[Any]], Coroutine[Any, Any, Any]]

_known: dict[tuple[Scenario, str], Any] = {}


def expected(scenario: Scenario, face: Face) -> Any:
    """The record of the run."""
    key = (scenario, face.name)
    if key not in _known:
        _known[key] = asyncio.run(scenario(face, InMemorySaver()))
    return _known[key]
