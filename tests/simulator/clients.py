"""The programs of clients: each operation is chosen by its own seed, so that to leave one out changes no other.

All clients share a few threads. Every stored value can be made again from the seeds in its metadata.
"""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, NamedTuple

from replication.actor import REMEMBERED, Newest, config_of, put_arguments, text_of, values_of
from simulator.history import NOW, Call, History, Seen
from threadmark import CheckpointTuple, Saver, ThreadmarkError, new_id
from threadmark.leases.taking import OnBusy

THREADS = ("one", "two")
LEASED = "leased"
"""The thread that is written to under leases only."""
NAMESPACES = ("", "inner")
DELTA_CHANNEL = "delta"
"""A channel that is kept as its changes."""

KINDS = {
    "put": 14,
    "put_old": 7,
    "put_writes": 8,
    "get": 5,
    "get_old": 3,
    "list": 3,
    "extract": 1,
    "lease": 5,
    "prune": 5,
    "retention": 1,
    "copy": 2,
    "fork": 2,
    "branch": 2,
    "delete_checkpoint": 3,
    "delete": 2,
}
"""How often each kind of operation is chosen."""


class Operation(NamedTuple):
    """One thing that a client does, in one call or more."""

    number: int
    client: int
    kind: str
    seed: str


class Client:
    """Does its operations one after the other, on the saver of the process that it is in."""

    def __init__(self, name: str, operations: list[Operation], pace: float, history: History, owner: str = "") -> None:
        self.name = name
        self.owner = owner
        """The only one whose threads it may see, "" for all."""
        self._left = operations
        self._pace = pace
        self._history = history
        self._known: dict[str, dict[tuple[str, str], tuple[int, ...]]] = {}
        """The checkpoints of each thread that it has put or got, with the seeds of their values."""
        self._saver: Saver
        self._number = 0
        self._chance = random.Random(name)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self._left

    async def work(self, saver: Saver) -> None:
        """Do the rest of its operations."""
        self._saver = saver.for_owner(self.owner) if self.owner else saver
        while self._left:
            operation = self._left.pop(0)
            self._number, self._chance = operation.number, random.Random(operation.seed)
            await asyncio.sleep(self._chance.expovariate(self._pace))
            await getattr(self, f"_{operation.kind}")()

    async def _put(self) -> None:
        thread, ns = self._thread(), self._chance.choice(NAMESPACES)
        answered, newest = await self._newest(thread, ns)
        if answered:
            await self._think()
            await self._put_after(thread, ns, newest)

    async def _think(self) -> None:
        """Compute from a state, in which time others may remove it."""
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.1)))

    async def _put_old(self) -> None:
        """Put to a checkpoint from memory: it may not be the newest, or may be gone."""
        thread, ns, checkpoint = self._some_known()
        if checkpoint:
            seeds = self._known[thread][ns, checkpoint]
            await self._put_after(thread, ns, Seen(thread, ns, checkpoint, "", seeds, "", frozenset()))

    async def _put_after(self, thread: str, ns: str, parent: Seen | None, lease: int = 0) -> Call:
        seeds = parent.seeds if parent else ()
        above = parent.id if parent else ""
        made = Newest(new_id(), (*seeds[1 - REMEMBERED :], self._chance.getrandbits(32)))
        call = self._begin("put", thread, ns=ns, id=made.id, parent=above, seeds=made.seeds, lease=lease)
        config, *rest = arguments_of(thread, ns, made, above)
        if lease:
            config["configurable"]["lease_token"] = lease
        await self._end(call, self._saver.aput(config, *rest))
        self._know(thread, ns, made.id, made.seeds)
        return call

    async def _put_writes(self) -> None:
        thread, ns, checkpoint = self._some_known()
        if not checkpoint:
            return
        seeds = tuple(self._chance.getrandbits(32) for _ in range(self._chance.randrange(1, 4)))
        task = new_id()
        call = self._begin("put_writes", thread, ns=ns, id=checkpoint, task=task, seeds=seeds)
        writes = [(f"written {seed}", text_of(seed)) for seed in seeds]
        await self._end(call, self._saver.aput_writes(config_of(thread, ns, checkpoint), writes, task))

    async def _get(self) -> None:
        await self._newest(self._thread(), self._chance.choice(NAMESPACES))

    async def _get_old(self) -> None:
        thread, ns, checkpoint = self._some_known()
        if checkpoint:
            await self._read(thread, ns, checkpoint)

    async def _list(self) -> None:
        thread = self._chance.choice((*THREADS, LEASED))
        call = self._begin("list", thread)
        await self._end(call, self._listed(call, thread))

    async def _listed(self, call: Call, thread: str) -> None:
        async for item in self._saver.alist({"configurable": {"thread_id": thread}}):
            if item.metadata.get("source") != "effect":
                call.found.append(seen(thread, item))

    async def _extract(self) -> None:
        thread = self._thread()
        await self._end(self._begin("extract", thread), self._saver.aextract(thread, "count", 0))

    async def _prune(self) -> None:
        thread, keeps = self._chance.choice((*THREADS, LEASED)), self._chance.randrange(1, 4)
        call = self._begin("prune", thread, keeps=keeps)
        await self._end(call, self._saver.aprune([thread], keep_last=keeps))

    async def _retention(self) -> None:
        keeps = self._chance.randrange(2, 5)
        call = self._begin("retention", "", keeps=keeps)
        await self._end(call, self._saver.aapply_retention(keep_last=keeps))

    async def _copy(self) -> None:
        thread, target = self._chance.choice((*THREADS, LEASED)), f"copy {self._number}"
        call = self._begin("copy", thread, target=target)
        await self._end(call, self._saver.acopy_thread(thread, target))

    async def _fork(self) -> None:
        thread, ns, checkpoint = self._some_known()
        if checkpoint and not ns:  # a new thread begins at a checkpoint of the graph itself
            call = self._begin("fork", thread, ns=ns, id=checkpoint, target=f"fork {self._number}")
            await self._end(call, self._saver.afork(config_of(thread, ns, checkpoint), as_thread=call.target))

    async def _branch(self) -> None:
        thread, ns, checkpoint = self._some_known()
        if checkpoint:
            call = self._begin("branch", thread, ns=ns, id=checkpoint)
            await self._end(call, self._saver.afork(config_of(thread, ns, checkpoint)))
            if call.acknowledged:
                made = call.value["configurable"]["checkpoint_id"]
                self._know(thread, ns, made, self._known[thread][ns, checkpoint])

    async def _delete(self) -> None:
        thread = self._thread()
        await self._end(self._begin("delete", thread), self._saver.adelete_thread(thread))

    async def _delete_checkpoint(self) -> None:
        thread, ns, checkpoint = self._some_known()
        if checkpoint:
            call = self._begin("delete_checkpoint", thread, ns=ns, id=checkpoint)
            await self._end(call, self._saver.adelete_checkpoint(config_of(thread, ns, checkpoint)))

    async def _lease(self) -> None:
        """Put a few checkpoints one after the other, while no other holder may."""
        ways: list[OnBusy] = ["wait", "wait", "interrupt", "reject"]
        on_busy = self._chance.choice(ways)
        call = self._begin("lease", LEASED)
        NOW.set(call)
        patience = 3.0 if on_busy == "wait" else None
        try:
            async with self._saver.lease(LEASED, on_busy=on_busy, ttl=1.0, timeout=patience, holder=self.name) as lease:
                call.lease, call.answer, call.ended = lease.token, "acknowledged", self._history.clock()
                await self._put_under(lease.token)
        except ThreadmarkError as error:
            if not call.acknowledged:
                call.answer, call.error, call.ended = "raised", _words(error), self._history.clock()
            # A lease that was lost is noticed at the end of its block at the latest.

    async def _put_under(self, token: int) -> None:
        for _ in range(self._chance.randrange(1, 4)):
            answered, newest = await self._newest(LEASED, "")
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 1.2)))
            if not answered or not (await self._put_after(LEASED, "", newest, token)).acknowledged:
                return

    async def _newest(self, thread: str, ns: str) -> tuple[bool, Seen | None]:
        call = self._begin("get", thread, ns=ns)
        await self._end(call, self._got(call, thread, ns, ""))
        return call.acknowledged, call.found[0] if call.found else None

    async def _read(self, thread: str, ns: str, checkpoint: str) -> Seen | None:
        call = self._begin("get_old", thread, ns=ns, id=checkpoint)
        await self._end(call, self._got(call, thread, ns, checkpoint))
        return call.found[0] if call.found else None

    async def _got(self, call: Call, thread: str, ns: str, checkpoint: str) -> None:
        item = await self._saver.aget_tuple(config_of(thread, ns, checkpoint))
        if item is not None:
            call.found.append(seen(thread, item))
            self._know(thread, ns, call.found[-1].id, call.found[-1].seeds)

    def _begin(self, did: str, thread: str, **what: Any) -> Call:
        return self._history.begin(self._number, self.name, did, thread, owner=self.owner, **what)

    async def _end(self, call: Call, answer: Awaitable[Any]) -> None:
        NOW.set(call)
        try:
            value = await answer
        except (ThreadmarkError, PermissionError) as error:
            call.answer, call.error = "raised", _words(error)
        except Exception as error:  # noqa: BLE001 - the model objects to it
            call.answer, call.error = "broken", _words(error)
        else:
            call.answer, call.value = "acknowledged", value if call.did not in ("prune", "retention") else None
        call.ended = self._history.clock()

    def _thread(self) -> str:
        return self._chance.choice(THREADS)

    def _some_known(self) -> tuple[str, str, str]:
        thread = self._thread()
        known = self._known.get(thread)
        if not known:
            return thread, "", ""
        return thread, *self._chance.choice(list(known)[-6:])

    def _know(self, thread: str, ns: str, checkpoint: str, seeds: tuple[int, ...]) -> None:
        self._known.setdefault(thread, {})[ns, checkpoint] = seeds


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def is_unfinished(seeds: tuple[int, ...]) -> bool:
    """Whether a node is still to run after a checkpoint of these seeds: it has not seen the messages."""
    return bool(seeds) and seeds[-1] % 3 == 0


