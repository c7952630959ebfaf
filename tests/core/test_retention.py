"""The service that repeats a retention: it starts, stops, goes on after errors, and leaves nothing behind."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from threadmark import ConfigError, MemorySaver, Retention, StoreError
from threadmark.ids import new_id, time_of_id
from threadmark.store.contract import now
from threadmark.types import RetentionReport
from threadmark_sqlite import SqliteSaver

SOON = timedelta(milliseconds=1)
PATIENCE = 30


class Watched(MemorySaver):
    """Says when a retention is over, and may fail."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.calls = 0
        self.often = threading.Event()
        self.often_in_loop: Callable[[], object] = lambda: None

    def apply_retention(self, **rules: Any) -> RetentionReport:
        self._called()
        return super().apply_retention(**rules)

    async def aapply_retention(self, **rules: Any) -> RetentionReport:
        self._called()
        return await super().aapply_retention(**rules)

    def _called(self) -> None:
        self.calls += 1
        if self.calls > self.failures + 2:
            self.often.set()
            self.often_in_loop()
        if self.calls <= self.failures:
            raise StoreError("the database is away")


def _expired(saver: MemorySaver | SqliteSaver, threads: int = 1) -> None:
    for number in range(threads):
        saver.create_thread(f"{number:04}", expires_at=-timedelta(days=1))


def test_it_removes_again_and_again_until_it_is_stopped() -> None:
    with Watched() as saver:
        _expired(saver)
        with Retention(saver, every=SOON, jitter=0, keep_last=3) as service:
            assert saver.often.wait(PATIENCE)
        calls = saver.calls
        assert service.last_error is None
        assert service.last_report is not None
        assert saver.get_thread("0000") is None
        assert "threadmark-retention" not in [thread.name for thread in threading.enumerate()]
        assert saver.calls == calls
        saver.often.clear()
        service.start()  # once more
        assert saver.often.wait(PATIENCE)
        service.stop()
        service.stop()


def test_the_same_as_a_task() -> None:
    async def main() -> None:
        async with Watched() as saver:
            _expired(saver)
            often = asyncio.Event()
            saver.often_in_loop = often.set
            async with Retention(saver, every=SOON, jitter=0) as service:
                await asyncio.wait_for(often.wait(), PATIENCE)
                with pytest.raises(ConfigError, match="started already"):
                    service.start()
            assert service.last_report is not None
            assert await saver.aget_thread("0000") is None
            assert len(asyncio.all_tasks()) == 1
            await service.astop()

    asyncio.run(main())


def test_an_event_loop_that_ends_takes_it_along() -> None:
    async def main() -> Retention:
        service = Retention(MemorySaver())
        await service.astart()
        await asyncio.sleep(0)
        return service

    service = asyncio.run(main())
    service.start()  # it is not running any more
    service.stop()


def test_stopping_ends_a_sleep_at_once() -> None:
    begun = threading.Event()

    class Once(MemorySaver):
        def apply_retention(self, **rules: Any) -> RetentionReport:
            begun.set()
            return super().apply_retention(**rules)

    service = Retention(Once(), jitter=0)
    service.start()
    assert begun.wait(PATIENCE)
    stopper = threading.Thread(target=service.stop)
    stopper.start()
    stopper.join(PATIENCE)  # its pause is an hour
    assert not stopper.is_alive()


def test_stopping_waits_for_a_transaction_and_not_for_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteSaver(tmp_path / "threads.db", durability="normal") as saver:
        _expired(saver, 200)
        service = Retention(saver, jitter=0)
        counted = threading.Event()
        retention = saver.apply_retention

        def slow(*, progress: Any, **rules: Any) -> RetentionReport:
            def told(done: Any) -> None:
                if not counted.is_set() and service._stop is not None:
                    service._stop()
                counted.set()
                progress(done)

            return retention(progress=told, **rules)

        monkeypatch.setattr(saver, "apply_retention", slow)  # to stop at a certain transaction
        service.start()
        assert counted.wait(PATIENCE)
        service.stop()
        assert saver.count_threads() == 200 - 16
        assert (service.last_report, service.last_error) == (None, None)


def test_errors_are_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "threadmark"), Watched(failures=2) as saver:
        with Retention(saver, every=SOON, jitter=0) as service:
            assert saver.often.wait(PATIENCE)
        assert service.last_error is None
        assert service.last_report is not None
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "StoreError: the database is away" in caplog.text


def test_each_pause_after_an_error_is_longer_up_to_every() -> None:
    service = Retention(MemorySaver(), every=timedelta(seconds=10), jitter=0)
    assert [service._failed(StoreError("away")) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    service._succeeded(MemorySaver().apply_retention())
    assert service._failed(StoreError("away")) == 1


def test_a_closed_saver_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    saver = MemorySaver()
    saver.close()
    with caplog.at_level(logging.INFO, "threadmark"):
        service = Retention(saver, every=SOON, jitter=0)
        service.start()
        thread = service._thread
        assert thread is not None
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert [record.levelname for record in caplog.records] == ["INFO"]
    service.stop()


def test_damage_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    report = MemorySaver().apply_retention()
    Retention(MemorySaver())._succeeded(report)
    assert caplog.records == []
    Retention(MemorySaver())._succeeded(report._replace(problems=[("damaged", "thread 'a'", "x")]))  # type: ignore[list-item]  # only counted
    assert "1 damaged" in caplog.text


def test_pauses_are_longer_by_a_random_part() -> None:
    service = Retention(MemorySaver(), every=timedelta(seconds=10), jitter=0.5)
    pauses = {service._succeeded(MemorySaver().apply_retention()) for _ in range(50)}
    assert len(pauses) > 1
    assert all(10 <= pause <= 15 for pause in pauses)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"every": "1h"}, "every"),
        ({"every": timedelta(0)}, "every"),
        ({"jitter": 2}, "jitter"),
        ({"jitter": True}, "jitter"),
        ({"keep_last": 0}, "keep_last"),
        ({"idle_for": -3}, "idle_for"),
        ({"keep": 3}, "unknown rule 'keep'"),
    ],
)
def test_wrong_options_are_refused_when_it_is_made(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Retention(MemorySaver(), **options)


PROGRAM = """
import sys
from datetime import timedelta
import threadmark
from threadmark import Retention
saver = threadmark.open("sqlite:///threads.db")
saver.create_thread("gone", expires_at=-timedelta(days=1))
Retention(saver, every=timedelta(milliseconds=1), jitter=0).start()
{end}
"""


@pytest.mark.parametrize("end", ["", "while saver.get_thread('gone'): pass", "import os; os.fork()"])
def test_a_program_may_end_without_stopping_it(end: str, tmp_path: Path) -> None:
    code = PROGRAM.format(end=end)
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_has_none_running() -> None:
    service = Retention(MemorySaver())
    service.start()
    service._reset_after_fork()  # as a fork does in the child
    service.start()
    service.stop()


def test_an_id_says_when_it_was_made() -> None:
    before = now()
    made = time_of_id(new_id())
    assert made is not None
    assert before <= made <= now() + 1
    assert time_of_id("1f0a4a2e-0000-4000-8000-000000000000") is None
    assert time_of_id("early") is None
