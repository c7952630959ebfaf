"""The contents of one of two databases, read past the pair: by a saver over this database alone."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from replication.actor import text_of, values_of
from threadmark import CheckpointTuple, CorruptDataError, Saver
from threadmark.program import Program, Transaction
from threadmark.replication.entries import Touched
from threadmark.replication.others import is_other
from threadmark.store.contract import Key, Outline, Scope
from threadmark.store.replica import Entry, Replica, Summary, Waiting

_ALL = 1_000_000


class SeenThread(NamedTuple):
    """The checkpoints and writes of one thread, as a caller gets them."""

    parents: dict[Key, str]
    """By the key of each checkpoint, the id of its parent."""
    seeds: dict[Key, tuple[int, ...]]
    tasks: frozenset[str]
    """Those of which there are pending writes."""


class Look:
    """One database of a pair, seen without the other one."""

    def __init__(self, name: str, saver: Saver) -> None:
        self.name = name
        self.saver = saver

    def thread(self, thread_id: str) -> tuple[SeenThread, list[str]]:
        """Read a thread whole. Returns it, and the names of wrong values."""
        parents: dict[Key, str] = {}
        seeds: dict[Key, tuple[int, ...]] = {}
        tasks: set[str] = set()
        wrong: list[str] = []
        for item in self._readable(thread_id, wrong):
            place = item.config["configurable"]
            key = place["checkpoint_ns"], place["checkpoint_id"]
            parents[key] = item.parent_config["configurable"]["checkpoint_id"] if item.parent_config else ""
            seeds[key] = tuple(item.metadata["seeds"])
            written = item.pending_writes or []
            tasks |= {task for task, _, _ in written}
            if item.checkpoint["channel_values"] != values_of(seeds[key]):
                wrong.append(f"{self.name}: {thread_id}: checkpoint {key} has other values than were put")
            if any(channel != f"written {value_seed(channel)}" for _, channel, _ in written) or any(
                value != text_of(value_seed(channel)) for _, channel, value in written
            ):
                wrong.append(f"{self.name}: {thread_id}: writes of {key} have other values than were put")
        return SeenThread(parents, seeds, frozenset(tasks)), wrong

    def _readable(self, thread_id: str, wrong: list[str]) -> Iterator[CheckpointTuple]:
        """All of a thread up to a damaged part, which is noted."""
        try:
            yield from self.saver.list({"configurable": {"thread_id": thread_id}})
        except CorruptDataError as error:
            wrong.append(f"{self.name}: {error}")

    def orphans(self, thread_id: str) -> list[tuple[Key, str]]:
        """Return the checkpoints whose parent is not there, with its id, all as of one moment."""
        outlines = self._run(partial(self._outlines, thread_id), writes=False)
        there = {outline.key for outline in outlines}
        return [(each.key, each.parent or "") for each in outlines if (each.parent_key or each.key) not in there]

    def problems(self, thread_ids: Iterable[str] | None = None) -> list[str]:
        """Return the findings of `verify` in these threads, or in all. Unused segments are no objection.

        A put that was begun on one side and done again on the other one may have been cut into other segments there:
        when both are merged, one checkpoint stays, and both its segments and the other one's.
        """
        chosen: list[str | None] = [None] if thread_ids is None else list(thread_ids)
        verified = [self.saver.verify(each, decode=True) for each in chosen]
        found = [each for one in verified for each in (*one.problems, *one.unreadable)]
        return [f"{self.name}: {each}" for each in found if each.kind != "orphan"]

    def summaries(self) -> dict[str, Summary]:
        """Return the summary of each live thread, without the parts that may differ between two databases."""
        found: list[Summary] = self._run(lambda: self._store.summaries("", _ALL), writes=False)
        return {each.thread_id: each._replace(epoch=0, position=0) for each in found}

    def replica(self) -> Replica:
        """Return the term that it holds."""
        replica: Replica = self._run(self._store.replica, writes=False)
        return replica

    def waiting(self) -> Waiting:
        """Return how much is in its outbox."""
        waiting: Waiting = self._run(self._store.waiting, writes=False)
        return waiting

    def changes_waiting(self) -> int:
        """Return how many changes of threads are in its outbox. The note of a merge is none."""
        entries: list[Entry] = self._run(lambda: self._store.outbox(None, _ALL), writes=False)
        threads = [entry for entry in entries if not is_other(entry.thread_id)]
        return sum(not Touched.from_bytes(entry.body).merged for entry in threads)

    @property
    def _store(self) -> Any:
        return self.saver._store

    def _outlines(self, thread_id: str) -> Program[list[Outline]]:
        outlines: list[Outline] = yield from self._store.page(Scope(thread_id), None, _ALL)
        return outlines

    def _run(self, program: Any, *, writes: bool) -> Any:
        return self.saver._driver.run(Transaction(program, writes=writes))


def value_seed(channel: str) -> int:
    """Return the seed that a channel of a pending write is named after."""
    return int(channel.rpartition(" ")[2])


def unequal(one: Look, other: Look) -> list[str]:
    """Return the threads that are not the same in both."""
    ours, theirs = one.summaries(), other.summaries()
    return [
        f"{thread_id}: {one.name} has {ours.get(thread_id)}, {other.name} has {theirs.get(thread_id)}"
        for thread_id in sorted(ours.keys() | theirs.keys())
        if ours.get(thread_id) != theirs.get(thread_id)
    ]
