"""Transactions over several calls that are interrupted at every n-th instruction: run as a program.

After every interrupt the next call works, also that of another saver, and what the block stored is there whole or not
at all.
"""

import asyncio
import faulthandler
import json
import sys
from itertools import count

from signals.backends import BACKENDS
from signals.strikes import Interruptions, Step
from threadmark import Saver
from threadmark_conformance.engine import at, checkpoint

_DEADLINE = 30.0


def block(saver: Saver, thread: str) -> None:
    """Store two checkpoints in one transaction."""
    with saver.transaction() as tx:
        first = tx.saver.put(at(thread), checkpoint({"a": 1}), {}, {"a": 1})
        tx.saver.put(first, checkpoint({"a": 2}), {}, {"a": 2})


def main(backend: str, where: str, first: int, stride: int) -> int:
    """How many blocks were interrupted."""
    interruptions = Interruptions(KeyboardInterrupt)
    with asyncio.Runner() as runner, BACKENDS[backend](where, runner) as saver:
        saver.setup()
        for location in count(first, stride):
            faulthandler.dump_traceback_later(_DEADLINE, exit=True)
            thread, strike = f"thread {location}", Step(location)
            returned, _ = interruptions.during(lambda: block(saver, thread), strike)  # noqa: B023 - called at once
            stored = len(list(saver.list(at(thread))))
            assert stored == 2 or (stored == 0 and not returned)
            saver.put(at("next"), checkpoint({"a": 3}), {}, {"a": 3})
            if not strike.reached:
                break
        assert saver.verify().problems == []
    faulthandler.cancel_dump_traceback_later()
    return interruptions.raised


if __name__ == "__main__":
    json.dump(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])), sys.stdout)
