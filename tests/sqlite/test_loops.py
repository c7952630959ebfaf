"""One saver, many event loops and threads, blocking calls inside a loop, and a fork."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from children import child, finished
from signals.strikes import Interruptions, Step
from threadmark import ClosedError
from threadmark.program import Program, Transaction
from threadmark_conformance.engine import Run, at, checkpoint
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.steps import execute


@pytest.fixture(params=["file", "memory"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    where = tmp_path / "threads.db" if request.param == "file" else ":memory:"
    with SqliteSaver(where, durability="normal") as opened:
        yield opened


async def _steps(saver: SqliteSaver, thread: str, count: int = 3) -> None:
    run = Run(saver, thread)
    for number in range(count):
        await run.step({"a": [thread, number, "x" * 300]})
        await run.write(("a", number))
    assert len([item async for item in saver.alist(at(thread))]) == count


def test_one_event_loop_after_another(saver: SqliteSaver) -> None:
    for number in range(4):
        asyncio.run(_steps(saver, f"thread {number}"))
    assert len(list(saver.list(None))) == 12


def test_an_event_loop_in_each_of_many_threads(saver: SqliteSaver) -> None:
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(asyncio.run, _steps(saver, f"thread {number}")) for number in range(16)]
        for future in futures:
            future.result()
    assert len(list(saver.list(None))) == 48


def test_both_apis_at_once(saver: SqliteSaver) -> None:
    def blocking(number: int) -> None:
        config = at(f"blocking {number}")
        for _ in range(5):
            config = saver.put(config, checkpoint({"a": "x" * 300}), {}, {"a": 1})
        assert len(list(saver.list(at(f"blocking {number}")))) == 5

    async def together() -> None:
        tasks = [_steps(saver, f"asyncio {number}") for number in range(8)]
        threads = [asyncio.to_thread(blocking, number) for number in range(8)]
        await asyncio.gather(*tasks, *threads)

    asyncio.run(together())
    assert len(list(saver.list(None))) == 64


def test_blocking_calls_inside_a_running_loop_work(saver: SqliteSaver) -> None:
    async def blocks() -> None:
        config = saver.put(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
        saver.put_writes(config, [("a", 2)], "task")
        background = asyncio.ensure_future(_steps(saver, "other"))
        await asyncio.sleep(0)
        assert saver.get(config) is not None
        assert len(list(saver.list(at("thread")))) == 1
        await background
        saver.delete_thread("thread")
        assert await saver.aget(config) is None

    asyncio.run(asyncio.wait_for(blocks(), 60))


def test_a_loop_that_is_gone_leaves_the_saver_well(saver: SqliteSaver) -> None:
    async def abandon() -> None:
        for number in range(20):
            task = asyncio.ensure_future(saver.aput(at(number), checkpoint({"a": 1}), {}, {"a": 1}))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0)

    asyncio.run(abandon())
    asyncio.run(_steps(saver, "after"))


def test_close_finishes_what_was_begun(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"

    async def put_and_close() -> list[Any]:
        saver = SqliteSaver(path, durability="normal")
        puts = [asyncio.ensure_future(saver.aput(at(number), checkpoint(), {}, {})) for number in range(50)]
        await asyncio.sleep(0)
        await saver.aclose()
        return list(await asyncio.gather(*puts, return_exceptions=True))

    outcomes = asyncio.run(put_and_close())
    done = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert all(isinstance(outcome, ClosedError) for outcome in outcomes if isinstance(outcome, BaseException))
    with SqliteSaver(path) as saver:
        assert len(list(saver.list(None))) == len(done)


def test_close_finishes_what_other_threads_began(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    saver = SqliteSaver(path, durability="normal")

    def put_until_closed(name: int) -> int:
        for number in count():
            try:
                saver.put(at(f"{name} {number}"), checkpoint(), {}, {})
            except ClosedError:
                return number
        raise AssertionError("there is always a next number")

    with ThreadPoolExecutor(4) as pool:
        counts = [pool.submit(put_until_closed, name) for name in range(4)]
        while len(list(saver.list(None, limit=20))) < 20:
            pass
        saver.close()
    assert [each.name for each in tmp_path.iterdir()] == ["threads.db"]
    with SqliteSaver(path) as reopened:
        assert len(list(reopened.list(None))) == sum(each.result() for each in counts)


def test_a_read_that_close_overtakes_leaves_nothing_open(tmp_path: Path) -> None:
    saver = SqliteSaver(tmp_path / "threads.db")
    saver.put(at("thread"), checkpoint(), {}, {})
    reading, closed = threading.Event(), threading.Event()

    def read() -> Program[list[Any]]:
        rows = yield from execute("SELECT count(*) FROM threadmark_checkpoint")
        reading.set()
        assert closed.wait(60)
        return rows

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(saver._driver.run, Transaction(read, writes=False))
        assert reading.wait(60)
        saver.close()
        closed.set()
        assert answer.result() == [(1,)]
    assert [each.name for each in tmp_path.iterdir()] == ["threads.db"]


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    before = threading.enumerate()
    for number in range(3):
        with SqliteSaver(tmp_path / "threads.db") as saver:
            asyncio.run(_steps(saver, f"thread {number}"))
            saver.put(at("thread"), checkpoint(), {}, {})
            assert saver.get(at("thread")) is not None
    assert set(threading.enumerate()) <= set(before)


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say about a fork beside threads
from threadmark import ClosedError
from threadmark.program import Program, Transaction
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
saver = SqliteSaver(sys.argv[1])
config = saver.put(at("thread"), checkpoint({"a": "parent"}), {}, {"a": 1})
listing = saver.list(None)
assert saver.get(config) is not None
if (pid := os.fork()) == 0:
    try:
        try:
            assert saver.get(config)["channel_values"] == {"a": "parent"}
            saver.put(at("child"), checkpoint({"a": "child"}), {}, {"a": 1})
            saver.close()
        except ClosedError as error:
            print(error, flush=True)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
saver.put(config, checkpoint({"a": "parent again"}), {}, {"a": 2})
print(len(list(saver.list(None))))
saver.close()
"""


