"""Items of a pair: each client changes items of its own and those that all share, and both sides must end up equal."""

import json
import random
from collections.abc import Iterable
from typing import NamedTuple

from langgraph.store.base import Op, PutOp

from simulator.history import NOW, Call, History
from simulator.met import Met
from threadmark import ThreadmarkError
from threadmark.program import Transaction
from threadmark.replication.steps import Side
from threadmark.types import ReplicatedSaver
from threadmark_store import Store
from threadmark_store.pairs.tables import ask_side
from threadmark_store.shapes import ItemRow, Scope

EXPECTED = ("an item of a pair was put", "an item of a pair was removed")
"""Events of items of pairs that must be met in a run of enough seeds."""

Key = tuple[str, str]
"""A namespace and a key."""


class _Written(NamedTuple):
    call: Call
    key: Key
    number: int | None
    """None for a removal."""


class PairItems:
    """All changes of items in a world."""

    def __init__(self, met: Met, history: History) -> None:
        self._met = met
        self._history = history
        self._written: list[_Written] = []

    async def change(self, number: int, client: str, chance: random.Random, pair: ReplicatedSaver) -> None:
        """Change one item or two."""
        keys = [(client, "0"), (client, "1"), ("shared", "0")]
        call = self._history.begin(number, client, "change", "")
        ops: list[Op] = []
        for place, key in enumerate(chance.sample(keys, chance.choice((1, 1, 2)))):
            made = 2 * number + place if chance.random() < 0.6 else None
            self._written.append(_Written(call, key, made))
            ops.append(PutOp((key[0],), key[1], None if made is None else {"n": made}))
        call.id = " ".join(f"{each.key[0]}.{each.key[1]}={each.number}" for each in self._written[-len(ops) :])
        NOW.set(call)
        try:
            await Store(pair).abatch(ops)
        except ThreadmarkError as error:
            call.answer, call.error = "raised", f"{type(error).__name__}: {error}"[:300]
        else:
            call.answer = "acknowledged"
            for op in ops:
                self._met.note(f"an item of a pair was {'put' if isinstance(op, PutOp) and op.value else 'removed'}")
        call.ended = self._history.clock()

    def objections(self, sides: Iterable[Side], *, clocks: bool) -> Iterable[str]:
        """Judge the items after all is copied. If a clock was set, the last change need not be the latest."""
        one, other = map(_rows, sides)
        if one != other:
            yield f"items differ after the copying: {sorted(set(one) ^ set(other))}"
        found = {(row.key.namespace, row.key.key): json.loads(row.value)["n"] for row in one}
        for key in sorted({each.key for each in self._written if each.key[0] != "shared"}):
            mine = [each for each in self._written if each.key == key]
            last = max((place for place, each in enumerate(mine) if each.call.acknowledged), default=-1)
            possible = [each.number for each in mine[max(last, 0) :]] + ([None] if last < 0 else [])
            possible += [each.number for each in mine if not each.call.acknowledged or each.call.is_late]
            if found.get(key) not in possible and not clocks:
                yield f"item {key} is {found.get(key)}, and should be one of {possible}"


def _rows(side: Side) -> list[ItemRow]:
    return side.driver.run(Transaction(ask_side, (side, "items", "in_key_order", Scope(), None, 10_000)))
