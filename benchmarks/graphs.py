"""LangGraph's graphs that the benchmark runs: a chat, the same with a delta channel, and a fan-out.

A chat adds a question and an answer of random text in each turn (a base64 of random bytes, so it compresses to three
quarters at most). A fan-out sends 16 packets in each turn, which repeat a prompt of 20 KB; `slim` sends none.
"""

import base64
import operator
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

Saver = BaseCheckpointSaver[Any]

_WIDTH = 16
_TEXT = 500
_WORDS = ("you", "are", "given", "one", "item", "of", "a", "plan", "say", "what", "it", "needs", "and", "why")


def joined(state: Sequence[AnyMessage] | None, writes: Sequence[Sequence[AnyMessage]]) -> list[AnyMessage]:
    """A reducer for whole batches of messages."""
    return [*(state or []), *(message for write in writes for message in write)]


class Chat(TypedDict):
    """The state of the chat."""

    messages: Annotated[list[AnyMessage], add_messages]


class DeltaChat(TypedDict):
    """The same, of which a checkpoint holds the additions."""

    messages: Annotated[list[AnyMessage], DeltaChannel(joined)]


class Fan(TypedDict):
    """The state of the fan-out."""

    results: Annotated[list[str], operator.add]
    turn: int


class Graph(NamedTuple):
    """A graph to compile, and the input of each turn."""

    compiled: Callable[[Saver], Any]
    value: Callable[[int, random.Random], dict[str, Any]]


def text(chance: random.Random, size: int) -> str:
    """Text that cannot be squeezed below three quarters."""
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()


def questions(count: int, chance: random.Random) -> dict[str, Any]:
    """So many messages, as the input of one turn of a chat."""
    return {"messages": [HumanMessage(text(chance, _TEXT), id=text(chance, 24)) for _ in range(count)]}


def _chat(state: type, saver: Saver) -> Any:
    def answer(values: Any) -> dict[str, Any]:
        question = values["messages"][-1]
        return {"messages": [AIMessage(str(question.content)[::-1], id=f"to {question.id}")]}

    builder: Any = StateGraph(state)
    builder.add_node("answer", answer, input_schema=state).add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def _fan(prompt: str, saver: Saver) -> Any:
    def packets(state: Fan) -> list[Send]:
        return [Send("item", {"prompt": prompt, "turn": state["turn"], "number": number}) for number in range(_WIDTH)]

    def item(packet: dict[str, Any]) -> dict[str, Any]:
        return {"results": [text(random.Random(packet["turn"] * _WIDTH + packet["number"]), 80)]}

    builder: Any = StateGraph(Fan).add_node("plan", lambda state: {"turn": state["turn"]})
    builder.add_node("item", item)
    builder.add_edge(START, "plan").add_conditional_edges("plan", packets, ["item"])
    return builder.compile(checkpointer=saver)


def _question(_: int, chance: random.Random) -> dict[str, Any]:
    return questions(1, chance)


def _plan(turn: int, _: random.Random) -> dict[str, Any]:
    return {"results": [], "turn": turn}


_PROMPT = " ".join(random.Random("prompt").choices(_WORDS, k=20_000))[:20_000]

GRAPHS = {
    "chat": Graph(partial(_chat, Chat), _question),
    "delta chat": Graph(partial(_chat, DeltaChat), _question),
    "fan-out": Graph(partial(_fan, _PROMPT), _plan),
    "slim": Graph(partial(_fan, ""), _plan),
}
