"""Chats and agents, as most threads are."""

import warnings
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import create_react_agent

from langgraph_parity.apis import Api
from langgraph_parity.records import record


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


async def chat_of_three_turns(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """Each turn adds a question and an answer; metadata and configurable keys of the run are kept with it."""

    def answer(state: Chat) -> dict[str, Any]:
        asked = state["messages"][-1]
        return {"messages": [AIMessage(f"about {asked.content}", id=f"answer to {asked.id}")]}

    builder = StateGraph(Chat).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)
    graph = builder.compile(checkpointer=saver)
    last = None
    for turn in range(3):
        config: Any = {
            "configurable": {"thread_id": "chat", "user": f"user {turn}", "__hidden": "x"},
            "metadata": {"turn": turn, "nul": "a\x00b", "not scalar": [1]},
        }
        question = HumanMessage(f"question {turn}", id=f"question {turn}")
        last = await api.invoke(graph, {"messages": [question]}, config)
    thread: Any = {"configurable": {"thread_id": "chat"}}
    return (
        last,
        record(await api.history(graph, thread)),
        record(await api.history(graph, thread, limit=2)),
        record(await api.history(graph, thread, filter={"source": "input"})),
        record(await api.history(graph, thread, filter={"turn": 1, "source": "loop"})),
    )


async def two_graphs_on_one_saver(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """Threads of different graphs do not see each other."""

    def shout(state: Chat) -> dict[str, Any]:
        return {"messages": [AIMessage(str(state["messages"][-1].content).upper(), id="shouted")]}

    def whisper(state: Chat) -> dict[str, Any]:
        return {"messages": [AIMessage(str(state["messages"][-1].content).lower(), id="whispered")]}

    loud = StateGraph(Chat).add_node("shout", shout).add_edge(START, "shout").compile(checkpointer=saver)
    soft = StateGraph(Chat).add_node("whisper", whisper).add_edge(START, "whisper").compile(checkpointer=saver)
    one: Any = {"configurable": {"thread_id": "one"}}
    two: Any = {"configurable": {"thread_id": "two"}}
    await api.invoke(loud, {"messages": [HumanMessage("Hello", id="1")]}, one)
    await api.invoke(soft, {"messages": [HumanMessage("Hello", id="2")]}, two)
    await api.invoke(soft, {"messages": [HumanMessage("Again", id="3")]}, one)
    return record(await api.history(loud, one)), record(await api.history(soft, two))


async def agent_with_tools(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """The prebuilt agent: a model that asks for two tools at once, then answers."""
    with warnings.catch_warnings():
        # The agent's module changes between releases; only its checkpoints matter here.
        warnings.simplefilter("ignore")
        graph = create_react_agent(_Script(), [add, multiply], checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "agent"}}
    await api.invoke(graph, {"messages": [HumanMessage("3 and 4?", id="asked")]}, thread)
    snapshots = await api.history(graph, thread)
    return [
        (
            [(message.type, message.content, message.id if message.type != "tool" else None) for message in found],
            snapshot.next,
            [task.name for task in snapshot.tasks],
        )
        for snapshot in snapshots
        for found in [snapshot.values.get("messages", [])]
    ]


@tool
def add(one: int, other: int) -> int:
    """The sum."""
    return one + other


@tool
def multiply(one: int, other: int) -> int:
    """The product."""
    return one * other


class _Script(BaseChatModel):
    """A model that needs no network: tools first, then their results."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - the script knows its tools
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the interface's
        **kwargs: Any,  # noqa: ARG002 - the interface's
    ) -> ChatResult:
        results = [str(message.content) for message in messages if message.type == "tool"]
        if results:
            reply = AIMessage(" and ".join(results), id="answered")
        else:
            arguments = {"one": 3, "other": 4}
            calls = [ToolCall(name=name, args=arguments, id=name) for name in ("add", "multiply")]
            reply = AIMessage("", id="called", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


SCENARIOS = [chat_of_three_turns, two_graphs_on_one_saver, agent_with_tools]
