"""The two ways to drive a graph, under one set of awaitable names, so that a scenario is written once."""

import asyncio
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot

Graph = Pregel[Any, Any, Any, Any]


class Api(Protocol):
    """The calls of scenarios on a graph."""

    name: str

    async def invoke(self, graph: Graph, value: Any, config: RunnableConfig, **options: Any) -> Any:
        """Run the graph until it ends or stops."""

    async def state(self, graph: Graph, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state that the configuration names."""

    async def history(self, graph: Graph, config: RunnableConfig, **options: Any) -> list[StateSnapshot]:
        """All states, newest first."""

    async def update(self, graph: Graph, config: RunnableConfig, values: Any, **options: Any) -> RunnableConfig:
        """Change the state by hand."""


class Asyncio:
    """Through the graph's asyncio methods."""

    name = "asyncio"

    async def invoke(self, graph: Graph, value: Any, config: RunnableConfig, **options: Any) -> Any:
        return await graph.ainvoke(value, config, **options)

    async def state(self, graph: Graph, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        return await graph.aget_state(config, subgraphs=subgraphs)

    async def history(self, graph: Graph, config: RunnableConfig, **options: Any) -> list[StateSnapshot]:
        return [snapshot async for snapshot in graph.aget_state_history(config, **options)]

    async def update(self, graph: Graph, config: RunnableConfig, values: Any, **options: Any) -> RunnableConfig:
        return await graph.aupdate_state(config, values, **options)


class Blocking:
    """Through the graph's blocking methods, on a thread that has no event loop."""

    name = "blocking"

    async def invoke(self, graph: Graph, value: Any, config: RunnableConfig, **options: Any) -> Any:
        return await asyncio.to_thread(lambda: graph.invoke(value, config, **options))

    async def state(self, graph: Graph, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        return await asyncio.to_thread(graph.get_state, config, subgraphs=subgraphs)

    async def history(self, graph: Graph, config: RunnableConfig, **options: Any) -> list[StateSnapshot]:
        return await asyncio.to_thread(lambda: list(graph.get_state_history(config, **options)))

    async def update(self, graph: Graph, config: RunnableConfig, values: Any, **options: Any) -> RunnableConfig:
        return await asyncio.to_thread(graph.update_state, config, values, **options)


APIS: list[Api] = [Asyncio(), Blocking()]
