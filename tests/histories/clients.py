"""Clients that share threads: their calls, chosen by chance, each noted with its begin and its end.

All clients of a run, in whatever process, work on the same two threads for a short time, then on two new ones: each
history stays short enough to be searched. Nothing here waits: a step is a generator of `Ask`s, for either API.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, NamedTuple

from histories.spec import MISSING, NAMESPACES, SPECIAL, Did, Operation, Seen
from replication.actor import Ask
from threadmark import Checkpoint, new_id
from threadmark.program import aplay, play

SLOT = 250_000_000
"""The clients move to new threads after so many nanoseconds."""

Asking = Generator[Ask, Any, Any]
Versions = dict[str, Any]


class Known(NamedTuple):
    """A checkpoint that a client can go on from."""

    id: str
    seeds: tuple[int, ...]
    versions: Versions


NOTHING = Known("", (), {})


class Client:
    """One client. `copies`: its saver can copy threads. `deletes`: it deletes threads now and then."""

    def __init__(
        self, name: str, start: int, seed: str, next_version: Callable[..., Any], *, copies: bool, deletes: bool
    ) -> None:
        self.operations: list[Operation] = []
        self._name = name
        self._start = start
        self._seed_of_round = seed
        self._chance = random.Random(f"{seed} {name}")
        self._next_version = next_version
        self._copies = 0
        self._slot = -1
        self._known: dict[tuple[str, str], list[Known]] = defaultdict(list)
        self._actions: dict[Callable[[str, str], Asking], float] = {
            self._put: 6,
            self._put_writes: 5,
            self._newest: 2,
            self._get: 3,
            self._list: 2,
            self._copy: 0.4 if copies else 0,
            self._delete: 0.25 if deletes else 0,
        }

    def step(self) -> Asking:
        """Do one thing, which may take several calls."""
        slot = (time.monotonic_ns() - self._start) // SLOT
        if slot != self._slot:
            self._slot = slot
            self._known.clear()
        (action,) = self._chance.choices(list(self._actions), list(self._actions.values()))
        yield from action(f"{self._seed_of_round} {slot}.{self._chance.randrange(2)}", self._chance.choice(NAMESPACES))

    def _put(self, thread: str, ns: str) -> Asking:
        known = self._known[thread, ns]
        if self._chance.random() < _LOOKS_FIRST or not known:
            yield from self._newest(thread, ns)
        parent = known[-1] if known else NOTHING
        made = new_id()
        while made <= parent.id:
            made = new_id()
        first, second = self._seed(), self._seed()
        new = ["a", "b"] if not parent.id or self._chance.random() < _BOTH else ["a"]
        seeds = (first, second if "b" in new else parent.seeds[1])
        versions = {**parent.versions, **{name: self._next_version(parent.versions.get(name), None) for name in new}}
        asked = {"ns": ns, "id": made, "parent": parent.id, "seeds": seeds}
        args = _put_arguments(
            thread, ns, Known(made, seeds, versions), parent.id, {name: versions[name] for name in new}
        )
        done = yield from self._call("put", thread, asked, Ask("put", args))
        if done:
            known.append(Known(made, seeds, versions))
        else:
            known.clear()

    def _put_writes(self, thread: str, ns: str) -> Asking:
        target = self._chosen(thread, ns)
        if not target.id:
            return
        channels = (SPECIAL,) if self._chance.random() < _SPECIALS else ("w0", "w1", "w2")
        task = f"task {self._chance.randrange(3)}" if self._chance.random() < _CONTESTED else new_id()
        seeds = tuple(self._seed() for _ in channels)
        asked = {"ns": ns, "id": target.id, "task": task, "channels": channels, "seeds": seeds}
        writes = [(channel, value_of(seed)) for channel, seed in zip(channels, seeds, strict=True)]
        yield from self._call(
            "writes", thread, asked, Ask("put_writes", (_config(thread, ns, target.id), writes, task))
        )

    def _newest(self, thread: str, ns: str) -> Asking:
        asked = {"ns": ns, "limit": 1}
        done = yield from self._call("newest", thread, asked, Ask("get_tuple", (_config(thread, ns),)))
        if done and done[0] is not None:
            found = done[0]
            seeds = seen(found).seeds
            versions = dict(found.checkpoint["channel_versions"])
            if MISSING in seeds:
                self._known[thread, ns].clear()
            else:
                self._known[thread, ns].append(Known(found.checkpoint["id"], seeds, versions))
        elif done:
            self._known[thread, ns].clear()

    def _get(self, thread: str, ns: str) -> Asking:
        target = self._chosen(thread, ns)
        if target.id:
            asked = {"ns": ns, "id": target.id}
            yield from self._call("get", thread, asked, Ask("get_tuple", (_config(thread, ns, target.id),)))

    def _list(self, thread: str, ns: str) -> Asking:
        limit = self._chance.choice((2, 5, 20))
        yield from self._call("list", thread, {"ns": ns, "limit": limit}, Ask("list", (_config(thread, ns), limit)))

    def _copy(self, thread: str, _: str) -> Asking:
        """Copy a thread, and read the copy, which no other client uses."""
        self._copies += 1
        copy = f"{self._seed_of_round} copy {self._copies} of {self._name}"
        began = time.monotonic_ns()
        with suppress(Exception):  # a copy that failed was no answer; the count of the calls does not have it
            yield Ask("copy_thread", (thread, copy))
            ended = time.monotonic_ns()
            contents = yield from everything(copy)
            self.operations.append(Operation(self._name, "all", thread, began, ended, answer=contents))

    def _delete(self, thread: str, _: str) -> Asking:
        yield from self._call("delete", thread, {}, Ask("delete_thread", (thread,)))

    def _call(self, did: Did, thread: str, asked: dict[str, Any], ask: Ask) -> Generator[Ask, Any, tuple[Any] | None]:
        """Call the saver, and note its answer. Returns the answer in a tuple, None for an error."""
        call = Operation(self._name, did, thread, time.monotonic_ns(), math.inf, **asked)
        try:
            answer = yield ask
        except Exception as error:  # noqa: BLE001 - whatever it is, the journal has it, and the table counts it
            ended = time.monotonic_ns()
            call = call._replace(error=f"{type(error).__name__}: {error}"[:200])
            self.operations.append(call._replace(ended=ended) if call.reads else call)
            return None
        ended = time.monotonic_ns()
        self.operations.append(call._replace(ended=ended, answer=_shown(did, answer)))
        return (answer,)

    def _chosen(self, thread: str, ns: str) -> Known:
        known = self._known[thread, ns][-_REMEMBERED:]
        return self._chance.choice(known) if known else NOTHING

    def _seed(self) -> int:
        return self._chance.getrandbits(32)


_LOOKS_FIRST = 0.7
"""Before this part of the puts the client gets the newest checkpoint. Before the others it goes on from its own."""

_BOTH = 0.25
"""This part of the puts changes both channels; the others leave the second one as it is."""

_SPECIALS = 0.2
_CONTESTED = 0.5
"""In this part of the batches, other clients may write for the same task."""

_REMEMBERED = 3


def everything(thread: str) -> Generator[Ask, Any, tuple[Seen, ...]]:
    """Read all namespaces of a thread that is not changed any more."""
    contents: list[Seen] = []
    for ns in NAMESPACES:
        contents += [seen(each) for each in (yield Ask("list", (_config(thread, ns), None)))]
    return tuple(contents)


def take_step(asking: Asking, saver: Any) -> Any:
    """Ask a saver, with the blocking API."""
    return play(asking, lambda ask: _list(saver, *ask.args) if ask.method == "list" else _method(saver, ask)(*ask.args))


async def atake_step(asking: Asking, saver: Any) -> Any:
    """Like `take_step`, for asyncio."""

    async def call(ask: Ask) -> Any:
        if ask.method == "list":
            return [each async for each in saver.alist(ask.args[0], limit=ask.args[1])]
        return await _method(saver, Ask(f"a{ask.method}", ask.args))(*ask.args)

    return await aplay(asking, call)


def _method(saver: Any, ask: Ask) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(saver, ask.method)
    return found


def _list(saver: Any, config: dict[str, Any], limit: int | None) -> list[Any]:
    return list(saver.list(config, limit=limit))


def _shown(did: Did, answer: Any) -> tuple[Seen, ...]:
    if did in ("newest", "get"):
        return (seen(answer),) if answer is not None else ()
    return tuple(seen(each) for each in answer) if did == "list" else ()


def seen(found: Any) -> Seen:
    """A checkpoint that a saver returned, in short."""
    config, values = found.config["configurable"], found.checkpoint["channel_values"]
    seeds = tuple(_seed_of(values.get(name)) for name in ("a", "b"))
    if list(seeds) != found.metadata.get("seeds"):
        seeds = (MISSING, MISSING)
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else ""
    writes = sorted((task, channel, _seed_of(value)) for task, channel, value in found.pending_writes or ())
    return Seen(config["checkpoint_ns"], config["checkpoint_id"], parent, seeds, tuple(writes))


def value_of(seed: int) -> dict[str, Any]:
    """The value that a seed stands for: no plain number, so that a saver may store it elsewhere."""
    return {"seed": seed, "text": f"{seed} " * 40}


def _seed_of(value: Any) -> int:
    seed = value.get("seed") if isinstance(value, dict) else None
    return seed if isinstance(seed, int) and value == value_of(seed) else MISSING


def _config(thread: str, ns: str, checkpoint: str = "") -> dict[str, Any]:
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, **named}}


def _put_arguments(thread: str, ns: str, made: Known, parent: str, new_versions: Versions) -> tuple[Any, ...]:
    checkpoint = Checkpoint(
        v=4,
        id=made.id,
        ts="2026-01-01T00:00:00+00:00",
        channel_values={name: value_of(seed) for name, seed in zip(("a", "b"), made.seeds, strict=True)},
        channel_versions=made.versions,
        versions_seen={},
        updated_channels=None,
    )
    return _config(thread, ns, parent), checkpoint, {"seeds": list(made.seeds)}, new_versions
