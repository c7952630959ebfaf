"""The calls of one worker: puts, writes, gets, prunings and deletions, chosen by a seed, and noted in a journal.

Nothing here calls a saver: a step is a generator of `Ask`s, which is played for either API, in a thread of a test or in
a separate process. All stored values can be made again from seeds in the metadata.
"""

import random
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from replication.journal import Did, Journal
from threadmark import Checkpoint, ThreadmarkError, new_id
from threadmark.program import aplay, play

NAMESPACES = ("", "inner")
REMEMBERED = 8
"""So many texts a state has: a step brings a new one, and the oldest goes."""


class Ask(NamedTuple):
    """A method of the saver that is to be called."""

    method: str
    args: tuple[Any, ...]


Steps = Generator[Ask, Any, None]


class Newest(NamedTuple):
    """The checkpoint that a worker goes on from."""

    id: str
    seeds: tuple[int, ...]


class OwnThread:
    """A thread without other writers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.newest: dict[str, Newest] = {}
        self.made: dict[str, list[str]] = {}
        """All checkpoints that were put to it, whatever became of them."""
        self.uncertain = False
        """Whether it must be asked which checkpoints are the newest, because a call failed."""


class Actor:
    """One worker. Its threads are its own, but for those that are shared, to which it only adds."""

    def __init__(self, seed: str, journal: Journal, shared: tuple[str, ...] = (), *, deletions: int = 1) -> None:
        self._chance = random.Random(f"{seed} {journal.worker}")
        self._journal = journal
        self._shared = shared
        self._made = 0
        self._threads = [self._new_thread() for _ in range(2)]
        self._actions: dict[Callable[[], Steps], int] = {
            self._put: 10,
            self._put_writes: 4,
            self._put_shared: 3 if shared else 0,
            self._get: 2,
            self._delete: deletions,
            self._delete_checkpoint: 2,
            self._prune: 1,
            self._mistake: 1,
        }

    def step(self) -> Steps:
        """Do one thing, which may take several calls."""
        (action,) = self._chance.choices(list(self._actions), list(self._actions.values()))
        return action()

    def _put(self) -> Steps:
        thread, ns = self._chance.choice(self._threads), self._chance.choice(NAMESPACES)
        yield from self._settle(thread)
        if not thread.uncertain:
            yield from self._put_after(thread, ns)

    def _put_after(self, thread: OwnThread, ns: str) -> Steps:
        newest = thread.newest.get(ns, Newest("", ()))
        made = Newest(new_id(), (*newest.seeds[1 - REMEMBERED :], self._chance.getrandbits(32)))
        number = self._note_put(thread.name, ns, made, newest.id)
        thread.uncertain = True
        thread.made.setdefault(ns, []).append(made.id)
        if (yield from self._ask(number, "put", *put_arguments(thread.name, ns, made, newest.id))) is not None:
            thread.newest[ns], thread.uncertain = made, False

    def _put_shared(self) -> Steps:
        """Add to a thread to which others add as well: one that does not see the other's makes a branch."""
        name = self._chance.choice(self._shared)
        newest: list[Newest | None] = []
        yield from self._look(name, "", newest)
        if newest:
            parent = newest[0] or Newest("", ())
            made = Newest(new_id(), (*parent.seeds[1 - REMEMBERED :], self._chance.getrandbits(32)))
            number = self._note_put(name, "", made, parent.id)
            yield from self._ask(number, "put", *put_arguments(name, "", made, parent.id))

    def _put_writes(self) -> Steps:
        thread = self._chance.choice(self._threads)
        yield from self._settle(thread)
        if thread.uncertain or not thread.newest:
            return
        ns = self._chance.choice(sorted(thread.newest))
        newest, seeds = thread.newest[ns], tuple(self._chance.getrandbits(32) for _ in range(2))
        task = new_id()
        number = self._journal.begin(
            "put_writes", thread=thread.name, ns=ns, checkpoint=newest.id, task=task, seeds=seeds
        )
        writes = [(f"written {seed}", text_of(seed)) for seed in seeds]
        done = yield from self._ask(number, "put_writes", config_of(thread.name, ns, newest.id), writes, task)
        thread.uncertain = thread.uncertain or done is None

    def _get(self) -> Steps:
        thread = self._chance.choice(self._threads)
        yield from self._look(thread.name, self._chance.choice(NAMESPACES), [])

    def _delete(self) -> Steps:
        thread = self._chance.choice(self._threads)
        number = self._journal.begin("delete", thread=thread.name)
        done = yield from self._ask(number, "delete_thread", thread.name)
        if done is not None and self._chance.random() < _MADE_ANEW:
            thread.newest, thread.uncertain = {}, False
        else:
            self._forget(thread)

    def _delete_checkpoint(self) -> Steps:
        """Delete one that this worker put: the newest that it knows of, or an older one, which may be gone."""
        thread, ns = self._chance.choice(self._threads), self._chance.choice(NAMESPACES)
        yield from self._settle(thread)
        made = thread.made.get(ns)
        if thread.uncertain or not made:
            return
        chosen = made[-1] if self._chance.random() < _NEWEST else self._chance.choice(made)
        number = self._journal.begin("delete_checkpoint", thread=thread.name, ns=ns, checkpoint=chosen)
        yield from self._ask(number, "delete_checkpoint", config_of(thread.name, ns, chosen))
        thread.uncertain = True

    def _prune(self) -> Steps:
        thread = self._chance.choice(self._threads)
        number = self._journal.begin("prune", thread=thread.name)
        if (yield from self._ask(number, "prune", [thread.name])) is None:
            thread.uncertain = True

    def _mistake(self) -> Steps:
        """A caller's mistake, for which no database is to blame."""
        thread = self._chance.choice(self._threads).name
        method, *args = self._chance.choice(
            [
                ("put", *put_arguments(thread, "", Newest(new_id(), ()), "", {"messages": lambda: None})),
                ("put", {"configurable": {}}, {}, {}, {}),
                ("put_writes", config_of(thread, "", "0"), [("a", object())], "task"),
                (
                    "put",
                    *put_arguments(thread, "", Newest(new_id(), ()), "", {"messages": OwnThread("no plain value")}),
                ),
                ("put", *put_arguments(thread, "", Newest("", ()), "")),
            ]
        )
        yield from self._ask(self._journal.begin("mistake", thread=thread), str(method), *args)

    def _settle(self, thread: OwnThread) -> Steps:
        """Find the state of a thread, after a call whose outcome is not known."""
        for ns in NAMESPACES if thread.uncertain else ():
            newest: list[Newest | None] = []
            yield from self._look(thread.name, ns, newest)
            if not newest:
                return
            thread.newest.pop(ns, None)
            if newest[0]:
                thread.newest[ns] = newest[0]
        thread.uncertain = False

    def _look(self, name: str, ns: str, newest: list[Newest | None]) -> Steps:
        """Get the newest checkpoint, and add it, or None for none, to the list; nothing if the saver failed."""
        number = self._journal.begin("get", thread=name, ns=ns)
        answer = yield from self._ask(number, "get_tuple", config_of(name, ns))
        if answer is not None:
            found = answer[0]
            newest.append(found and Newest(found.checkpoint["id"], tuple(found.metadata["seeds"])))

    def _ask(self, number: int, method: str, *args: Any) -> Generator[Ask, Any, tuple[Any] | None]:
        """Call the saver, and note its answer. Returns the answer in a tuple, None for an error."""
        try:
            answer = yield Ask(method, args)
        except ThreadmarkError as error:
            self._journal.end(number, "raised", _words(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the journal has it, and the checker objects
            self._journal.end(number, "broken", _words(error))
        else:
            self._journal.end(number, "acknowledged", *_shown(method, answer))
            return (answer,)
        return None

    def _note_put(self, thread: str, ns: str, made: Newest, parent: str) -> int:
        did: Did = "put"
        return self._journal.begin(did, thread=thread, ns=ns, checkpoint=made.id, parent=parent, seeds=made.seeds)

    def _new_thread(self) -> OwnThread:
        self._made += 1
        return OwnThread(f"{self._journal.worker}.{self._made}")

    def _forget(self, thread: OwnThread) -> None:
        self._threads[self._threads.index(thread)] = self._new_thread()


_NEWEST = 0.5
"""In this part of the deletions of a checkpoint, it is the newest."""

_MADE_ANEW = 0.5
"""After this part of the deletions the same thread is begun again."""


def take_step(actor: Actor, saver: Any) -> None:
    """Have an actor do one thing, with the blocking API."""
    play(actor.step(), lambda ask: getattr(saver, ask.method)(*ask.args))


async def atake_step(actor: Actor, saver: Any) -> None:
    """Like `take_step`, for asyncio."""
    await aplay(actor.step(), lambda ask: getattr(saver, f"a{ask.method}")(*ask.args))


def config_of(thread: str, ns: str, checkpoint: str = "") -> dict[str, Any]:
    """A run's configuration."""
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, **named}}


