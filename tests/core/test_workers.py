"""The work that threads hand to each other survives callers that leave, and ends with its owner."""

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from patience import wait_until
from signals.strikes import Interruptions, Step
from threadmark import ClosedError
from threadmark.runtime.workers import Answer, Workers, in_spite_of_cancelling, run_on_loop


def every_step(call: Callable[[], object], look: Callable[[], None]) -> None:
    """Interrupt a call at every instruction, and look at the state each time."""
    interruptions, location, reached = Interruptions(KeyboardInterrupt), 0, True
    while reached:
        location += 1
        step = Step(location)
        interruptions.during(call, step)
        reached = step.reached
        look()
    assert interruptions.raised > 0


def test_workers_go_on_wherever_a_caller_is_interrupted() -> None:
    done: list[int] = []
    workers = Workers(2, "test")

    def look() -> None:
        assert workers.submit(lambda: 7).wait(20)

    every_step(lambda: workers.run(lambda: done.append(1)), look)
    assert done
    workers.close()


def test_each_of_many_has_a_thread_while_there_are_threads_left() -> None:
    workers, free = Workers(4, "test"), threading.Event()
    waiting = [workers.submit(lambda: free.wait(20)) for _ in range(3)]
    assert workers.submit(lambda: "done").wait(20)
    assert [answer.done() for answer in waiting] == [False] * 3
    free.set()
    assert [answer.result() for answer in waiting] == [True] * 3
    workers.close()


def test_what_was_given_is_done_before_the_end_and_more_is_refused() -> None:
    workers, done = Workers(1, "test"), list[int]()
    answers = [workers.submit(lambda number=number: done.append(number)) for number in range(20)]  # type: ignore[misc]
    workers.close()
    workers.close()
    assert all(answer.done() for answer in answers)
    assert done == list(range(20))
    with pytest.raises(ClosedError):
        workers.submit(lambda: None)


def test_the_threads_end_with_whom_they_belong_to() -> None:
    workers = Workers(1, "test")
    its_thread = workers.run(threading.current_thread)
    assert its_thread.is_alive()
    del workers
    gc.collect()
    wait_until(lambda: not its_thread.is_alive(), "its thread goes on without it")


def test_an_error_reaches_whoever_waits() -> None:
    async def ask() -> None:
        with pytest.raises(ZeroDivisionError):
            await workers.asubmit(lambda: 1 // 0)

    workers = Workers(1, "test")
    with pytest.raises(ZeroDivisionError):
        workers.run(lambda: 1 // 0)
    asyncio.run(ask())
    workers.close()


def test_work_of_a_task_that_was_cancelled_before_is_not_begun() -> None:
    workers, free, done = Workers(1, "test"), threading.Event(), list[int]()

    async def body() -> None:
        first = workers.asubmit(lambda: free.wait(20))
        workers.asubmit(lambda: done.append(1)).cancel()
        free.set()
        await first

    asyncio.run(body())
    workers.close()
    assert done == []


def test_an_answer_to_a_loop_that_was_closed_goes_nowhere() -> None:
    workers, free = Workers(1, "test"), threading.Event()

    async def body() -> None:
        workers.asubmit(lambda: free.wait(20))

    asyncio.run(body())
    free.set()
    assert workers.run(lambda: 1) == 1
    workers.close()


def test_a_thread_that_stopped_waiting_may_wait_again() -> None:
    answer = Answer()
    assert not answer.wait(0.001)
    answer.set_result(3)
    assert answer.wait()
    assert answer.wait()
    assert answer.result() == 3


def test_another_threads_loop_is_not_held_up_by_a_caller_that_is_interrupted() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def work() -> int:
        await asyncio.sleep(0)
        return 5

    def look() -> None:
        answered = threading.Event()
        loop.call_soon_threadsafe(answered.set)
        assert answered.wait(20)

    every_step(lambda: run_on_loop(work, loop), look)
    assert run_on_loop(work, loop) == 5
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_what_went_wrong_with_the_work_is_the_cause_of_the_cancellation() -> None:
    async def work() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("of the work")

    async def body() -> None:
        task = asyncio.ensure_future(in_spite_of_cancelling(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert repr(caught.value.__cause__) == "ValueError('of the work')"

    asyncio.run(body())


def test_whoever_is_cancelled_waits_all_the_same() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.append("work")

    async def body() -> None:
        task = asyncio.ensure_future(in_spite_of_cancelling(work()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["work"]

    asyncio.run(body())
