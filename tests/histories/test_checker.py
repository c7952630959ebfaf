"""The checker accepts histories that have an order, and finds the fault in those that have none."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import threadmark
from histories import checker
from histories.checker import Verdict, by_thread, kinds, verdict
from histories.parties import Party, Round, play_in_memory
from histories.savers import OURS, Place
from histories.spec import MISSING, SPECIAL, Operation, Seen

A = Seen("", "a", "", (1, 1))
B = Seen("", "b", "a", (2, 1))


def _put(made: Seen, began: int, ended: float, error: str = "") -> Operation:
    return Operation("c", "put", "t", began, ended, made.ns, made.id, made.parent, made.seeds, error=error)


def _newest(began: int, ended: int, *answer: Seen) -> Operation:
    return Operation("d", "newest", "t", began, ended, limit=1, answer=answer)


def _writes(began: int, ended: float, channels: tuple[str, ...], seeds: tuple[int, ...]) -> Operation:
    return Operation("c", "writes", "t", began, ended, "", "a", seeds=seeds, task="task", channels=channels)


def _with(*writes: tuple[str, int]) -> Seen:
    return A._replace(writes=tuple(("task", channel, seed) for channel, seed in writes))


PUT, DELETE = _put(A, 0, 1), Operation("c", "delete", "t", 4, 5)
INFINITE = float("inf")

WELL = {
    "one after another": [PUT, _newest(2, 3, A)],
    "a read during a put sees it": [_put(A, 0, 9), _newest(1, 2, A)],
    "or does not": [_put(A, 0, 9), _newest(1, 2)],
    "a smaller id is never the newest": [_put(B, 0, 1), _put(A, 2, 3), _newest(4, 5, B)],
    "a put that failed may be there": [_put(A, 0, INFINITE, "Error"), _newest(4, 5, A)],
    "or come later": [_put(A, 0, INFINITE, "Error"), _newest(4, 5), _newest(8, 9, A)],
    "a deletion takes all": [PUT, DELETE, _newest(6, 7)],
    "a put after a deletion": [PUT, DELETE, _put(B, 6, 7), _newest(8, 9, B)],
    "the first write stays": [
        PUT,
        _writes(2, 3, ("w0",), (5,)),
        _writes(4, 5, ("w0", "w1"), (6, 7)),
        _newest(8, 9, _with(("w0", 5), ("w1", 7))),
    ],
    "the last one of a special channel": [
        PUT,
        _writes(2, 3, (SPECIAL,), (5,)),
        _writes(4, 5, (SPECIAL,), (6,)),
        _newest(8, 9, _with((SPECIAL, 6))),
    ],
}

ILL: dict[str, tuple[str, list[Operation]]] = {
    "a stale read": ("stale checkpoints", [PUT, _put(B, 2, 3), _newest(4, 5, A)]),
    "two reads, the later one older": ("no moment", [PUT, _put(B, 2, 9), _newest(3, 4, B), _newest(5, 6, A)]),
    "a thing before its put": ("no moment", [_newest(0, 1, A), _put(A, 2, 3)]),
    "a thing that was deleted": ("no moment", [PUT, DELETE, _newest(6, 7, A)]),
    "writes that are not there": ("stale writes", [PUT, _writes(2, 3, ("w0",), (5,)), _newest(8, 9, A)]),
    "half a batch": ("torn writes", [PUT, _writes(2, 3, ("w0", "w1"), (5, 6)), _newest(8, 9, _with(("w1", 6)))]),
    "half a batch during its call": (
        "no moment",
        [PUT, _writes(2, 9, ("w0", "w1"), (5, 6)), _newest(3, 4, _with(("w1", 6)))],
    ),
    "a value that is not there": ("torn values", [PUT, _newest(2, 3, A._replace(seeds=(1, MISSING)))]),
    "a list with a hole": (
        "stale checkpoints",
        [PUT, _put(B, 2, 3), Operation("d", "list", "t", 4, 5, limit=9, answer=(B,))],
    ),
    "lost at the end": ("lost checkpoints", [PUT, Operation(checker.FINALLY, "all", "t", 8, 9)]),
}


@pytest.mark.parametrize("name", WELL)
def test_an_order_is_found(name: str) -> None:
    assert verdict(WELL[name]) == Verdict()


@pytest.mark.parametrize("name", ILL)
def test_a_fault_is_found_and_named(name: str) -> None:
    kind, calls = ILL[name]
    found = verdict(calls)
    assert kinds(found.unexplained, calls) == {kind: 1}
    assert not found.undecided


def test_a_checkpoint_of_a_deleted_thread_is_refused() -> None:
    """A saver that refuses it must do so each time, and only then."""
    refusal = _put(B, 6, 7, "ThreadDeletedError: ...")
    assert verdict([PUT, DELETE, refusal], refuses=True) == Verdict()
    assert verdict([PUT, DELETE, _put(B, 6, 7)], refuses=True).unexplained
    assert verdict([PUT, refusal], refuses=True).unexplained == (refusal,)


def test_it_says_so_if_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "STATES", 3)
    puts = [_put(Seen("", f"{number}", "", (number, 0)), 0, 9) for number in range(9)]
    assert verdict([*puts, _newest(10, 11)]).undecided


class Faulty:
    """A saver in memory with one fault, which a client meets now and then."""

    def __init__(self, fault: Callable[["Faulty", str, Any, tuple[Any, ...]], Any]) -> None:
        self._saver = threadmark.open("memory:")
        self._fault = fault
        self._chance = random.Random(1)
        self.before: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._saver, name)
        if name not in ("get_tuple", "put", "put_writes", "list", "delete_thread"):
            return method
        if name == "list":
            return lambda config, *, limit: self._fault(self, name, lambda _: self._listed(config, limit), (config,))
        return lambda *args: self._fault(self, name, method, args)

    def _listed(self, config: Any, limit: int | None) -> Iterator[Any]:
        return iter([*self._saver.list(config, limit=limit)])

    def now(self) -> bool:
        """Whether the fault happens this time."""
        return self._chance.random() < 0.1


def _stale(saver: Faulty, name: str, method: Any, args: tuple[Any, ...]) -> Any:
    """The newest checkpoint is sometimes the one that was read before."""
    if name != "get_tuple" or "checkpoint_id" in args[0]["configurable"]:
        return method(*args)
    last = saver.before.get(repr(args))
    found = saver.before[repr(args)] = method(*args)
    return last if last and saver.now() else found


def _lost(saver: Faulty, name: str, method: Any, args: tuple[Any, ...]) -> Any:
    """Writes are sometimes acknowledged only."""
    return None if name == "put_writes" and saver.now() else method(*args)


def _late(saver: Faulty, name: str, method: Any, args: tuple[Any, ...]) -> Any:
    """A checkpoint is sometimes acknowledged before it is there."""
    if name != "put" or not saver.now():
        return method(*args)
    threading.Timer(0.005, method, args).start()
    return None


def _torn_list(saver: Faulty, name: str, method: Any, args: tuple[Any, ...]) -> Any:
    """A list sometimes lacks one of its checkpoints."""
    found = method(*args)
    return (each for number, each in enumerate(found) if number != 1) if name == "list" and saver.now() else found


def _halves(saver: Faulty, name: str, method: Any, args: tuple[Any, ...]) -> Any:
    """A batch of writes is sometimes stored in two steps."""
    if name == "put_writes" and saver.now():
        config, writes, task = args
        method(config, writes[:1], task)
        time.sleep(0.002)
    return method(*args)


FAULTS = {
    _stale: "stale checkpoints",
    _lost: "lost writes",
    _late: "stale checkpoints",
    _torn_list: "stale checkpoints",
    _halves: "no moment",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_planted_fault_is_found(fault: Any) -> None:
    """Clients work with a saver that has it until the checker finds it."""
    for number in range(20):
        round_ = Round(0.3, f"{number}", deletes=False)
        place = Place(OURS, "memory", "memory:")
        calls = play_in_memory(Faulty(fault), place, round_, [Party("threads", "blocking", 4)])
        for each in by_thread(calls).values():
            if FAULTS[fault] in kinds(verdict(each, refuses=True).unexplained, each):
                return
    pytest.fail("the checker did not find the fault")
