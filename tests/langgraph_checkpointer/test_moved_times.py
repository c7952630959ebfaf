"""A moved checkpoint counts as stored when LangGraph stored it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as TheirSaver

import backends
import postgres.backends
import redis_backend.backends
from threadmark import MemorySaver, Saver
from threadmark_langgraph import migrate

BACKENDS: dict[str, Callable[[Path], Any]] = {
    "memory": backends.memory,
    "sqlite": backends.sqlite_file,
    "postgres": postgres.backends.from_url,
    "redis": redis_backend.backends.BACKENDS["single"],
    "sealed": backends.sealed,
}
FIRST = datetime(2025, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
DAYS = 4


def theirs(*times: str, thread: str = "thread") -> TheirSaver:
    """LangGraph's saver with a checkpoint of each of these times, and a pending write for the last."""
    saver = TheirSaver()
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for number, ts in enumerate(times, 1):
        made = {**empty_checkpoint(), "ts": ts, "channel_values": {"n": number}, "channel_versions": {"n": number}}
        config = saver.put(config, made, {"step": number}, {"n": number})  # type: ignore[arg-type]  # a plain dict
    saver.put_writes(config, [("n", 9)], "task")
    return saver


@pytest.fixture(params=BACKENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with BACKENDS[request.param](tmp_path) as opened, opened() as saver:
        yield saver


def test_moved_history_keeps_its_times(target: Saver) -> None:
    times = [FIRST + timedelta(days=number) for number in range(DAYS)]
    assert migrate(theirs(*(time.isoformat() for time in times)), target).problems == []
    assert [entry.created_at for entry in target.history("thread").entries] == times[::-1]
    assert [node.created_at for node in target.tree("thread").nodes] == times[::-1]
    thread = target.get_thread("thread")
    assert thread is not None
    assert thread.updated_at == times[-1]
    assert [each.id for each in target.list_threads(until=times[-1] + timedelta(seconds=1)).threads] == ["thread"]
    assert target.verify().problems == []
    assert target.prune(None, keep_last=1, older_than=timedelta(days=30)).checkpoints == DAYS - 1
    assert target.apply_retention(idle_for=timedelta(days=30)).idle == 1
    assert target.get_thread("thread") is None


def test_a_run_goes_on_from_it_today(target: Saver) -> None:
    begun = datetime.now(UTC)
    migrate(theirs(FIRST.isoformat()), target)
    last: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
    found = target.get_tuple(last)
    assert found is not None
    made: Any = {**empty_checkpoint(), "channel_values": {"n": 2}, "channel_versions": {"n": 2}}
    target.put(found.config, made, {}, {"n": 2})
    thread = target.get_thread("thread")
    assert thread is not None
    assert thread.updated_at >= begun


@pytest.mark.parametrize("ts", ["no time", "", "2999-01-01T00:00:00+00:00"])
def test_what_is_no_time_or_is_to_come_counts_from_now(ts: str) -> None:
    begun = datetime.now(UTC)
    with MemorySaver() as target:
        migrate(theirs(ts), target)
        (entry,) = target.history("thread").entries
        assert begun <= entry.created_at <= datetime.now(UTC)


def test_a_time_without_a_zone_is_one_of_utc() -> None:
    with MemorySaver() as target:
        migrate(theirs(FIRST.replace(tzinfo=None).isoformat()), target)
        assert [entry.created_at for entry in target.history("thread").entries] == [FIRST]
