"""The cost of the option `keep_last`: a put with it is two transactions at most, and mostly one if more are kept."""

from typing import Any

import pytest

from threadmark import Checkpoint, MemorySaver, new_id
from threadmark.ids import Version
from threadmark.program import Transaction

_LONG = "so much that it is a segment of its own. " * 30


class Counting(MemorySaver):
    """Counts its transactions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.writes = self.reads = 0
        run = self._driver.run

        def counted(transaction: Transaction[Any]) -> Any:
            self.writes += transaction.writes
            self.reads += not transaction.writes
            return run(transaction)

        self._driver.run = counted  # type: ignore[method-assign]  # to count transactions


def _put(saver: MemorySaver, config: dict[str, Any], number: int) -> dict[str, Any]:
    """Put one more checkpoint: one channel changes every time, one never, one every other time."""
    values = {"a": f"{number} {_LONG}", "same": _LONG * 2, "b": f"{number // 2} {_LONG}"}
    new: dict[str, Version] = {"a": number, "b": number} if number % 2 == 0 else {"a": number}
    if number == 0:
        new["same"] = 0
    versions: dict[str, Version] = {"a": number, "same": 0, "b": number - number % 2}
    made: Checkpoint = {
        "v": 4,
        "id": new_id(),
        "ts": "",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }
    return saver.put(config, made, {}, new)


@pytest.mark.parametrize(("kept", "puts", "most"), [(None, 40, 40), (1, 40, 80), (8, 40, 60), (40, 200, 240)])
def test_the_transactions_of_a_put(kept: int | None, puts: int, most: int) -> None:
    saver = Counting(keep_last=kept)
    config: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    config = _put(saver, config, 0)
    saver.writes = saver.reads = 0
    for number in range(1, puts):
        config = _put(saver, config, number)
    assert saver.reads == 0
    assert saver.writes <= most
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["a"] == f"{puts - 1} {_LONG}"
