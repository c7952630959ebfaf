"""The live stream of a thread: its events, its queries, and its end."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from page.served import Served, id_of, put, served, until
from threadmark import MemorySaver, Saver, TransientStoreError
from threadmark_cli.page.live import Live
from threadmark_sqlite import SqliteSaver


class Stream:
    """The events of one watcher."""

    def __init__(self, client: httpx.Client, **params: str) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ended = threading.Event()
        self._begun = threading.Event()
        self._leaves = threading.Event()
        self._worker = threading.Thread(target=self._read, args=(client, params))
        self._worker.start()
        assert self._begun.wait(60)

    def _read(self, client: httpx.Client, params: dict[str, str]) -> None:
        kind = ""
        with client.stream("GET", "/api/live", params=params) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self._begun.set()
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((kind, json.loads(line.removeprefix("data: "))))
                if self._leaves.is_set():
                    break
        self.ended.set()

    def leave(self) -> None:
        """Read no further than the next line."""
        self._leaves.set()

    def join(self) -> None:
        """Wait for the end."""
        assert self.ended.wait(60)
        self._worker.join()


@contextmanager
def watching(running: Served, **params: str) -> Iterator[tuple[httpx.Client, Stream]]:
    with running.client() as client:
        stream = Stream(client, **params)
        yield client, stream
        running.server.should_exit = True
        stream.join()


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Saver]:
    with SqliteSaver(tmp_path / "t.db", durability="normal") as saver:
        yield saver


def test_checkpoints_writes_and_removals_are_told(saver: Saver) -> None:
    first = put(saver, "t", {"n": 1})
    with served(saver) as running, watching(running, thread="t") as (_, stream):
        until(lambda: running.page.live.looks > 0)
        second = put(saver, "t", {"n": 2}, first)
        until(lambda: len(stream.events) == 1)
        kind, data = stream.events[0]
        assert (kind, data["newest"], data["checkpoints"]) == ("change", {"": id_of(second)}, 2)
        assert data["updated"].endswith("Z")
        saver.put_writes(second, [("n", 3)], "task")
        until(lambda: len(stream.events) == 2)
        put(saver, "t", {"m": 1}, ns="sub")
        until(lambda: len(stream.events) == 3)
        assert set(stream.events[2][1]["newest"]) == {"", "sub"}
        saver.delete_checkpoint(first)
        until(lambda: len(stream.events) == 4)
        assert stream.events[3][1]["checkpoints"] == 2
        saver.delete_thread("t")
        stream.join()
        assert stream.events[-1][0] == "gone"


def test_whoever_is_told_that_a_thread_is_watched_can_rely_on_it(saver: Saver) -> None:
    async def look_on() -> None:
        live = Live(saver)
        events: Any = live.events("t")  # a generator, which can be closed
        assert await anext(events) == ": watching\n\n"
        assert live.watched == ["t"]
        await events.aclose()
        assert live.watched == []

    put(saver, "t", {"n": 1})
    asyncio.run(look_on())


def test_a_thread_that_is_not_there_is_gone() -> None:
    with MemorySaver() as saver, served(saver) as running, watching(running, thread="none") as (_, stream):
        stream.join()
        assert stream.events == [("gone", {})]
        assert running.page.live.watched == []


def test_the_list_tells_all_at_first_and_then_what_changes(saver: Saver) -> None:
    config = put(saver, "t", {"n": 1})
    put(saver, "u", {"n": 1})
    with served(saver) as running, watching(running, list="1") as (client, stream):
        until(lambda: len(stream.events) == 1)
        kind, data = stream.events[0]
        assert (kind, [each["id"] for each in data["threads"]], data["gone"]) == ("threads", ["u", "t"], [])
        saver.put_writes(config, [("__error__", "it fell")], "task")
        until(lambda: len(stream.events) == 2)
        assert [(each["id"], each["status"]) for each in stream.events[1][1]["threads"]] == [("t", "error")]
        saver.delete_thread("u")
        until(lambda: len(stream.events) == 3)
        assert stream.events[2][1] == {"threads": [], "gone": ["u"]}
        other = Stream(client, list="1")  # a newcomer gets all events, too
        until(lambda: len(other.events) == 1)
        assert [each["id"] for each in other.events[0][1]["threads"]] == ["t"]
        other.leave()
        put(saver, "u", {"n": 1})
        other.join()
        until(lambda: len(stream.events) == 4)


def test_a_thread_that_is_gone_leaves_the_list_in_the_stream(saver: Saver) -> None:
    put(saver, "t", {"n": 1})
    with served(saver) as running, watching(running, thread="none", list="1") as (_, stream):
        until(lambda: {kind for kind, _ in stream.events} == {"gone", "threads"})
        assert running.page.live.watched == []
        put(saver, "u", {"n": 1})
        until(lambda: stream.events[-1][1].get("threads", [{"id": ""}])[0]["id"] == "u")
        assert not stream.ended.is_set()


def test_the_list_is_looked_at_as_long_as_it_is_open(saver: Saver) -> None:
    put(saver, "t", {"n": 1})
    with served(saver) as running, watching(running, list="1") as (_, stream):
        until(lambda: running.page.live.looks_at_list > 1)
        stream.leave()
        put(saver, "u", {"n": 1})
        stream.join()
        until(lambda: running.page.live.looks_at_list == 0)
        assert len(stream.events) == 1  # no event came as long as nothing changed


def test_one_looks_for_all_and_ends_with_the_last(saver: Saver) -> None:
    config = put(saver, "t", {"n": 1})
    with served(saver) as running, watching(running, thread="t") as (client, first):
        second = Stream(client, thread="t")
        assert running.page.live.watched == ["t"]
        until(lambda: running.page.live.looks > 0)
        first.leave()
        config = put(saver, "t", {"n": 2}, config)
        first.join()
        assert running.page.live.watched == ["t"]
        second.leave()
        put(saver, "t", {"n": 3}, config)
        second.join()
        until(lambda: running.page.live.watched == [])


def test_the_end_of_the_server_waits_for_nobody_who_only_looks_on(saver: Saver) -> None:
    put(saver, "t", {"n": 1})
    with served(saver) as running, watching(running, thread="t") as (_, stream):
        assert running.page.live.watched == ["t"]
        running.server.should_exit = True
        stream.join()
    assert running.page.live.watched == []


@pytest.mark.parametrize("error", [TransientStoreError("the server is starting up"), RuntimeError("unforeseen")])
def test_a_database_that_is_away_for_a_while_ends_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with MemorySaver() as other:
        config = put(other, "t", {"n": 1})
        away = _Away(other, error)
        with served(away, origins=[]) as running, watching(running, thread="t") as (_, stream):
            until(lambda: running.page.live.looks > 0)
            away.is_away = True
            until(lambda: away.refused > 1)
            put(other, "t", {"n": 2}, config)
            away.is_away = False
            until(lambda: len(stream.events) == 1)
    assert [record.getMessage() for record in caplog.records] == [f"looking at thread 't' failed: {error}"]


class _Away:
    """A saver in memory that cannot be reached at times."""

    def __init__(self, saver: Saver, error: Exception) -> None:
        self._saver = saver
        self._error = error
        self.is_away = False
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def without_classes(self) -> Any:
        return self

    async def ahistory(self, *args: Any, **named: Any) -> Any:
        if self.is_away:
            self.refused += 1
            raise self._error
        return await self._saver.ahistory(*args, **named)