def put_arguments(
    thread: str, ns: str, made: Newest, parent: str, values: dict[str, Any] | None = None
) -> tuple[Any, ...]:
    """The arguments of `put`."""
    versions = {"messages": made.id, "count": made.id}
    checkpoint = Checkpoint(
        v=4,
        id=made.id,
        ts="2026-01-01T00:00:00+00:00",
        channel_values=values or values_of(made.seeds),
        channel_versions={**versions},
        versions_seen={},
        updated_channels=None,
    )
    return config_of(thread, ns, parent), checkpoint, {"seeds": list(made.seeds)}, versions


def values_of(seeds: tuple[int, ...]) -> dict[str, Any]:
    """The state that these seeds stand for."""
    return {"messages": [text_of(seed) for seed in seeds], "count": len(seeds)}


def text_of(seed: int) -> str:
    """A text of up to some thousand characters; some are too short for a segment."""
    chance = random.Random(seed)
    return chance.randbytes(chance.choice((10, 100, 1000))).hex()


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _shown(method: str, answer: Any) -> tuple[str]:
    if method == "get_tuple":
        mark = answer.config["configurable"].get("__read_from", "") if answer else ""
        return (f"{answer.checkpoint['id'] if answer else ''} {mark}",)
    return (str(answer) if method in ("delete_thread", "delete_checkpoint", "prune") else "",)
