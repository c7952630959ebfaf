"""A LangGraph agent on a SQLite file: killed in the middle, resumed, looked back on, forked, and weighed.

The model is a script, so that no network is needed. Everything told is checked; the exit code says whether it held.
"""

import operator
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver as LangGraphsSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from rich.console import Console
from rich.table import Table

from threadmark_langgraph import SqliteSaver

CITIES = {
    "Lisbon": ("18 degrees", 0.1),
    "Oslo": ("3 degrees", 0.2),
    "Cairo": ("27 degrees", 1.5),
    "Lima": ("20 degrees", 1.5),
}
TRIP: Any = {"configurable": {"thread_id": "trip"}}
QUICK_TOOLS = 2
TURNS = 60

console = Console(width=100, highlight=False)


class State(TypedDict):
    """A chat, and which tools were really run, in which process."""

    messages: Annotated[list[AnyMessage], add_messages]
    ran: Annotated[list[str], operator.add]


def model(state: State) -> dict[str, Any]:
    """Ask a tool about each city that was named; once there are results, answer with them."""
    asked = max(index for index, message in enumerate(state["messages"]) if message.type == "human")
    question, results = state["messages"][asked], state["messages"][asked + 1 :]
    if results:
        found = [str(message.content) for message in results if message.type == "tool"]
        return {"messages": [AIMessage("; ".join(sorted(found)))]}
    named = [city for city in CITIES if city in str(question.content)]
    if not named:
        return {"messages": [AIMessage(f"About {question.content}")]}
    calls = [{"name": "weather", "args": {"city": city}, "id": f"{city} {asked}"} for city in named]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def call_tools(state: State) -> list[Send] | str:
    """Every call is a task of its own, and they run at the same time."""
    last = state["messages"][-1]
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    return [Send("weather", call) for call in calls] or END


def weather(call: Any) -> dict[str, Any]:
    """The tool: slow enough to be interrupted."""
    city = call["args"]["city"]
    answer, seconds = CITIES[city]
    time.sleep(seconds)
    return {
        "messages": [ToolMessage(f"{city} has {answer}", tool_call_id=call["id"])],
        "ran": [f"{city} in process {os.getpid()}"],
    }


def agent(saver: BaseCheckpointSaver[Any]) -> Any:
    """The graph."""
    builder: Any = StateGraph(State)
    builder.add_node("model", model).add_node("weather", weather).add_edge(START, "model")
    builder.add_conditional_edges("model", call_tools, ["weather", END]).add_edge("weather", "model")
    return builder.compile(checkpointer=saver)


def main() -> None:
    """The story, from the beginning."""
    if sys.argv[1:2] == ["--ask"]:
        with SqliteSaver(sys.argv[2]) as saver:
            agent(saver).invoke({"messages": [HumanMessage("How warm: " + ", ".join(CITIES))]}, TRIP)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteSaver(folder / "agent.db") as saver:
            finished = kill_in_the_middle(folder / "agent.db", saver)
            resume(saver, finished)
            look_back_and_fork(saver)
        weigh(folder)
    console.print("\n[bold green]Everything was as told.[/]")


