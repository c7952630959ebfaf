"""Effect rounds: pairs of workers run orders whose charge must happen once, and a receiver that counts harms them.

    python benchmarks/effect_rounds.py sqlite --calls 1000 --way check
    python benchmarks/effect_rounds.py postgresql://... --way idempotent
    python benchmarks/effect_rounds.py redis://... --way raise
    python benchmarks/effect_rounds.py sqlite --way langgraph

The receiver kills a worker before or after it counts its charge, or a little later; stops it for longer than its claim
lives; closes the connection before or after it counts. On a server, all connections to the database are lost now and
then. Half of the orders are run by both workers of a pair at once, without a lease. Each way is one to go on from a
call of which it is not known whether it happened:

    check       the worker asks the receiver whether it has counted the charge
    idempotent  the charge is made again, and the receiver compares keys
    raise       an operator reads the error, looks at the receiver, and settles the effect
    langgraph   without Effects: a graph with our checkpointer, resumed as it is

Afterwards every order must have been charged once, except in the last way, which shows the difference.

Workers wait most of the time, for those that are stopped and for each other, so a long form takes several pairs. Many
processes on few cores may need a longer claim: one that gets no turn for so long counts as stopped, and a worker that
is stopped before it sends its charge may send it after the receiver has said that it has none.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from langgraph.graph import START, StateGraph

from lease_rounds import finished, in_child, kill_connections, open_saver
from threadmark import ConflictError, EffectLostError, Effects, EffectUnknownError, Saver, StoreError
from threadmark.effects import OnUnknown
from threadmark_langgraph import Checkpointer

WORKERS = 2
"""The workers of a pair."""

TTL = 0.4
STOPPED = 3
"""How long a worker is stopped, in times that its claim lives."""

HARM = 0.3
"""After this part of the charges the receiver does harm."""

HARMS = (
    "killed before it counted",
    "killed after it counted",
    "killed after the answer",
    "closed before it counted",
    "closed after it counted",
    "stopped",
)
SOON = 0.03
"""A worker that is killed after the answer lives on for up to this long."""

MEETING = 0.2
"""How long a worker waits for the other one, to run an order at once."""

DISTURBED = (0.5, 2.0)
"""The time between two losses of all connections to the database."""


class Rounds(NamedTuple):
    """The options of the script."""

    database: str
    calls: int
    way: str
    pairs: int
    ttl: float
    """How long a claim lives without a renewal."""
    seed: int

    def orders(self, pair: int) -> range:
        """Return the orders of a pair."""
        return range(pair, self.calls, self.pairs)


class Receiver:
    """The service that charges. It counts, and harms its callers."""

    def __init__(self, rounds: Rounds) -> None:
        self._chance = random.Random(rounds.seed)
        self._compares_keys = rounds.way == "idempotent"
        self._stopped = STOPPED * rounds.ttl
        self._charges: dict[str, list[str]] = {}
        self._waiting: dict[str, asyncio.Event] = {}
        self._figures: Counter[str] = Counter()
        self._parent = os.getppid()

    async def serve(self, listening: socket.socket) -> None:
        """Answer until the parent closes this process."""
        server = await asyncio.start_server(self._handle, sock=listening)
        await server.serve_forever()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError):
            asked = json.loads(await reader.readline())
            answer = await getattr(self, f"_{asked.pop('ask')}")(**asked)
            if answer is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.close()

    async def _charge(self, order: str, key: str, process: int) -> Any:
        harm = self._chance.choice(HARMS) if self._chance.random() < HARM else ""
        if harm == "killed before it counted":
            self._signal(process, signal.SIGKILL, harm)
            return None
        if harm == "closed before it counted":
            self._figures[harm] += 1
            return None
        charges = self._charges.setdefault(order, [])
        if not (self._compares_keys and key in charges):
            charges.append(key)
        if harm == "killed after it counted":
            self._signal(process, signal.SIGKILL, harm)
        elif harm == "closed after it counted":
            self._figures[harm] += 1
            return None
        elif harm == "killed after the answer":
            later = self._chance.uniform(0, SOON)
            asyncio.get_running_loop().call_later(later, self._signal, process, signal.SIGKILL, harm)
        elif harm == "stopped":
            self._signal(process, signal.SIGSTOP, harm)
            asyncio.get_running_loop().call_later(self._stopped, self._signal, process, signal.SIGCONT)
        return {"receipt": len(charges)}

    def _signal(self, process: int, number: signal.Signals, harm: str | None = None) -> None:
        """Send a signal to a worker, if it is there still, and no other process has its number."""
        with suppress(OSError, IndexError):
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == self._parent and fields[0] != "Z":
                os.kill(process, number)
                if harm:
                    self._figures[harm] += 1

    async def _look_up(self, order: str) -> Any:
        return {"charged": len(self._charges.get(order, []))}

    async def _note(self, figure: str) -> Any:
        self._figures[figure] += 1
        return {}

    async def _meet(self, order: str) -> Any:
        """Let both workers begin an order at the same time."""
        other = self._waiting.pop(order, None)
        if other is not None:
            other.set()
            return {}
        here = self._waiting[order] = asyncio.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(here.wait(), MEETING)
        return {}

    async def _report(self) -> Any:
        return {"charges": self._charges, "figures": self._figures}


def ask(port: int, what: str, **fields: Any) -> Any:
    """Ask the receiver."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(json.dumps({"ask": what, **fields}).encode() + b"\n")
        line = connection.makefile().readline()
    if not line:
        raise ConnectionResetError("the receiver closed the connection without an answer")
    return json.loads(line)


