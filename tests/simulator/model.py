"""Judges a world with one database: by all calls, their answers, and the contents at the end.

The model knows no isolation and no schedule, only the order of calls that do not overlap. A checkpoint or a batch of
writes that was acknowledged must be there unless something may have removed it; everything removed after it must be
gone; and nothing else may be there. A call that did not end well may be carried out at any later time, or never.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simulator.clients import LEASED
from simulator.history import Call, History, Seen

Place = tuple[str, str, str]

REFUSALS = ("ThreadDeletedError", "ConflictError", "LeaseLostError", "ThreadBusyError", "CheckpointNotFoundError")
"""Errors that other clients' calls may lead to."""

OF_CALLS = ("EffectUnknownError", "EffectLostError", "DroppedError")
"""Errors of calls that are made once, which the charges explain, and of blocks that raise one themselves."""

OF_OWNERS = ("PermissionError", "ThreadNotFoundError")
"""Errors that an owner may hear of another one's threads."""

AWAY = ("TransientStoreError",)
"""Errors that a network or a server may lead to."""

_REMOVALS = ("delete", "prune", "retention", "delete_checkpoint")


class Circumstances(NamedTuple):
    """The troubles of a world, as far as the model must know."""

    faults: bool
    """Whether anything was done to the network, the servers or the processes."""
    clocks: bool
    """Whether clocks were wrong."""
    losses: Sequence[tuple[float, float]]
    """The times of which a disk forgot the commits."""


