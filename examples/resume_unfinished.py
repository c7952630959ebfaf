"""A process dies with several runs in the middle, and two workers that start up go on with each of them once.

    python examples/resume_unfinished.py

Graphs of LangGraph on a SQLite file. Every claim that is printed was checked; if one does not hold, the program says so
and its exit status is 1.
"""

import operator
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from threadmark import ThreadBusyError
from threadmark_langgraph import SqliteSaver

TRIPS = ("lisbon", "lyon", "vienna")
WORKERS = 2


class Trip(TypedDict, total=False):
    """The steps that were taken."""

    done: Annotated[list[str], operator.add]


def planner(saver: SqliteSaver, book: Callable[[Trip], Trip]) -> Any:
    """A graph of three nodes."""
    builder: Any = StateGraph(Trip)
    builder.add_node("search", lambda _: {"done": ["search"]}).add_node("book", book)
    builder.add_node("confirm", lambda _: {"done": ["confirm"]})
    builder.add_edge(START, "search").add_edge("search", "book").add_edge("book", "confirm")
    return builder.compile(checkpointer=saver)


def main() -> None:
    """The story, as the process sees it that watches the others."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "trips.db")
        kill_in_the_middle(path)
        with SqliteSaver(path) as saver:
            threads = saver.unfinished(idle_for=0).threads
            said = ", ".join(f"{thread.id} (next: {', '.join(thread.next)})" for thread in threads)
            say(f"Another process opens the file. Unfinished: {said}")
            check({thread.id for thread in threads} == set(TRIPS), "every run that died is there")
            check(all(thread.next == ["book"] for thread in threads), "each with the node that was cut off")
            start_workers(path)
            check(saver.unfinished(idle_for=0).threads == [], "no thread is unfinished any more")
            for name in TRIPS:
                state = planner(saver, book).get_state({"configurable": {"thread_id": name}})
                check(state.values["done"] == ["search", "book", "confirm"], f"{name} came to its end, step by step")
    say("Done: everything was as expected.")


def kill_in_the_middle(path: str) -> None:
    """Let a child process run all graphs, and kill it when each is in its second node."""
    say(f"A child process plans {len(TRIPS)} trips at the same time.")
    with subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE, text=True) as child:
        heard = [child.stdout.readline() for _ in TRIPS] if child.stdout else []
        child.kill()
    check(heard == ["booking\n"] * len(TRIPS) and child.returncode != 0, "it was killed while each of them was booking")


def run(path: str) -> None:
    """The child process."""

    def book_forever(_: Trip) -> Trip:
        sys.stdout.write("booking\n")
        sys.stdout.flush()
        threading.Event().wait()
        return {}

    with SqliteSaver(path) as saver:
        graph = planner(saver, book_forever)

        def invoke(name: str) -> None:
            graph.invoke({"done": []}, {"configurable": {"thread_id": name}}, durability="sync")

        runs = [threading.Thread(target=invoke, args=(name,)) for name in TRIPS]
        for each in runs:
            each.start()
        for each in runs:
            each.join()


def start_workers(path: str) -> None:
    """Start workers, each of which goes on with all that it may."""
    say(f"{WORKERS} workers, each with its own saver, start at the same time.")
    with ThreadPoolExecutor(WORKERS) as workers:
        resumed = [workers.submit(recover, path) for _ in range(WORKERS)]
    for number, worker in enumerate(resumed, 1):
        say(f"  worker {number} resumed: {', '.join(worker.result()) or 'none'}")
    check(sorted(name for worker in resumed for name in worker.result()) == sorted(TRIPS), "each trip was resumed once")


def recover(path: str) -> list[str]:
    """A worker: resume the runs that died, each under a lease. Returns their threads."""
    resumed = []
    with SqliteSaver(path) as saver:
        graph = planner(saver, book)
        cursor = None
        while True:
            page = saver.unfinished(idle_for=timedelta(0), cursor=cursor)
            for thread in page.threads:
                try:
                    with saver.lease(thread.id, on_busy="reject") as lease:
                        found = saver.get_thread(thread.id)
                        if found is not None and found.next:  # no other worker was faster
                            graph.invoke(None, lease.config)
                            resumed.append(thread.id)
                except ThreadBusyError:
                    continue  # another worker has the thread
            cursor = page.cursor
            if cursor is None:
                return resumed


def book(_: Trip) -> Trip:
    """Book, this time to the end."""
    return {"done": ["book"]}


def check(holds: bool, claim: str) -> None:  # noqa: FBT001 - reads like a sentence
    """Print a claim that holds; leave the program if it does not."""
    if not holds:
        sys.exit(f"  FAILED: {claim}")
    say(f"  {claim}")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        main()
