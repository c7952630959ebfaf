"""Judges the contents of two databases by the calls of workers and their answers.

It knows every call. So it decides for each checkpoint, and each batch of writes, whether it must be there, must not
be there, or may be either: because the call that put it or removed it did not end well, or because two sides that could
not see each other got different calls. Every rule returns its objections, in words.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from replication.journal import Call
from replication.look import SeenThread

Fate = Literal["required", "either", "gone"]

Mode = Literal["sync", "async"]

Thing = tuple[str, str, str, str]
"""(thread, namespace, checkpoint, task): a batch of writes, or if the task is "" a checkpoint."""

REFUSALS = ("ReplicationError", "TransientStoreError", "StoreError", "StaleTermError")
"""Errors that are a database's."""

NO_MISTAKE = (*REFUSALS, "ClosedError", "CorruptDataError", "ThreadDeletedError", "ConflictError", "LeaseLostError")
"""Errors that a mistake of the caller must not lead to."""


class Failover(NamedTuple):
    """Between these two moments the writes moved to the other side."""

    began: float
    ended: float


class Failovers:
    """Notes the failovers of a round."""

    def __init__(self, mode: Mode, term: int) -> None:
        self.noted: list[Failover] = []
        self._mode = mode
        self._seen = (term, time.monotonic())
        """The greatest term that was seen last, and when."""

    def note(self, terms: Sequence[int | None]) -> None:
        """Note whether the term was raised since the last time. The terms are those of both sides, None if unknown.

        In mode "async" a failover ends when both sides know of it: until then a caller may hear that something was
        done on the side that has lost the writes.
        """
        before, self._seen = self._seen, (max(self._seen[0], *(term or 0 for term in terms)), time.monotonic())
        term, moment = self._seen
        if term > before[0]:
            self.noted.append(Failover(before[1], moment if self._mode == "sync" else math.inf))
        if set(terms) == {term}:
            self.noted = [each._replace(ended=min(each.ended, moment)) for each in self.noted]


class Expected(NamedTuple):
    """The expectation about one thing."""

    call: Call
    fate: Fate
    why: str