class Model:
    """The expectations after all calls."""

    def __init__(self, history: History, circumstances: Circumstances) -> None:
        self.calls = history.calls
        self._circumstances = circumstances
        self._puts = {(call.thread, call.ns, call.id): call for call in self.calls if call.did == "put"}
        for call in self.calls:
            if call.did == "branch" and call.acknowledged:
                made = call.value["configurable"]["checkpoint_id"]
                self._puts[call.thread, call.ns, made] = call
        self._writes = [call for call in self.calls if call.did == "put_writes"]
        self._removals = [call for call in self.calls if call.did in _REMOVALS]

    def objections(self, found: dict[str, list[Seen]]) -> list[str]:
        """Judge all calls, and the contents of each thread at the end."""
        return [
            *self._answers(),
            *(each for call in self.calls for each in self._read_well(call)),
            *self._leases(),
            *self._continued(),
            *(each for call in self.calls if call.did == "list" for each in _in_order(call.found, str(call))),
            *(each for there in found.values() for each in _in_order(there, "at the end")),
            *(each for thread, there in found.items() for each in self._whole(thread, there)),
            *self._kept(found),
            *self._removed(found),
            *self._copies(found),
            *_one_history(found.get(LEASED, [])),
        ]

    def threads(self) -> list[str]:
        """Return all threads that there may be."""
        return sorted({name for call in self.calls for name in (call.thread, call.target) if name})

    def may_be_gone(self, put: Call, place: Place, until: float) -> bool:
        """Whether something that was acknowledged may have been removed by a moment."""
        return any(self._may_remove(removal, put, place, until) for removal in self._removals) or self._is_lost(put)

    def _may_remove(self, removal: Call, put: Call, place: Place, until: float) -> bool:
        if removal.began > until or removal.over < put.began or removal.thread not in ("", place[0]):
            return False
        if removal.owner != put.owner:
            return False  # an owner changes no thread of another one
        if removal.did == "delete":
            return True
        if removal.did == "delete_checkpoint":
            # With the last checkpoint its thread goes, but not the one that is named here.
            return (removal.ns, removal.id) == place[1:] or self._may_have_been_last(removal, place)
        return not self._is_last_put(place) or put.did == "put_writes"

    def _may_have_been_last(self, removal: Call, place: Place) -> bool:
        """Whether the namespace of a checkpoint may have gone with its parent: a subgraph's does."""
        return place[1] != "" and removal.ns == ""

    def _is_last_put(self, place: Place) -> bool:
        """Whether a checkpoint has the greatest id that was ever put in its namespace, so that prunings spare it."""
        if self._circumstances.clocks:
            return False
        return all(other[2] <= place[2] for other in self._puts if other[:2] == place[:2])

    def _is_lost(self, put: Call) -> bool:
        return any(began <= put.ended and put.began <= ended for began, ended in self._circumstances.losses)

    def _answers(self) -> Iterable[str]:
        allowed = (*REFUSALS, *OF_CALLS, *OF_OWNERS, *(AWAY if self._circumstances.faults else ()))
        for call in self.calls:
            name = call.error.partition(":")[0]
            if call.answer == "broken" or (call.answer == "raised" and name not in allowed):
                yield f"no caller should hear this: {call}"

    def _continued(self) -> Iterable[str]:
        """A thread that was deleted takes nothing that follows, or belongs to, its old rows."""
        deletions = [call for call in self._removals if call.did == "delete" and call.acknowledged]
        deletions = [call for call in deletions if not self._is_lost(call)]
        for call in self.calls:
            place = (call.thread, call.ns, call.parent if call.did == "put" else call.id)
            above = self._puts.get(place)
            if call.did not in ("put", "put_writes") or not call.acknowledged or above is None or self._is_lost(above):
                continue
            for each in deletions:
                if (
                    each.owner == call.owner
                    and each.thread == call.thread
                    and above.over < each.began
                    and each.ended < call.began
                ):
                    yield f"it continues what was deleted, and was taken: {call}; {each}"

    def _read_well(self, call: Call) -> Iterable[str]:
        for each in call.found:
            yield from self._sound(each, str(call))
            put = self._puts.get(each.place)
            if put is not None and put.owner != call.owner:
                yield f"{each.place} belongs to another owner: {put}; {call}"
        if not call.acknowledged or call.did not in ("get", "get_old", "list"):
            return
        there = {each.place for each in call.found}
        if len(there) != len(call.found):
            yield f"a checkpoint was listed twice: {call}"
        for place, put in self._puts.items():
            if place[0] != call.thread or not put.acknowledged or put.ended > call.began or put.owner != call.owner:
                continue
            if self.may_be_gone(put, place, call.ended):
                continue
            if (call.did == "list" or place == (call.thread, call.ns, call.id)) and place not in there:
                yield f"{place} was acknowledged before, and was not found: {call}"
            if call.did == "get" and place[1] == call.ns and (why := self._is_older(call.found, place)):
                yield f"{place} was acknowledged before, and {why}: {call}"

    def _is_older(self, found: list[Seen], place: Place) -> str:
        if not found:
            return "nothing was found"
        if not self._circumstances.clocks and found[0].id < place[2] and not self._is_branch(found[0].place):
            return f"an older one was found ({found[0].id})"
        return "an ancestor was found" if found[0].place in self._ancestors(place) else ""

    def _is_branch(self, place: Place) -> bool:
        """Whether a checkpoint was made by a fork in its thread, which makes it the newest whatever its id is."""
        return place not in self._puts or self._puts[place].did == "branch"

    def _ancestors(self, place: Place) -> set[Place]:
        ancestors: set[Place] = set()
        while (
            place in self._puts and (parent := self._puts[place].parent or self._puts[place].id) and parent != place[2]
        ):
            place = (*place[:2], parent)
            if place in ancestors:
                break
            ancestors.add(place)
        return ancestors

    def _sound(self, each: Seen, where: str) -> Iterable[str]:
        if each.wrong:
            yield f"{each.place}: {each.wrong}: {where}"
        put = self._puts.get(each.place)
        if put is not None and put.did == "put" and put.seeds != each.seeds:
            yield f"{each.place} has other values than were put: {where}"
        batches = {f"{call.task} {sorted(call.seeds)}" for call in self._writes}
        if torn := each.tasks - batches:
            yield f"{each.place} has parts of batches of writes: {sorted(torn)}: {where}"

    def _whole(self, thread: str, there: list[Seen]) -> Iterable[str]:
        """Judge the contents of a thread at the end, whatever became of the rest."""
        places = {each.place for each in there}
        branches = Counter(call.thread for call in self.calls if call.did == "branch" and not call.acknowledged)
        for each in there:
            yield from self._sound(each, "at the end")
            put = self._puts.get(each.place)
            if put is None:
                if not self._is_made_by_copy(each.thread) and not branches[thread]:
                    yield f"{each.place} was never put"
                continue
            parent = put.id if put.did == "branch" else put.parent
            if each.parent not in (parent, ""):
                yield f"{each.place} has another parent than it was put with: {put}"
            above = (*each.place[:2], parent)
            known = self._puts.get(above)
            if parent and above not in places and known is not None and known.acknowledged and not self._is_lost(known):
                removals = [call for call in self._removals if call.over >= known.began]
                if not any(call.thread in ("", thread) for call in removals):
                    yield f"{each.place} is there without its parent {parent}"

    def _is_made_by_copy(self, thread: str) -> bool:
        return any(call.target == thread for call in self.calls)

    def _kept(self, found: dict[str, list[Seen]]) -> Iterable[str]:
        there = {each.place: each for some in found.values() for each in some}
        for place, put in self._puts.items():
            if put.acknowledged and place not in there and not self.may_be_gone(put, place, float("inf")):
                yield f"acknowledged, and not there at the end: {put}"
        for call in self._writes:
            place = (call.thread, call.ns, call.id)
            if call.acknowledged and not self.may_be_gone(call, place, float("inf")):
                named = f"{call.task} {sorted(call.seeds)}"
                above = self._puts.get(place)
                if above is None or not above.acknowledged or self.may_be_gone(above, place, float("inf")):
                    continue
                if place not in there or named not in there[place].tasks:
                    yield f"acknowledged, and not there at the end: {call}"

    def _removed(self, found: dict[str, list[Seen]]) -> Iterable[str]:
        there = {each.place: each for some in found.values() for each in some}
        for removal in self._removals:
            if not removal.acknowledged or self._is_lost(removal):
                continue
            for place in there:
                put = self._puts.get(place)
                if put is None or place[0] != removal.thread or put.over >= removal.began or put.owner != removal.owner:
                    continue
                named = removal.did == "delete_checkpoint" and place[1:] == (removal.ns, removal.id)
                if removal.did == "delete" or named:
                    yield f"{place} is there, though it was removed: {removal}"

    def _copies(self, found: dict[str, list[Seen]]) -> Iterable[str]:
        for call in self.calls:
            if call.did not in ("copy", "fork") or not call.acknowledged or self._is_lost(call):
                continue
            there = {each.place[1:] for each in found.get(call.target, [])}
            for place, put in self._puts.items():
                if place[0] != call.thread or not put.acknowledged or put.ended > call.began or put.owner != call.owner:
                    continue
                wanted = call.did == "copy" or place[1:] == (call.ns, call.id)
                pruned = any(each.did == "retention" and each.over >= call.began for each in self._removals)
                if wanted and not pruned and not self.may_be_gone(put, place, call.ended) and place[1:] not in there:
                    yield f"{place} was there before it was copied, and is not in the copy: {call}"

    def _leases(self) -> Iterable[str]:
        taken = [call for call in self.calls if call.did == "lease" and call.acknowledged]
        if self._circumstances.clocks:
            taken = []  # a token counts up from the time of day
        for one in taken:
            for other in taken:
                if one.ended < other.began and one.lease >= other.lease:
                    yield f"a later lease has no greater token: {one}; {other}"
        for one in (call for call in self.calls if call.did == "put" and call.lease and call.acknowledged):
            for other in taken:
                if other.lease > one.lease and other.ended < one.began:
                    yield f"a put under a lease was taken after another holder had one: {one}; {other}"


def _in_order(listed: list[Seen], where: str) -> Iterable[str]:
    """A checkpoint is listed before its parent, which is never newer."""
    places = {each.place: number for number, each in enumerate(listed)}
    for each in listed:
        above = (*each.place[:2], each.parent)
        if places.get(above, len(listed)) < places[each.place]:
            yield f"{each.place} is listed after its parent {each.parent}: {where}"


def _one_history(there: list[Seen]) -> Iterable[str]:
    """A thread that is written to under leases only has no branches."""
    parents = Counter((each.ns, each.parent) for each in there)
    for (ns, parent), count in parents.items():
        if count > 1 and parent:
            yield f"{count} checkpoints of the leased thread follow {parent} of {ns!r}"
