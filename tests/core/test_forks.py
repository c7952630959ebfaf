"""A fork while other threads are at work: the child has no held locks, and no half of a transaction."""

import os

import pytest

from children import child, finished

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")

_BUSY = """
import faulthandler, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say about a fork beside threads
from threadmark import MemorySaver
from threadmark_conformance.engine import at, checkpoint
"""

_AT_EVERY_STEP = (
    _BUSY
    + """
# The thread that forks is never in the middle of another one's transaction, unless it is let in: a table stops there.
saver = MemorySaver()
saver.put(at("thread"), checkpoint({"a": "before" * 200}, checkpoint_id="1"), {}, {"a": 1})
saver.put_writes(at("thread", "", "1"), [("a", "x" * 400), ("b", 1)], "task")
before = list(saver.list(None))
tables = saver._driver._tables

def forked(look):
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        try:
            look()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

class Stopping:
    # Stands for the tables, and stops before and after each change.
    def __init__(self):
        self.steps, self.reached, self.go = 0, threading.Semaphore(0), threading.Semaphore(0)
    def __getattr__(self, name):
        return getattr(tables, name)
    def _stop(self):
        self.steps += 1
        self.reached.release()
        self.go.acquire()
    def set(self, *arguments, **options):
        self._stop()
        tables.set(*arguments, **options)
        self._stop()
    def unset(self, *arguments):
        self._stop()
        tables.unset(*arguments)
        self._stop()

def look():
    saver._driver._tables = tables
    assert list(saver.list(None)) == before
    saver.put(at("child"), checkpoint({"a": "child"}), {}, {"a": 1})
    assert saver.get(at("child"))["channel_values"] == {"a": "child"}

def run(change):
    stopping = saver._driver._tables = Stopping()
    thread = threading.Thread(target=change)
    thread.start()
    while True:
        while not stopping.reached.acquire(timeout=0.05):
            if not thread.is_alive():
                saver._driver._tables = tables
                return stopping.steps
        assert forked(look) == 0
        stopping.go.release()

made = checkpoint({"a": "after" * 300, "b": 2}, checkpoint_id="2")
steps = run(lambda: saver.put(at("thread", "", "1"), made, {}, {"a": 2, "b": 2}))
before = list(saver.list(None))
assert len(before) == 2
steps += run(lambda: saver.prune(["thread"]))
before = list(saver.list(None))
assert len(before) == 1
steps += run(lambda: saver.delete_thread("thread"))
assert list(saver.list(None)) == []
print(steps)
"""
)


def test_the_child_sees_no_half_of_a_transaction_in_memory() -> None:
    assert int(finished(child(_AT_EVERY_STEP))) > 12


_UNDER_LOAD = (
    _BUSY
    + """
saver = MemorySaver()
done = threading.Event()

def work(name):
    config, number = at(name), 0
    while not done.is_set():
        number += 1
        config = saver.put(config, checkpoint({"a": ["x" * 400] * (number % 30)}, {"a": number}), {}, {"a": number})
        saver.get(config)
        if number % 20 == 0:
            saver.prune([name])
threads = [threading.Thread(target=work, args=(str(number),)) for number in range(3)]
sys.setswitchinterval(1e-5)
for each in threads:
    each.start()
statuses = set()
for number in range(20):
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        try:
            for item in saver.list(None):
                assert set(item.checkpoint["channel_values"]) == {"a"}
            saver.put(at("child"), checkpoint({"a": 1}), {}, {"a": 1})
            assert not saver.verify().problems
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    statuses.add(os.waitpid(pid, 0)[1])
done.set()
for each in threads:
    each.join()
print(statuses)
"""
)


def test_a_child_uses_what_it_has_of_a_saver_in_memory_that_was_busy() -> None:
    assert finished(child(_UNDER_LOAD)).strip() == "{0}"


_LOCKS = (
    _BUSY
    + """
# Each lock in turn is held by another thread while the process forks.
from threadmark import ids, new_id
from threadmark.serde import registry
from threadmark.runtime.workers import Workers
saver, workers = MemorySaver(), Workers(1, "test")
workers.run(lambda: None)
class Mine:
    pass
uses = {
    "ids": (lambda: ids._clock._lock, new_id),
    "registry": (lambda: registry.DEFAULT._lock, lambda: registry.register(Mine, "mine")),
    "encoding_cache": (
        lambda: saver._context.encoding_cache._lock,
        lambda: saver.put(at("a"), checkpoint({"a": 1}), {}, {"a": 1}),
    ),
    "memory": (lambda: saver._driver._turn.lock, lambda: saver.put(at("a"), checkpoint({"a": 1}), {}, {"a": 1})),
    "workers": (lambda: workers._pool._changing, lambda: workers.run(lambda: None)),
}
for name, (lock, use) in uses.items():
    held, forked = threading.Event(), threading.Event()
    def hold():
        with lock():
            held.set()
            forked.wait()
    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        use()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    forked.set()
    other.join()
    print(name, status)
    use()
workers.close()
"""
)


def test_no_lock_of_another_thread_is_waited_for_in_the_child() -> None:
    lines = finished(child(_LOCKS)).splitlines()
    assert lines == [f"{name} 0" for name in ("ids", "registry", "encoding_cache", "memory", "workers")]
