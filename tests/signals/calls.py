"""Calls of a saver that are interrupted, and a look at the database after each: run as a program, in a separate
process, because a call that hangs must end it.

After every interrupt the next calls work, acknowledged writes are there, and each other one is there whole or not at
all.
"""

import argparse
import asyncio
import faulthandler
import json
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from signals.backends import BACKENDS
from signals.strikes import Interruptions, Moments, Step, Strike
from threadmark import Saver
from threadmark_conformance.engine import at, checkpoint

_DEADLINE = 30.0
"""Seconds for a call, the ones that look included; more than that is a call that hangs."""

_WRITES = [("a", "written " * 40), ("__interrupt__", "asked"), ("b", 1)]

State = list[Any]
"""The items of a listing of a thread."""


class Calls:
    """One saver's methods by their names, by one of its APIs."""

    def __init__(self, saver: Saver, run: Callable[[Coroutine[Any, Any, Any]], Any] | None) -> None:
        self._saver = saver
        self._run = run

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The result of the method; all items, if that is a listing."""
        if self._run is None:
            result = getattr(self._saver, name)(*arguments, **options)
            return list(result) if name == "list" else result
        return self._run(self._acall(name, *arguments, **options))

    def settle(self) -> None:
        """Have the loop take a stop that an interrupt left behind, so that it does not end the next call.

        asyncio leaves one if the interrupt comes after a task has ended and before its loop has stopped, whatever
        the task did.
        """
        if self._run is not None:
            with suppress(RuntimeError):
                self._run(asyncio.sleep(0))

    async def _acall(self, name: str, *arguments: Any, **options: Any) -> Any:
        result = getattr(self._saver, f"a{name}")(*arguments, **options)
        return [item async for item in result] if name == "list" else await result

    def state(self, thread: str) -> State:
        """The stored state of a thread."""
        return self.call("list", at(thread))  # type: ignore[no-any-return]  # a list


class Operation(NamedTuple):
    """A call, and the thread's state after it."""

    name: str
    call: Callable[[], Any]
    after: Callable[[State], bool]
    """Whether the thread then has the right state."""


class Story:
    """Calls on one thread, one after the other."""

    def __init__(self, calls: Calls, thread: str) -> None:
        self._calls = calls
        self._numbers = count(1)
        self.thread = thread

    def operations(self, before: State) -> list[Operation]:
        """The calls that are possible in this state of the thread."""
        number = next(self._numbers)
        made = checkpoint(
            {"a": [f"message {index} of a conversation" for index in range(number % 40)], "b": number},
            {"a": number, "b": number},
        )
        newest = before[0].config if before else at(self.thread)
        task = f"task {number}"
        found = [
            Operation(
                "put",
                lambda: self._calls.call("put", newest, made, {"step": number}, {"a": number, "b": number}),
                lambda state: state[1:] == before and [item.checkpoint for item in state[:1]] == [made],
            ),
            self._reading("list", before, before, at(self.thread)),
        ]
        if before:
            found += [
                Operation(
                    "put_writes",
                    lambda: self._calls.call("put_writes", newest, _WRITES, task),
                    lambda state: (
                        state[1:] == before[1:]
                        and [item.checkpoint for item in state] == [item.checkpoint for item in before]
                        and [item[0] for item in state[0].pending_writes].count(task) == len(_WRITES)
                    ),
                ),
                self._reading("get_tuple", before, before[0], at(self.thread)),
                self._reading("get", before, before[-1].checkpoint, before[-1].config),
                Operation(
                    "prune",
                    lambda: self._calls.call("prune", [self.thread], keep_last=3),
                    lambda state: [item.checkpoint for item in state] == [item.checkpoint for item in before[:3]],
                ),
                Operation(
                    "delete_thread", lambda: self._calls.call("delete_thread", self.thread), lambda state: state == []
                ),
            ]
        return found

    def _reading(self, name: str, before: State, expected: Any, config: Any) -> Operation:
        def call() -> None:
            assert self._calls.call(name, config) == expected, f"{name} returned something else"

        return Operation(name, call, lambda state: state == before)


class Trial:
    """Interrupts operations and looks at their outcomes."""

    def __init__(self, calls: Calls, interruptions: Interruptions) -> None:
        self._calls = calls
        self._interruptions = interruptions
        self._marks = count(1)

    def interrupt(self, story: Story, before: State, operation: Operation, strike: Strike) -> State:
        """The thread's state afterwards."""
        faulthandler.dump_traceback_later(_DEADLINE, exit=True)
        returned, _ = self._interruptions.during(operation.call, strike)
        self._calls.settle()
        # A write that was begun may be finished behind the caller's back; whatever is written next comes after it.
        self._calls.call("put_writes", at("mark", "", "1"), [("__error__", next(self._marks))], "task")
        state = self._calls.state(story.thread)
        if not ((state == before and not returned) or operation.after(state)):
            raise AssertionError(
                f"{operation.name} {'returned' if returned else 'was interrupted'}, and the thread holds "
                f"{[item.checkpoint for item in state]} after {[item.checkpoint for item in before]}"
            )
        return state


