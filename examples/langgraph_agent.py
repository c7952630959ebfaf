"""A LangGraph agent on a SQLite file: killed in the middle, resumed, looked back on, forked; then LangGraph's saver.

The model is a script, so that no network is needed. Every claim was checked; the exit code says whether all held.
"""

import asyncio
import inspect
import logging
import operator
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver as LangGraphsSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from threadmark import CorruptDataError
from threadmark_langgraph import SqliteSaver

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

CITIES = {
    "Lisbon": ("18 degrees", 0.1),
    "Oslo": ("3 degrees", 0.2),
    "Cairo": ("27 degrees", 1.5),
    "Lima": ("20 degrees", 1.5),
}
TRIP: Any = {"configurable": {"thread_id": "trip"}}
QUICK_TOOLS = 2
PATIENCE = 60.0
LEAST_RATIO = 50

console = Console(width=80, highlight=False)


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
    """Every call is a separate task, and they run at the same time."""
    last = state["messages"][-1]
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    return [Send("weather", call) for call in calls] or END


def weather(call: Any) -> dict[str, Any]:
    """The tool: slow enough to be interrupted."""
    city = call["args"]["city"]
    answer, seconds = CITIES[city]
    dies = (
        sys.argv[1:2] == ["--ask"] and seconds > 1
    )  # the killed process never ends these, however busy the machine is
    time.sleep(2 * PATIENCE if dies else seconds)
    return {
        "messages": [ToolMessage(f"{city} has {answer}", tool_call_id=call["id"])],
        "ran": [f"{city} in process {os.getpid()}"],
    }


def agent(saver: BaseCheckpointSaver[Any]) -> Any:
    """The graph."""
    builder: Any = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("weather", weather)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", call_tools, ["weather", END])
    builder.add_edge("weather", "model")
    return builder.compile(checkpointer=saver)


def ask(file: str) -> None:
    """The work of the process that is killed."""
    with SqliteSaver(file) as saver:
        question = HumanMessage("How warm: " + ", ".join(CITIES))
        agent(saver).invoke({"messages": [question]}, TRIP)


def go_on(saver: SqliteSaver) -> Any:
    """The work of the process that comes after it."""
    return agent(saver).invoke(None, TRIP)


def main() -> None:
    """The story, from the beginning."""
    logging.getLogger("threadmark").setLevel(logging.ERROR)  # a slow disk's warnings are no part of the story
    if sys.argv[1:2] == ["--ask"]:
        ask(sys.argv[2])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show_code()
        with SqliteSaver(folder / "agent.db") as saver:
            finished = kill_in_the_middle(folder / "agent.db", saver)
            resume(saver, finished)
            look_back_and_fork(saver)
            console.print("[dim]LangGraph's own SqliteSaver would have done all of this, too. What follows, not.[/]")
            prune(saver)
        if sys.argv[1:2] == ["--keep"]:
            shutil.copy(folder / "agent.db", sys.argv[2])
        weigh(folder)
        damage(folder)
    console.print("\n[bold green]Everything was as expected.[/]")
    if sys.argv[1:2] == ["--keep"]:
        console.print(f"Look at the agent's thread in a browser: [bold]make page DATABASE={sys.argv[2]}[/]")


def show_code() -> None:
    """The code that runs in the next two chapters."""
    chapter("The code")
    source = "\n\n".join(inspect.getsource(each).rstrip() for each in (agent, ask, go_on))
    console.print(Syntax(source, "python", theme="ansi_light", background_color="default"))


def kill_in_the_middle(file: Path, saver: SqliteSaver) -> list[str]:
    """Kill the agent's process when two of its four tools have finished; which two."""
    chapter("An agent calls four tools at once, and its process is killed")
    process = subprocess.Popen([sys.executable, __file__, "--ask", str(file)])
    finished: list[str] = []
    deadline = time.monotonic() + PATIENCE
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
    """Go on in this process; finished tasks are not done again."""
    chapter("Another process resumes the thread")
    result = go_on(saver)
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
    table.columns[-1].overflow = "fold"
    for snapshot in history:
        messages = snapshot.values.get("messages", [])
        last = str(messages[-1].content or "(calls tools)") if messages else ""
        nodes = ", ".join(dict.fromkeys(snapshot.next)) or "-"
        table.add_row(str(snapshot.metadata["step"]), nodes, str(len(messages)), last)
    console.print(table)
    before_the_question = history[-1].config
    other = {"messages": [HumanMessage("How warm: Oslo")]}
    forked = graph.invoke(None, graph.update_state(before_the_question, other, as_node=START))
    console.print(f"Asked otherwise, from the first step on: [bold]{forked['messages'][-1].content}[/]")
    expect(forked["messages"][-1].content == "Oslo has 3 degrees", "the fork has its own answer")
    old = graph.get_state(history[0].config).values["messages"][-1].content
    console.print(f"And the first answer is still there: [dim]{old}[/]")
    expect("Cairo has 27 degrees" in old, "the fork left the past alone")


