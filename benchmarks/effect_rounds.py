"""Effect rounds: two workers run orders whose charge must happen once, and a receiver that counts harms them.

    python benchmarks/effect_rounds.py sqlite --calls 1000 --way check
    python benchmarks/effect_rounds.py postgresql://... --way idempotent
    python benchmarks/effect_rounds.py redis://... --way raise
    python benchmarks/effect_rounds.py sqlite --way langgraph

The receiver kills a worker before or after it counts its charge, or a little later; stops it for longer than its claim
lives; closes the connection before or after it counts. On a server, all connections to the database are lost now and
then. Half of the orders are run by both workers at once, without a lease. Each way is one to go on from a call of which
it is not known whether it happened:

    check       the worker asks the receiver whether it has counted the charge
    idempotent  the charge is made again, and the receiver compares keys
    raise       an operator reads the error, looks at the receiver, and settles the effect
    langgraph   without Effects: a graph with our checkpointer, resumed as it is

Afterwards every order must have been charged once, except in the last way, which shows the difference.
"""

import argparse
import asyncio
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
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from lease_rounds import finished, in_child, kill_connections, open_saver
from threadmark import ConflictError, EffectLostError, Effects, EffectUnknownError, Saver, StoreError
from threadmark_langgraph import Checkpointer

WORKERS = 2
TTL = 0.4
STOPPED = 3 * TTL
"""How long a worker is stopped."""

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


class Receiver:
    """The service that charges. It counts, and harms its callers."""

    def __init__(self, chance: random.Random, *, compares_keys: bool) -> None:
        self._chance = chance
        self._compares_keys = compares_keys
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
            asyncio.get_running_loop().call_later(STOPPED, self._signal, process, signal.SIGCONT)
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

    def __init__(self, saver: Saver, port: int, way: str) -> None:
        self._port = port
        self._way = way
        self._effects = Effects(saver, claim_ttl=TTL, on_unknown="run" if way == "idempotent" else "raise")
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


def work(database: str, port: int, way: str, number: int, progress: Path, calls: int) -> None:
    """Be one of the workers."""
    with open_saver(database) as saver:
        worker = Worker(saver, port, way)
        for index in range(int(progress.read_text() or 0), calls):
            if is_shared(index):
                ask(port, "meet", order=name_of(index))
            if is_shared(index) or index // 2 % WORKERS == number:
                worker.run(name_of(index))
            progress.write_text(str(index + 1))


def is_shared(index: int) -> bool:
    """Whether both workers run an order."""
    return index % 2 == 0


def name_of(index: int) -> str:
    """The name of an order, and of its thread."""
    return f"order {index}"


def begin(database: str, calls: int) -> None:
    """Store the orders: threads whose next step is the charge."""
    with open_saver(database) as saver:
        graph = Worker(saver, 0, "check").graph
        for index in range(calls):
            config: Any = {"configurable": {"thread_id": name_of(index)}}
            graph.update_state(config, {"order": name_of(index)}, as_node=START)


def receive(listening: socket.socket, seed: int, *, compares_keys: bool) -> None:
    """Be the receiver."""
    asyncio.run(Receiver(random.Random(seed), compares_keys=compares_keys).serve(listening))


def effect_rounds(database: str, way: str, calls: int, folder: Path, seed: int) -> dict[str, Any]:
    """Let the workers run all orders, and look at the receiver and at the stored rows. Returns the figures."""
    finished(in_child(partial(begin, database, calls)))
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listening.getsockname()[1]
    receiver = in_child(partial(receive, listening, seed, compares_keys=way == "idempotent"))
    listening.close()
    begun = time.monotonic()
    try:
        lost_connections = supervise(database, port, way, folder, calls, random.Random(seed))
        seconds = time.monotonic() - begun
        report = ask(port, "report")
    finally:
        os.kill(receiver, signal.SIGKILL)
        os.waitpid(receiver, 0)
    return {
        "way": way,
        "calls": calls,
        "seconds": round(seconds, 1),
        **{harm: report["figures"].pop(harm, 0) for harm in HARMS},
        **report["figures"],
        "lost connections": lost_connections,
        **looked_at(database, way, calls, report["charges"]),
    }


def supervise(database: str, port: int, way: str, folder: Path, calls: int, chance: random.Random) -> int:
    """Start each worker that was killed again, until all have ended. Returns how many connections were lost."""
    progress = [folder / f"worker {number}" for number in range(WORKERS)]
    for each in progress:
        each.write_text("0")
    jobs = [partial(work, database, port, way, n, progress[n], calls) for n in range(WORKERS)]
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
        elif "://" in database and time.monotonic() >= due:
            lost, due = lost + kill_connections(database), time.monotonic() + chance.uniform(*DISTURBED)
        else:
            time.sleep(0.005)
    return lost


def looked_at(database: str, way: str, calls: int, charges: dict[str, list[str]]) -> dict[str, int]:
    """Compare the counts of the receiver with the stored rows."""
    with open_saver(database) as saver:
        # Errors of tasks that a later error has replaced leave unused bytes, with and without effects.
        if problems := [each for each in saver.verify().problems if each.kind != "orphan"]:
            raise SystemExit(f"the stored data is damaged: {problems[:3]}")
        states = Counter(effect.state for effect in Effects(saver).list())
    if way != "langgraph" and states != {"done": calls}:
        raise SystemExit(f"of {calls} effects these are stored: {dict(states)}")
    charged = [len(charges.get(name_of(index), [])) for index in range(calls)]
    return {
        "lost": sum(count == 0 for count in charged),
        "twice": sum(count > 1 for count in charged),
        "twice of those with one worker": sum(n > 1 for index, n in enumerate(charged) if not is_shared(index)),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("database", help="'sqlite' for a fresh file, or the URL of an empty database")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--way", choices=["check", "idempotent", "raise", "langgraph"], default="check")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "effects.db") if asked.database == "sqlite" else asked.database
        result = effect_rounds(database, asked.way, asked.calls, Path(folder), asked.seed)
    print(json.dumps({"backend": asked.database.partition(":")[0], **result}))
    sys.exit(asked.way != "langgraph" and bool(result["lost"] or result["twice"]))


if __name__ == "__main__":
    main()