class Others:
    """Other threads that go on with their calls."""

    def __init__(self, saver: Saver, number: int) -> None:
        self._saver = saver
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(index,), daemon=True) for index in range(number)]
        self.errors: list[BaseException] = []
        self.done = 0
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop them."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _work(self, index: int) -> None:
        config = at(f"other {index}")
        try:
            while not self._over.is_set():
                made = checkpoint({"a": "x" * 500, "n": self.done})
                config = self._saver.put(config, made, {}, {"a": 1, "n": 1})
                found = self._saver.get(at(f"other {index}"))
                assert found is not None
                assert found["id"] == made["id"]
                self.done += 1
                self._over.wait(0.002)
        except BaseException as error:  # noqa: BLE001 - raised in the main thread
            self.errors.append(error)


def at_random(trial: Trial, calls: Calls, interruptions: Interruptions, strikes: int, moments: Moments) -> int:
    """Interrupt calls at random moments, `strikes` times. Returns how many calls were made."""
    stories = [Story(calls, f"thread {number}") for number in range(3)]
    states: dict[str, State] = {story.thread: [] for story in stories}
    for number in count():
        if interruptions.raised >= strikes:
            return number
        story = stories[number % len(stories)]
        before = states[story.thread]
        operations = story.operations(before)
        rare = number % 40 == 0
        chosen = operations[number % len(operations)] if rare else operations[number % min(len(operations), 5)]
        if number % 5 == 4:  # so that it is known how long it takes
            moments.timed(chosen.name, chosen.call)
            states[story.thread] = calls.state(story.thread)
        else:
            states[story.thread] = trial.interrupt(story, before, chosen, moments.next(chosen.name))
    raise AssertionError("it never ends by itself")


def step_by_step(trial: Trial, calls: Calls, names: Sequence[str], stride: int, first: int) -> int:
    """Interrupt each operation at every `stride`-th instruction; how many calls were made."""
    story, made = Story(calls, "thread"), 0
    before: State = []
    for name in names:
        location = first
        while True:
            while len(before) < 5:
                (put,) = [each for each in story.operations(before) if each.name == "put"]
                put.call()
                before = calls.state(story.thread)
            if len(before) > 12:
                calls.call("prune", [story.thread], keep_last=5)
                before = calls.state(story.thread)
            (operation,) = [each for each in story.operations(before) if each.name == name]
            strike = Step(location)
            before = trial.interrupt(story, before, operation, strike)
            made += 1
            if not strike.reached:
                break
            location += stride
    return made


def main() -> None:
    """Run the calls in the arguments, and print figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("where", help="a path or a URL")
    parser.add_argument("--asyncio", choices=["a loop", "loops"], help="one loop for all calls, or one for each")
    parser.add_argument(
        "--raises", default="KeyboardInterrupt", choices=["KeyboardInterrupt", "SystemExit", "TimeoutError"]
    )
    parser.add_argument("--cancels", action="store_true", help="let asyncio.run have the interrupt")
    parser.add_argument("--others", type=int, default=0)
    parser.add_argument("--strikes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stride", type=int, default=0, help="step by step instead of at random")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--operations", default="put,put_writes,get_tuple,get,list,prune,delete_thread")
    given = parser.parse_args()
    raised = {each.__name__: each for each in (KeyboardInterrupt, SystemExit, TimeoutError)}[given.raises]
    faulthandler.dump_traceback_later(_DEADLINE, exit=True)
    with asyncio.Runner() as runner, BACKENDS[given.backend](given.where, runner) as saver:
        calls = Calls(saver, given.asyncio and (asyncio.run if given.asyncio == "loops" else runner.run))
        interruptions = Interruptions(raised, asynchronous=bool(given.asyncio), cancels=given.cancels)
        trial = Trial(calls, interruptions)
        calls.call("put", at("mark"), checkpoint(checkpoint_id="1"), {}, {})
        others = Others(saver, given.others)
        if given.stride:
            made = step_by_step(trial, calls, given.operations.split(","), given.stride, given.first)
        else:
            moments = Moments(given.seed, once=bool(given.asyncio))  # a second one meets asyncio's own clean-up
            made = at_random(trial, calls, interruptions, given.strikes, moments)
        faulthandler.dump_traceback_later(_DEADLINE, exit=True)
        others.end()
        verified = calls.call("verify")
        assert [problem for problem in verified.problems if problem.kind != "orphan"] == [], verified.problems
        json.dump({"calls": made, "interrupts": interruptions.raised, "others": others.done}, sys.stdout)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