def prune(saver: SqliteSaver) -> None:
    """Old checkpoints go, from blocking code and from asyncio."""
    chapter("Only the newest two checkpoints are kept")
    before = len(list(saver.list(TRIP)))
    removed = asyncio.run(saver.aprune(["trip"], keep_last=2)).checkpoints
    console.print(f"{removed} of {before} checkpoints were removed, by the same saver from asyncio.")
    expect(len(list(saver.list(TRIP))) == before - removed > 0, "the others are there")
    theirs = LangGraphsSqliteSaver(sqlite3.connect(":memory:"))
    theirs.setup()
    refused = refuses(lambda: theirs.prune(["trip"])) and refuses(lambda: asyncio.run(theirs.aget_tuple(TRIP)))
    expect(refused, "LangGraph's SqliteSaver neither prunes nor serves asyncio")
    theirs.conn.close()
    console.print("[dim]LangGraph's SqliteSaver has no prune, and asyncio only in a second class.[/]")


def weigh(folder: Path) -> None:
    """A chat with LangGraph's saver and with ours: the first line of the README's figures, measured again."""
    sys.path.append(str(BENCHMARKS))
    from storage import sizes

    chapter("A chat of 500 messages of 600 characters, in bytes on disk")
    chat = sizes("chat", folder)
    table = Table("saver", "bytes", "", box=None)
    for label, size in (("LangGraph's SqliteSaver", chat.peer), ("Threadmark's SqliteSaver", chat.ours)):
        table.add_row(label, f"{size:,}", "[cyan]" + "█" * max(1, round(30 * size / chat.peer)) + "[/]")
    console.print(table)
    console.print(f"[bold]{chat.ratio:.0f}x[/] less, and each of its {chat.steps} checkpoints was read and compared.")
    expect(chat.ratio > LEAST_RATIO, "a small fraction of the bytes")


def damage(folder: Path) -> None:
    """One letter of each file is changed, as a bad disk would."""
    chapter("One letter is changed in the database file")
    theirs, ours = folder / "theirs.db", folder / "ours.db"
    question: Any = {"messages": [HumanMessage("the 4711 parcels")]}
    with LangGraphsSqliteSaver.from_conn_string(str(theirs)) as saver:
        agent(saver).invoke(question, TRIP)
    with SqliteSaver(ours) as saver_of_ours:
        agent(saver_of_ours).invoke(question, TRIP)
    for file in (theirs, ours):
        file.write_bytes(file.read_bytes().replace(b"4711", b"4712"))
    with LangGraphsSqliteSaver.from_conn_string(str(theirs)) as saver:
        found = agent(saver).get_state(TRIP).values["messages"][-1].content
    console.print(f"LangGraph's SqliteSaver reads: [bold]{found}[/], and nobody notices.")
    expect(found == "About the 4712 parcels", "LangGraph's saver reads what is in the file")
    with SqliteSaver(ours) as saver_of_ours:
        try:
            agent(saver_of_ours).get_state(TRIP)
        except CorruptDataError as error:
            console.print(f"Threadmark's raises CorruptDataError: [bold]{error}[/]")
        else:
            fail("the damage was noticed")


def refuses(call: Callable[[], object]) -> bool:
    """Whether a method is there in name only."""
    try:
        call()
    except NotImplementedError:
        return True
    return False


def chapter(title: str) -> None:
    """A heading."""
    console.print(f"\n[bold cyan]{title}[/]")


def expect(truth: bool, what: str) -> None:  # noqa: FBT001 - read as `expect(this, "that it is so")`
    """Stop with an error if the story is not true."""
    if not truth:
        fail(what)


def fail(what: str) -> NoReturn:
    """Print the claim that failed."""
    console.print(f"[bold red]Not so: {what}[/]")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