def test_after_a_fork_the_child_opens_the_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    assert finished(child(FORK, path)).splitlines() == ["3"]
    with SqliteSaver(path) as saver:
        assert [item.checkpoint["channel_values"] for item in saver.list(at("child"))] == [{"a": "child"}]


LEAVING_PARENT = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
saver = SqliteSaver(sys.argv[1])
saver.put(at("parent"), checkpoint({"a": "x" * 3000}), {}, {"a": 1})
(stored, storing), (closed, closing) = os.pipe(), os.pipe()
if (pid := os.fork()) == 0:
    for number in range(3):
        saver.put(at("child"), checkpoint({"a": number}), {}, {"a": number})
        os.write(storing, b".")
        os.read(closed, 1)
    os._exit(0)
os.read(stored, 1)
saver.close()
os.write(closing, b".")
os.read(stored, 1)
with SqliteSaver(sys.argv[1]) as other:  # the last one to close the file, if the child did not have it open
    assert len(list(other.list(at("child")))) == 2
    other.put(at("other"), checkpoint({"a": 1}), {}, {"a": 1})
os.write(closing, b"..")
assert os.waitpid(pid, 0)[1] == 0
"""


def test_the_child_of_a_fork_loses_nothing_when_its_parent_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    finished(child(LEAVING_PARENT, path))
    with SqliteSaver(path) as saver:
        assert [item.checkpoint["channel_values"]["a"] for item in saver.list(at("child"))] == [2, 1, 0]
        assert len(list(saver.list(at("other")))) == 1
        assert saver.verify().problems == []


FORK_BESIDE_A_BLOCK = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from threadmark import ClosedError
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.driver import handles
from threadmark_conformance.engine import at, checkpoint
handles._LONGEST_BLOCK = 20 if sys.argv[2] == "ends" else 0.01
saver = SqliteSaver(sys.argv[1])
saver.setup()
begun, ending = threading.Event(), threading.Event()
def block():
    with saver.transaction() as tx:
        tx.saver.put(at("block"), checkpoint({"a": 1}), {}, {"a": 1})
        begun.set()
        assert ending.wait(20) or sys.argv[2] == "ends"
def store():
    saver.put(at("child"), checkpoint({"a": 1}), {}, {"a": 1})
if sys.argv[2] == "inside":
    try:
        with saver.transaction():
            pid = os.fork()
    except ClosedError:
        assert pid == 0  # the transaction is the parent's
else:
    thread = threading.Thread(target=block)
    thread.start()
    begun.wait()
    if sys.argv[2] == "ends":
        threading.Timer(0.1, ending.set).start()
    pid = os.fork()
if pid == 0:
    for use in (store, lambda: SqliteSaver(sys.argv[1]).get(at("block"))):
        try:
            use()
        except ClosedError as error:
            assert "in a transaction when this process was forked" in str(error)
        else:
            assert sys.argv[2] == "ends"
    os._exit(0)
ending.set()
assert os.waitpid(pid, 0)[1] == 0
store()
saver.close()
"""


