"""Leases that are interrupted at every n-th instruction of taking, using and releasing them: run as a program.

Whatever is interrupted, nothing hangs, no thread goes on renewing, and the next one who waits gets the lease: at once,
or when the one that was left is over.
"""

import faulthandler
import json
import sys
import threading
import time
from itertools import count

from signals.strikes import Interruptions, Moment, Step
from threadmark import Saver, ThreadBusyError
from threadmark_conformance.engine import at, checkpoint
from threadmark_conformance.leasing import under
from threadmark_sqlite import SqliteSaver

_DEADLINE = 30.0
_TTL = 0.05


def use(saver: Saver, made: list[str]) -> None:
    """Take a lease, store something under it and release it."""
    with saver.lease("thread", ttl=_TTL) as lease:
        stored = saver.put(under(lease), checkpoint({"a": 1}), {}, {"a": 1})
        made.append(stored["configurable"]["checkpoint_id"])


def renewals() -> int:
    """How many threads renew leases. One whose start was interrupted is listed for ever, and does not run."""
    running = sys._current_frames()
    return sum(thread.name == "threadmark-lease" and thread.ident in running for thread in threading.enumerate())


def step_by_step(saver: Saver, interruptions: Interruptions, first: int, stride: int) -> None:
    """Interrupt a lease at every `stride`-th instruction, and take the next one each time."""
    made: list[str] = []
    for location in count(first, stride):
        faulthandler.dump_traceback_later(_DEADLINE, exit=True)
        strike = Step(location)
        interruptions.during(lambda: use(saver, made), strike)
        with saver.lease("thread", ttl=_TTL, timeout=_DEADLINE / 2) as lease:
            saver.put(under(lease), checkpoint({"a": 2}), {}, {"a": 1})
        while renewals():
            time.sleep(0.001)
        assert {item.checkpoint["id"] for item in saver.list(at("thread"))} >= set(made)
        if not strike.reached:
            return


def while_waiting(saver: Saver, interruptions: Interruptions) -> None:
    """Interrupt a caller that waits: at once, and without a lease that is left."""
    with saver.lease("other", ttl=60) as lease:
        began = time.monotonic()
        returned, _ = interruptions.during(lambda: saver.lease("other").__enter__(), Moment(0.3))
        assert not returned
        assert time.monotonic() - began < _DEADLINE / 2
        assert lease.release()
        try:
            with saver.lease("other", on_busy="reject"):
                return
        except ThreadBusyError as error:
            raise AssertionError("a lease is left") from error


def main(path: str, first: int, stride: int) -> int:
    """How many leases were interrupted."""
    interruptions = Interruptions(KeyboardInterrupt)
    with SqliteSaver(path, durability="normal") as saver:
        step_by_step(saver, interruptions, first, stride)
        while_waiting(saver, interruptions)
        assert saver.verify().problems == []
    faulthandler.cancel_dump_traceback_later()
    return interruptions.raised


if __name__ == "__main__":
    json.dump(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
