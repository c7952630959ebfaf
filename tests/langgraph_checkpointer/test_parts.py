"""Parts of LangGraph's own checkpoints: messages of a chat, and delta channels, which only the graph can read."""

from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_parity.releases import needs_sound_deltas
from threadmark import ConfigError
from threadmark_langgraph import InMemorySaver

CHAT: Any = {"configurable": {"thread_id": "chat"}}


def _answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
    return {"messages": [AIMessage(f"answer {len(state['messages'])}", id=f"a{len(state['messages'])}")]}


def test_a_chat_is_read_message_by_message() -> None:
    checkpointer = InMemorySaver()
    graph = StateGraph(MessagesState).add_node(_answer).add_edge(START, "_answer").compile(checkpointer=checkpointer)
    for number in range(8):
        graph.invoke({"messages": [HumanMessage(f"question {number}", id=f"q{number}")]}, CHAT)
    chat = graph.get_state(CHAT).values["messages"]
    saver = checkpointer.saver
    assert saver.extract("chat", "messages") == chat
    assert saver.extract("chat", "messages[-1].content") == chat[-1].content == "answer 15"
    assert saver.extract("chat", "messages[-2]") == chat[-2]
    page = saver.extract_items("chat", limit=5, before="q4")
    assert (page.messages, page.before, page.total) == (chat[3:8], 3, 16)
    (info,) = saver.list_threads(extract={"last": "messages[-1].content", "type": "messages[-1].type"}).threads
    assert info.extracted == {"last": "answer 15", "type": "ai"}


def _joined(items: list[str], writes: list[list[str]]) -> list[str]:
    return [*items, *(item for write in writes for item in write)]


class _State(TypedDict):
    items: Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=2)]
    plain: Annotated[list[str], add]


def _grow(state: _State) -> dict[str, Any]:
    return {"items": [f"item {len(state['items'])}"], "plain": ["x"]}


@needs_sound_deltas
def test_a_delta_channel_is_never_read_as_something_else() -> None:
    checkpointer = InMemorySaver()
    graph = StateGraph(_State).add_node(_grow).add_edge(START, "_grow").compile(checkpointer=checkpointer)
    for _ in range(4):
        graph.invoke({"items": ["given"], "plain": []}, CHAT)
    graph.update_state(CHAT, {"items": ["by hand"], "plain": []})
    saver, refused = checkpointer.saver, 0
    for state in graph.get_state_history(CHAT):
        plain = state.values["plain"]
        assert saver.extract(state.config, "plain[-1]") == (plain[-1] if plain else None)
        if state.values["items"]:
            with pytest.raises(ConfigError, match=r"delta channel.*get_state"):
                saver.extract(state.config, "items[-1]")
            with pytest.raises(ConfigError, match=r"delta channel.*get_state"):
                saver.extract_items(state.config, channel="items")
            refused += 1
    assert refused > 5
    (info,) = saver.list_threads(extract={"items": "items[-1]", "plain": "plain[0]"}).threads
    assert info.extracted == {"plain": "x"}
    assert "get_state" in info.problems[0].problem
