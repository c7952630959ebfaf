"""The effects of steps in a real Chromium: their states, times and keys, next to the checkpoints"""

from pathlib import Path
from typing import Any

import pytest

from effects.graphs import Shop
from page.browser import Browser, served
from threadmark_sqlite import SqliteSaver

THREAD: Any = {"configurable": {"thread_id": "order"}}


def test_a_step_shows_its_effects_and_their_states(page: Browser, tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "orders.db", durability="normal") as saver:
        shop = Shop(saver, undo_with="refund it")
        shop.run(THREAD)
        shop.receiver.errors = [TimeoutError("no answer")]
        with pytest.raises(TimeoutError):
            shop.run(THREAD, amount=7)
        (unknown,) = shop.effects.list(state="unknown")
        with served(saver) as address:
            page.open(address, thread="order")
            page.sees("#checkpoint .effects .word", "unknown")  # the newest checkpoint opens on what has gone wrong
            page.sees("#checkpoint .effects .id", unknown.key)
            page.sees("#checkpoint .effects", "TimeoutError: no answer")
            page.sees("#checkpoint .effects", "undo with refund it")
            page.sees("#thread .facts", "6 checkpoints")
            page.sees("[data-list=checkpoints] .row", "1 effect unknown")
            assert page.all("[aria-label=Namespace]") == []
            shop.effects.settle(unknown, "done", {"receipt": 2})
            page.sees("#checkpoint .effects .word", "done")
            page.until(lambda: not page.all("[data-list=checkpoints] .word", "unknown"))
            page.click("#thread .tabs a", "Tree")
            page.until(lambda: len(page.all(".tree .row")) == 6)
            assert len(shop.receiver.calls) == 2