@pytest.mark.parametrize("when", ["ends", "goes on", "inside"])
def test_a_fork_waits_for_a_transaction_or_the_child_leaves_the_file_alone(when: str, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    finished(child(FORK_BESIDE_A_BLOCK, path, when))
    with SqliteSaver(path) as saver:
        assert len(list(saver.list(at("child")))) == 1 + (when == "ends")
        assert saver.verify().problems == []


BUSY_FORK = """
import faulthandler, os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
saver = SqliteSaver(sys.argv[1], durability="normal")
saver.put(at("main"), checkpoint({"a": 1}), {}, {"a": 1})
done = threading.Event()
def work(name):
    while not done.is_set():
        saver.get(saver.put(at(name), checkpoint({"a": "x" * 3000}), {}, {"a": 1}))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for each in threads:
    each.start()
statuses = []
for number in range(20):
    time.sleep(0.002)
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(25, exit=True)
        saver.get(at("main"))
        saver.put(at("child"), checkpoint({"a": "y" * 3000}), {}, {"a": 1})
        os._exit(0)
    statuses.append(os.waitpid(pid, 0)[1])
done.set()
for each in threads:
    each.join()
saver.close()
print(statuses)
"""


def test_a_fork_while_other_threads_are_at_work_leaves_the_child_free(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    assert finished(child(BUSY_FORK, path)).strip() == str([0] * 20)
    with SqliteSaver(path) as saver:
        assert len(list(saver.list(at("child")))) == 20


def test_after_a_fork_a_database_in_memory_says_where_it_is() -> None:
    problem, count = finished(child(FORK, ":memory:")).splitlines()
    assert "fork" in problem
    assert count == "2"


@pytest.mark.parametrize("use", [lambda saver: saver.close(), lambda saver: asyncio.run(saver.aclose())])
def test_close_in_either_api_lets_go_of_the_file(use: Callable[[SqliteSaver], None], tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    saver = SqliteSaver(path)
    asyncio.run(_steps(saver, "thread"))
    use(saver)
    assert [each.name for each in tmp_path.iterdir()] == ["threads.db"]


# An error while an object is let go is lost; a warning reports it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_close_that_was_interrupted_may_be_called_again(tmp_path: Path) -> None:
    interruptions, location, reached = Interruptions(KeyboardInterrupt), -12, True
    while reached:
        location += 13
        saver = SqliteSaver(tmp_path / f"{location}.db", durability="normal")
        saver.put(at("other"), checkpoint(), {}, {})
        asyncio.run(_steps(saver, "thread"))
        step = Step(location)
        interruptions.during(saver.close, step)
        reached = step.reached
        saver.close()
        assert [each.name for each in tmp_path.glob(f"{location}.db*")] == [f"{location}.db"]
        with pytest.raises(ClosedError):
            saver.get(at("thread"))
    assert interruptions.raised > 3


AIOSQLITE_FORK = """
import asyncio, faulthandler, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say about a fork beside threads
import aiosqlite
from threadmark import ClosedError
from threadmark.program import Program, Transaction
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
async def use():
    return await saver.aget(at("thread"))
async def main():
    global saver
    connection = await aiosqlite.connect(sys.argv[1])
    saver = SqliteSaver(connection)
    await saver.aput(at("thread"), checkpoint(), {}, {})
    if (pid := os.fork()) == 0:
        faulthandler.dump_traceback_later(25, exit=True)
        try:
            await use()
        except ClosedError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(1)
    print(os.waitpid(pid, 0)[1])
    assert await use()
    await connection.close()
asyncio.run(main())
"""


def test_after_a_fork_an_aiosqlite_connection_is_refused(tmp_path: Path) -> None:
    assert finished(child(AIOSQLITE_FORK, tmp_path / "threads.db")).strip() == "0"