def arguments_of(thread: str, ns: str, made: Newest, parent: str) -> tuple[Any, ...]:
    """The arguments of a put by an engine, in whose graph a node is triggered by the messages."""
    config, checkpoint, *rest = put_arguments(thread, ns, made, parent)
    checkpoint["versions_seen"] = {"step": {"messages": "" if is_unfinished(made.seeds) else made.id}}
    return config, checkpoint, *rest


def delta_of(seed: int) -> str:
    """Return the text that a step writes to a delta channel."""
    return f"{seed} {text_of(seed)}"


def seen(thread: str, item: CheckpointTuple) -> Seen:
    """Return a checkpoint as the history has it."""
    place, seeds = item.config["configurable"], tuple(item.metadata["seeds"])
    above = item.parent_config["configurable"]["checkpoint_id"] if item.parent_config else ""
    values = {name: each for name, each in item.checkpoint["channel_values"].items() if name != DELTA_CHANNEL}
    wrong = "" if values == values_of(seeds) else "its values are not those that were put"
    written: dict[str, list[int]] = {}
    for task, channel, value in item.pending_writes or []:
        seed = int(value.partition(" ")[0] if channel == DELTA_CHANNEL else channel.rpartition(" ")[2])
        written.setdefault(task, []).append(seed)
        if value != (delta_of(seed) if channel == DELTA_CHANNEL else text_of(seed)):
            wrong = wrong or f"the value of {channel!r} is not the one that was written"
    tasks = frozenset(f"{task} {sorted(some)}" for task, some in written.items())
    return Seen(thread, place["checkpoint_ns"], place["checkpoint_id"], above, seeds, wrong, tasks)