class Expectations:
    """The expectations after some calls."""

    def __init__(self, calls: Sequence[Call], mode: Mode, failovers: Sequence[Failover] = ()) -> None:
        self.calls = calls
        self.mode = mode
        self.failovers = failovers
        self.things: dict[Thing, Expected] = {}
        self._removals: dict[str, list[Call]] = {}
        self._deleted: set[tuple[str, str, str]] = set()
        """The checkpoints of which the deletion was tried."""
        self._followers: dict[tuple[str, str, str], list[Call]] = {}
        for call in calls:
            if call.did == "put":
                self._followers.setdefault((call.thread, call.ns, call.parent), []).append(call)
        for call in calls:
            if call.did in ("put", "put_writes"):
                self._was_put(call)
            elif call.did == "delete":
                self._was_deleted(call)
            elif call.did == "delete_checkpoint":
                self._checkpoint_was_deleted(call)
            elif call.did == "prune":
                self._was_pruned(call)

    def threads(self) -> list[str]:
        """Return all threads that anything was done to."""
        return sorted({call.thread for call in self.calls if call.did not in ("get", "mistake")})

    def with_fate(self, fate: Fate, *, since: float = 0.0) -> dict[Thing, Expected]:
        """Return the things of this fate that were put after a moment."""
        return {thing: each for thing, each in self.things.items() if each.fate == fate and each.call.began >= since}

    def may_lack_parent(self, thing: Thing, parent: str) -> bool:
        """Whether a checkpoint may be somewhere without its parent.

        That one was removed; or the writes moved between the two; or they had moved before, and a client wrote on to
        the old side, which in mode "async" takes until the term is known there.
        """
        above = self.things.get((*thing[:2], parent, ""))
        this = self.things.get(thing)
        if above is None or this is None:
            return False
        removed = any(call.over >= this.call.began for call in self._removals.get(thing[0], ()))
        since = 0.0 if self.mode == "async" else above.call.began
        return removed or above.fate == "gone" or self._failover_between(since, this.call.ended)

    def _was_put(self, call: Call) -> None:
        thing = (call.thread, call.ns, call.checkpoint, call.task)
        fate: Fate = "required" if call.acknowledged else "either"
        why = f"it was {call.told}"
        above = self.things.get((*thing[:3], "")) if call.task else None
        if above is not None and above.fate != "required":
            # Writes may come when their checkpoint has gone.
            gone = above.fate == "gone" and (call.thread, call.ns, call.checkpoint) not in self._deleted
            fate, why = ("gone" if gone else "either"), f"its checkpoint: {above.why}"
        for removal in self._removals.get(call.thread, ()):
            if removal.over >= call.began:
                fate, why = "either", "the thread was removed at the same time"
            if self._failover_between(removal.began, call.ended) and (
                self.mode == "async" or removal.told != "acknowledged"
            ):
                fate, why = "either", "the thread was removed on a side that had not seen this"
        self.things[thing] = Expected(call, fate, why)

    def _was_deleted(self, call: Call) -> None:
        self._removals.setdefault(call.thread, []).append(call)
        done = call.acknowledged and call.answer == "True"
        for thing, each in self._of(call.thread):
            late = not each.call.acknowledged and not each.call.parent  # may have been on its way still
            fate: Fate = "gone" if done and not late and not self._was_begun_apart(each.call, call) else "either"
            if each.fate != "gone":
                self.things[thing] = Expected(each.call, fate, f"the thread's deletion was {call.told} ({call.answer})")

    def _was_begun_apart(self, put: Call, deletion: Call) -> bool:
        """Whether the side that deleted a thread may not have seen this, which follows a deletion on the other side.

        If both deleted a thread, later puts on either stay. It goes with its last checkpoint, too.
        """
        removals = [each for each in self._removals[put.thread] if each.did != "prune"]
        before = [each for each in removals if each.began <= put.began]
        moved = self._failover_between(put.began, deletion.ended)
        return bool(before) and moved and (self.mode == "async" or not put.acknowledged)

    def _checkpoint_was_deleted(self, call: Call) -> None:
        """With the last checkpoint of a side its thread goes, and so do the rows that only the other side has."""
        self._removals.setdefault(call.thread, []).append(call)
        self._deleted.add((call.thread, call.ns, call.checkpoint))
        put = self.things.get((call.thread, call.ns, call.checkpoint, ""))
        certain = put is not None and put.call.acknowledged and not self._was_followed_apart(call, call)
        for thing, each in self._of(call.thread):
            named = thing[1:3] == (call.ns, call.checkpoint)
            gone = named and certain and call.acknowledged and each.call.acknowledged
            apart = self.mode == "async" and self._failover_between(each.call.began, call.ended)
            if each.fate != "gone" and (named or apart):
                fate: Fate = "gone" if gone else "either"
                why = f"the deletion of {call.checkpoint} was {call.told} ({call.answer})"
                self.things[thing] = Expected(each.call, fate, why)

    def _was_followed_apart(self, above: Call, deletion: Call) -> bool:
        """Whether the side that deleted a checkpoint may not have seen one that follows it: that one spares it."""
        for each in self._followers.get((above.thread, above.ns, above.checkpoint), ()):
            began, ended = min(each.began, deletion.began), max(each.ended, deletion.ended)
            if self._failover_between(began, ended) or self._was_followed_apart(each, deletion):
                return True
        return False

    def _was_pruned(self, call: Call) -> None:
        self._removals.setdefault(call.thread, []).append(call)
        newest: dict[str, float] = {}
        for thing, each in self._of(call.thread):
            if each.fate == "required" and not thing[3]:
                newest[thing[1]] = max(newest.get(thing[1], 0.0), each.call.began)
        for thing, each in self._of(call.thread):
            if each.fate != "gone" and not self._survives(thing, newest):
                fate: Fate = "gone" if call.acknowledged and self._is_certain(call) else "either"
                self.things[thing] = Expected(each.call, fate, f"the thread's pruning was {call.told}")

    def _survives(self, thing: Thing, newest: Mapping[str, float]) -> bool:
        """Whether a thing is, or belongs to, the newest checkpoint of its namespace beyond doubt."""
        checkpoint = self.things.get((*thing[:3], ""))
        others = [
            each.call.began
            for other, each in self._of(thing[0])
            if other[1] == thing[1] and not other[3] and each.fate == "either"
        ]
        began = newest.get(thing[1])
        return checkpoint is not None and checkpoint.call.began == began and all(each < began for each in others)

    def _is_certain(self, call: Call) -> bool:
        """Whether both sides had the same, so that a prune on one is a prune on the other.

        A call on the side that lost the writes is repeated on the other one: both changed the
        thread then, and nothing is removed from such a thread.
        """
        calls = [each for each in self.calls if each.thread == call.thread and each.did not in ("get", "mistake")]
        moved = any(self._failover_between(each.began, each.ended) for each in calls)
        return all(each.acknowledged for each in calls) and not moved and (self.mode == "sync" or not self.failovers)

    def _of(self, thread: str) -> list[tuple[Thing, Expected]]:
        return [(thing, each) for thing, each in self.things.items() if thing[0] == thread]

    def _failover_between(self, began: float, ended: float) -> bool:
        return any(began <= each.ended and each.began <= ended for each in self.failovers)