def kill_in_the_middle(file: Path, saver: SqliteSaver) -> list[str]:
    """Kill the agent's process when two of its four tools have finished; which two."""
    chapter("An agent calls four tools at once, and its process is killed")
    process = subprocess.Popen([sys.executable, __file__, "--ask", str(file)])
    finished: list[str] = []
    deadline = time.monotonic() + 30
    while len(finished) < QUICK_TOOLS and time.monotonic() < deadline:
        time.sleep(0.02)
        found = saver.get_tuple(TRIP)
        writes = (found.pending_writes if found else None) or []
        finished = [value[0].partition(" ")[0] for _, channel, value in writes if channel == "ran"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    expect(process.returncode == -signal.SIGKILL, "the process was killed")
    expect(len(finished) == QUICK_TOOLS, "two tools had finished")
    console.print(f"Process {process.pid} was killed with SIGKILL. On disk: the work of {' and '.join(finished)}.")
    return finished


def resume(saver: SqliteSaver, finished: list[str]) -> None:
    """Go on in this process; what was finished is not done again."""
    chapter("Another process resumes the thread")
    result = agent(saver).invoke(None, TRIP)
    for line in result["ran"]:
        console.print(f"  {line}" + ("" if str(os.getpid()) in line else " [dim](kept from before)[/]"))
    console.print(f"Answer: [bold]{result['messages'][-1].content}[/]")
    here = [line.partition(" ")[0] for line in result["ran"] if line.endswith(f" {os.getpid()}")]
    expect(sorted([*here, *finished]) == sorted(CITIES), "each tool ran once, in one process or the other")


def look_back_and_fork(saver: SqliteSaver) -> None:
    """The history, a checkpoint of the past, and another present from there."""
    chapter("Its history, and a fork from the past")
    graph = agent(saver)
    history = list(graph.get_state_history(TRIP))
    table = Table("step", "next", "messages", "last message", box=None)
    for snapshot in history:
        messages = snapshot.values.get("messages", [])
        last = str(messages[-1].content or "(calls tools)") if messages else ""
        nodes = ", ".join(dict.fromkeys(snapshot.next)) or "-"
        table.add_row(str(snapshot.metadata["step"]), nodes, str(len(messages)), last[:60])
    console.print(table)
    before_the_question = history[-1].config
    other = {"messages": [HumanMessage("How warm: Oslo")]}
    forked = graph.invoke(None, graph.update_state(before_the_question, other, as_node=START))
    console.print(f"Asked otherwise, from the first step on: [bold]{forked['messages'][-1].content}[/]")
    expect(forked["messages"][-1].content == "Oslo has 3 degrees", "the fork has its own answer")
    old = graph.get_state(history[0].config).values["messages"][-1].content
    console.print(f"And the first answer is still there: [dim]{old}[/]")
    expect("Cairo has 27 degrees" in old, "the fork left the past alone")


def weigh(folder: Path) -> None:
    """The same chat with LangGraph's saver and with ours."""
    chapter(f"The same chat of {TURNS} turns, in bytes")
    theirs, ours = folder / "theirs", folder / "ours"
    for each in (theirs, ours):
        each.mkdir()
    connection = sqlite3.connect(theirs / "chat.db", check_same_thread=False)
    chat(LangGraphsSqliteSaver(connection))
    connection.close()
    with SqliteSaver(ours / "chat.db") as saver:
        chat(saver)
    sizes = [sum(file.stat().st_size for file in each.iterdir()) for each in (theirs, ours)]
    table = Table("saver", "bytes", "", box=None)
    for label, size in zip(("LangGraph's SqliteSaver", "Threadmark's SqliteSaver"), sizes, strict=True):
        table.add_row(label, f"{size:,}", "[cyan]" + "█" * max(1, round(50 * size / max(sizes))) + "[/]")
    console.print(table)
    console.print(f"[bold]{sizes[0] / sizes[1]:.1f} times[/] smaller, and every one of its checkpoints can be read.")
    expect(sizes[0] > 3 * sizes[1], "a fraction of the bytes")


def chat(saver: BaseCheckpointSaver[Any]) -> None:
    """Turns of a chat, each a question and an answer of some length."""
    graph = agent(saver)
    for turn in range(TURNS):
        text = " ".join(f"{turn * word:x}" for word in range(1, 120))
        graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "chat"}})


def chapter(title: str) -> None:
    """A heading."""
    console.print(f"\n[bold cyan]{title}[/]")


def expect(truth: bool, what: str) -> None:  # noqa: FBT001 - read as `expect(this, "that it is so")`
    """Stop with an error where the story is not true."""
    if not truth:
        fail(what)


def fail(what: str) -> NoReturn:
    """Say what was not so."""
    console.print(f"[bold red]Not so: {what}[/]")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