class Order(TypedDict, total=False):
    """The state of the graph."""

    order: str
    receipt: int


class Worker:
    """A process that runs orders, one after the other, until each is charged."""

    def __init__(self, saver: Saver, port: int, rounds: Rounds) -> None:
        self._port = port
        self._way = rounds.way
        on_unknown: OnUnknown = "run" if rounds.way == "idempotent" else "raise"
        self._effects = Effects(saver, claim_ttl=rounds.ttl, on_unknown=on_unknown)
        graph = StateGraph(Order)
        graph.add_node("charge", self._node)
        graph.add_edge(START, "charge")
        self.graph = graph.compile(checkpointer=Checkpointer(saver))

    def _node(self, state: Order) -> Order:
        order = state["order"]
        if self._way == "langgraph":
            return {"receipt": self._charge(order, "")["receipt"]}
        check = (lambda _: self._looked_up(order)) if self._way == "check" else None
        return {"receipt": self._effects.once("charge", self._charge, order, check=check)["receipt"]}

    def _charge(self, order: str, idempotency_key: str) -> Any:
        return ask(self._port, "charge", order=order, key=idempotency_key, process=os.getpid())

    def _looked_up(self, order: str) -> Any:
        ask(self._port, "note", figure="asked the receiver")
        charged = ask(self._port, "look_up", order=order)["charged"]
        return {"receipt": charged} if charged else Effects.NOT_DONE

    def run(self, order: str) -> None:
        """Resume an order until it is done."""
        config: Any = {"configurable": {"thread_id": order}}
        while True:
            try:
                if self.graph.invoke(None, config).get("receipt"):
                    return
            except EffectUnknownError:
                ask(self._port, "note", figure="reported as unknown")
                self._settle(order)
            except EffectLostError:
                ask(self._port, "note", figure="refused its result")
            except (ConnectionError, TimeoutError):
                ask(self._port, "note", figure="failed calls")
            except StoreError:
                ask(self._port, "note", figure="failures of the database")

    def _settle(self, order: str) -> None:
        """Be the operator: look at the receiver, and say what became of the effect."""
        with suppress(ConflictError, StoreError):
            for effect in self._effects.list(order, state="unknown"):
                charged = ask(self._port, "look_up", order=order)["charged"]
                self._effects.settle(effect, "done" if charged else "not done", {"receipt": charged})


def work(rounds: Rounds, port: int, pair: int, number: int, progress: Path) -> None:
    """Be one of the workers of a pair."""
    with open_saver(rounds.database) as saver:
        worker, orders = Worker(saver, port, rounds), rounds.orders(pair)
        for place in range(int(progress.read_text() or 0), len(orders)):
            order = name_of(orders[place])
            if is_shared(place):
                ask(port, "meet", order=order)
            if is_shared(place) or place // 2 % WORKERS == number:
                worker.run(order)
            progress.write_text(str(place + 1))


def is_shared(place: int) -> bool:
    """Whether both workers run an order, which has this place among those of their pair."""
    return place % 2 == 0


def name_of(index: int) -> str:
    """The name of an order, and of its thread."""
    return f"order {index}"