class Found(NamedTuple):
    """The contents read from one side."""

    name: str
    threads: Mapping[str, SeenThread]

    def has(self, thing: Thing) -> bool:
        """Whether a checkpoint or a batch of writes is there."""
        thread = self.threads.get(thing[0])
        if thread is None:
            return False
        return thing[3] in thread.tasks if thing[3] else thing[1:3] in thread.parents


def missing(found: Found, *expectations: Expectations, since: float = 0.0) -> list[str]:
    """Return the missing things that must be there by all of these: before the side was read, and afterwards."""
    return [
        f"{found.name} lacks {_named(thing)}: {each.why}"
        for thing, each in expectations[0].with_fate("required", since=since).items()
        if not found.has(thing) and all(thing in more.with_fate("required") for more in expectations[1:])
    ]


def returned(found: Found, expectations: Expectations) -> list[str]:
    """Return the removed things that are there."""
    gone = expectations.with_fate("gone").items()
    return [f"{found.name} still has {_named(thing)}: {each.why}" for thing, each in gone if found.has(thing)]


def altered(found: Found, expectations: Expectations) -> list[str]:
    """Return the things with other values, or another parent, than were put, or that were never put."""
    objections = []
    for name, thread in found.threads.items():
        for (ns, checkpoint), seeds in thread.seeds.items():
            each = expectations.things.get((name, ns, checkpoint, ""))
            parent = thread.parents[ns, checkpoint]
            if each is None or each.call.seeds != seeds:
                objections.append(f"{found.name}: {name}: nobody put {checkpoint} with these values")
            elif parent not in (each.call.parent, ""):
                objections.append(f"{found.name}: {name}: {checkpoint} has another parent than it was put with")
    return objections


def blamed(calls: Iterable[Call], *, calm: bool) -> list[str]:
    """Return the answers that no caller should get: with `calm`, if nothing was wrong with either side."""
    objections = []
    for call in calls:
        error = call.answer.partition(":")[0]
        if call.told == "broken":
            objections.append(f"{call.worker}: {call.did} broke: {call.answer}")
        elif call.did == "mistake" and (call.acknowledged or error in NO_MISTAKE) and calm:
            objections.append(f"{call.worker}: a mistake was answered with {call.answer or 'nothing'}")
        elif calm and call.told == "raised" and error in REFUSALS:
            objections.append(f"{call.worker}: {call.did} failed though both sides were well: {call.answer}")
    return objections


def _named(thing: Thing) -> str:
    thread, ns, checkpoint, task = thing
    return f"{thread}: {f'writes of {task} to ' if task else ''}checkpoint {checkpoint} of {ns!r}"
