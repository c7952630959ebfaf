"""Clients that put, read and remove items of a store as well as checkpoints, and the judgement of their answers.

An item is a register: a read must find what some put or removal left there that was not certainly over and replaced by
then. Two items are twins: they change together only, so every search must find them equal. And an item that was put in
one transaction with a checkpoint is there if the checkpoint is.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import Op, PutOp

from replication.actor import Newest
from simulator.clients import Client, arguments_of
from simulator.history import Call, History, Seen
from simulator.met import Met
from threadmark import ConfigError, Saver, ThreadmarkError, new_id
from threadmark_store import Store, backends

# The rows of a simulated database are those of the memory backend.
backends._MODULES["simulator.database"] = "memory"

KINDS = {
    "change_items": 12,
    "change_twins": 5,
    "get_item": 6,
    "search_items": 6,
    "sweep": 2,
    "put_with_item": 7,
    "put": 2,
    "get": 1,
    "prune": 1,
}
"""How often each kind of operation is chosen in a world of items."""

EXPECTED = (
    "a search found the twins",
    "a sweep removed an item",
    "a transaction over several calls was dropped",
    "a transaction over several calls was kept",
    "an expired item was left out",
    "an item was read",
    "an item was removed",
)
"""Events of items that must be met in a run of enough seeds."""

TOGETHER = "together"
"""The thread whose checkpoints are put in one transaction with an item."""

_TWINS = ("twin one", "twin two")
_KEYS = ("a", "b", "c")
_TTL = 0.3
"""Seconds for which some items live."""


class DroppedError(ThreadmarkError):
    """A block changes its mind."""


class Written(NamedTuple):
    """A put of a number, or a removal, None."""

    call: Call
    key: str
    number: int | None
    ends: bool = False
    """Whether the item expires."""


class Read(NamedTuple):
    """The numbers that a call found, by key; None for no item."""

    call: Call
    found: dict[str, int | None]


class ItemsClient(Client):
    """A client whose operations are those on items, too."""

    items: "Items"

    async def work(self, saver: Saver) -> None:
        """Do the rest of its operations."""
        self._uncached = getattr(saver, "uncached", saver)
        self._store = Store(self._uncached, ttl={"omit_expired": True, "refresh_on_read": False})
        await super().work(saver)

    async def _change_items(self) -> None:
        keys = self._chance.sample(_KEYS, self._chance.choice((1, 1, 2)))
        await self._change(
            {key: self._number * 10 + place if self._chance.random() < 0.7 else None for place, key in enumerate(keys)},
            ends=self._chance.random() < 0.3,
        )

    async def _change_twins(self) -> None:
        number = self._number if self._chance.random() < 0.8 else None
        await self._change(dict.fromkeys(_TWINS, number), ends=False)

    async def _change(self, numbers: dict[str, int | None], *, ends: bool) -> None:
        call = self._begin("change", "", task=" ".join(numbers))
        ops: list[Op] = []
        for key, number in numbers.items():
            self.items.written.append(Written(call, key, number, ends and number is not None))
            ttl = _TTL / 60 if ends else None
            ops.append(PutOp(("items",), key, None if number is None else {"n": number}, ttl=ttl))
        await self._end(call, self._store.abatch(ops))
        if call.acknowledged and None in numbers.values():
            self.items.met.note("an item was removed")

    async def _get_item(self) -> None:
        key = self._chance.choice(_KEYS)
        call = self._begin("get_item", "", id=key)
        await self._end(call, self._store.aget(("items",), key))
        if call.acknowledged:
            self._note(call, {key: call.value and call.value.value["n"]})

    async def _search_items(self) -> None:
        call = self._begin("search_items", "")
        await self._end(call, self._store.asearch(("items",), limit=100))
        if call.acknowledged:
            found = {item.key: item.value["n"] for item in call.value}
            self._note(call, {key: found.get(key) for key in (*_KEYS, *_TWINS)})
            if set(_TWINS) <= set(found):
                self.items.met.note("a search found the twins")

    def _note(self, call: Call, found: dict[str, int | None]) -> None:
        call.value = " ".join(f"{key}={number}" for key, number in found.items())
        self.items.read.append(Read(call, found))
        if any(number is not None for number in found.values()):
            self.items.met.note("an item was read")

    async def _sweep(self) -> None:
        call = self._begin("sweep", "")
        await self._end(call, self._store.asweep_ttl())
        if call.acknowledged and call.value:
            self.items.met.note("a sweep removed an item")

    async def _put_with_item(self) -> None:
        """Put a checkpoint and an item together, in a block that may raise."""
        try:
            block = self._uncached.transaction()
        except ConfigError:  # on Redis
            return
        answered, newest = await self._newest(TOGETHER, "")
        if not answered:
            return
        seeds = newest.seeds if newest else ()
        made = Newest(new_id(), (*seeds[-3:], self._chance.getrandbits(32)))
        call = self._begin("put", TOGETHER, id=made.id, parent=newest.id if newest else "", seeds=made.seeds)
        self.items.together[made.id] = call
        await self._end(call, self._in_block(block, made, call.parent, drops=self._chance.random() < 0.3))
        kept = "kept" if call.acknowledged else "dropped"
        self.items.met.note(f"a transaction over several calls was {kept}")

    async def _in_block(self, block: Any, made: Newest, parent: str, *, drops: bool) -> None:
        async with block as transaction:
            saver = transaction.saver
            calls = [
                lambda: saver.aput(*arguments_of(TOGETHER, "", made, parent)),
                lambda: Store(saver).aput(("together",), made.id, {"n": 1}),
            ]
            for call in calls if self._chance.random() < 0.5 else reversed(calls):
                await call()
                await self._think()
            if drops:
                raise DroppedError


class Items:
    """All changes and reads of items in a world."""

    def __init__(self, met: Met) -> None:
        self.met = met
        self.written: list[Written] = []
        self.read: list[Read] = []
        self.together: dict[str, Call] = {}

    def objections(self, history: History, saver: Saver, found: Sequence[Seen], *, clocks: bool) -> Iterable[str]:
        """Judge all reads, and at the end the items and the checkpoints that were put together."""
        store = Store(saver, ttl={"omit_expired": True, "refresh_on_read": False})
        last = Call(-1, "judge", "search_items", "", history.clock(), ended=math.inf)
        end = {item.key: item.value["n"] for item in store.search(("items",), limit=100)}
        reads = [*self.read, Read(last, {key: end.get(key) for key in (*_KEYS, *_TWINS)})]
        for call, numbers in reads:
            twins = [numbers[key] for key in _TWINS if key in numbers]
            if len(set(twins)) > 1:
                yield f"twins differ: {twins}: {call}"
            for key, number in numbers.items():
                if not any(self._may_be_found(each, number, call, clocks=clocks) for each in self._of(key)):
                    yield f"{key} was {number}, which was never there, or was replaced before: {call}"
        items = {item.key for item in store.search(("together",), limit=1000)}
        checkpoints = {each.id for each in found}
        for made in sorted(items ^ checkpoints):
            yield f"of a checkpoint and an item only one is there: {self.together.get(made)}"

    def _of(self, key: str) -> list[Written]:
        never = Call(-1, "", "change", "", -1.0, ended=-1.0, answer="acknowledged")
        return [Written(never, key, None), *(each for each in self.written if each.key == key)]

    def _may_be_found(self, written: Written, number: int | None, read: Call, *, clocks: bool) -> bool:
        """Whether a read may have found the value that a change left there."""
        call = written.call
        if call.began > read.ended:
            return False
        if number is None and written.ends and (clocks or call.began + _TTL <= read.ended):
            self.met.note("an expired item was left out")
        elif number != written.number:
            return False
        elif written.ends and not clocks and call.ended + _TTL < read.began:
            return False  # it was certainly over
        return not any(
            each.call.acknowledged and call.over < each.call.began and each.call.ended < read.began
            for each in self._of(written.key)
        )