def begin(rounds: Rounds, pair: int) -> None:
    """Store the orders of a pair: threads whose next step is the charge."""
    with open_saver(rounds.database) as saver:
        graph = Worker(saver, 0, rounds).graph
        for index in rounds.orders(pair):
            config: Any = {"configurable": {"thread_id": name_of(index)}}
            graph.update_state(config, {"order": name_of(index)}, as_node=START)


def receive(listening: socket.socket, rounds: Rounds) -> None:
    """Be the receiver."""
    asyncio.run(Receiver(rounds).serve(listening))


def effect_rounds(rounds: Rounds, folder: Path) -> dict[str, Any]:
    """Let the workers run all orders, and look at the receiver and at the stored rows. Returns the figures."""
    for process in [in_child(partial(begin, rounds, pair)) for pair in range(rounds.pairs)]:
        finished(process)
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listening.getsockname()[1]
    receiver = in_child(partial(receive, listening, rounds))
    listening.close()
    begun = time.monotonic()
    try:
        lost_connections = supervise(rounds, port, folder)
        seconds = time.monotonic() - begun
        report = ask(port, "report")
    finally:
        os.kill(receiver, signal.SIGKILL)
        os.waitpid(receiver, 0)
    return {
        "way": rounds.way,
        "calls": rounds.calls,
        "seconds": round(seconds, 1),
        **{harm: report["figures"].pop(harm, 0) for harm in HARMS},
        **report["figures"],
        "lost connections": lost_connections,
        **looked_at(rounds, report["charges"]),
    }


def supervise(rounds: Rounds, port: int, folder: Path) -> int:
    """Start each worker that was killed again, until all have ended. Returns how many connections were lost."""
    chance = random.Random(rounds.seed)
    jobs: list[partial[None]] = []
    for pair, number in itertools.product(range(rounds.pairs), range(WORKERS)):
        progress = folder / f"worker {number} of pair {pair}"
        progress.write_text("0")
        jobs.append(partial(work, rounds, port, pair, number, progress))
    running = {in_child(job): job for job in jobs}
    lost, due = 0, time.monotonic() + chance.uniform(*DISTURBED)
    while running:
        process, status = next(
            (ended for ended in (os.waitpid(each, os.WNOHANG) for each in running) if ended[0]), (0, 0)
        )
        if process and os.WIFSIGNALED(status):
            job = running.pop(process)
            running[in_child(job)] = job
        elif process:
            del running[process]
            if status:
                raise SystemExit("a worker failed")
        elif "://" in rounds.database and time.monotonic() >= due:
            lost, due = lost + kill_connections(rounds.database), time.monotonic() + chance.uniform(*DISTURBED)
        else:
            time.sleep(0.005)
    return lost


def looked_at(rounds: Rounds, charges: dict[str, list[str]]) -> dict[str, int]:
    """Compare the counts of the receiver with the stored rows."""
    with open_saver(rounds.database) as saver:
        # Errors of tasks that a later error has replaced leave unused bytes, with and without effects.
        if problems := [each for each in saver.verify().problems if each.kind != "orphan"]:
            raise SystemExit(f"the stored data is damaged: {problems[:3]}")
        states = Counter(effect.state for effect in Effects(saver).list())
    if rounds.way != "langgraph" and states != {"done": rounds.calls}:
        raise SystemExit(f"of {rounds.calls} effects these are stored: {dict(states)}")
    charged = [len(charges.get(name_of(index), [])) for index in range(rounds.calls)]
    alone = (charged[index] for pair in range(rounds.pairs) for index in rounds.orders(pair)[1::2])
    return {
        "lost": sum(count == 0 for count in charged),
        "twice": sum(count > 1 for count in charged),
        "twice of those with one worker": sum(count > 1 for count in alone),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("database", help="'sqlite' for a fresh file, or the URL of an empty database")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--way", choices=["check", "idempotent", "raise", "langgraph"], default="check")
    parser.add_argument("--pairs", type=int, default=1, help="how many pairs of workers run at once")
    parser.add_argument("--ttl", type=float, default=TTL, help="how long a claim lives, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "effects.db") if asked.database == "sqlite" else asked.database
        rounds = Rounds(database, asked.calls, asked.way, asked.pairs, asked.ttl, asked.seed)
        result = effect_rounds(rounds, Path(folder))
    print(json.dumps({"backend": asked.database.partition(":")[0], **result}))
    sys.exit(asked.way != "langgraph" and bool(result["lost"] or result["twice"]))


if __name__ == "__main__":
    main()
