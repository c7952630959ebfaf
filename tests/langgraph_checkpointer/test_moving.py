"""Threads move from LangGraph's savers to ours and back: same ids, order and values, and their runs go on."""

import asyncio
import sqlite3
import sys
from collections import UserDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import numpy as np
import psycopg
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import TASKS
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_checkpointer.command import reported_problem, run_command
from langgraph_checkpointer.theirs import THEIRS, channels, checkpoint, location, new_database, store, their_sqlite
from langgraph_parity.apis import Blocking
from langgraph_parity.records import one, record
from langgraph_parity.scenarios import conversations, deltas, failures, interrupts, subgraphs, travel
from langgraph_parity.states import Position
from threadmark import ConfigError, Conversations, Keyring, MemorySaver, Serde, new_id
from threadmark_langgraph import InMemorySaver, PostgresSaver, SqliteSaver, export, migrate, wrap
from threadmark_langgraph.moving import __main__ as command
from threadmark_langgraph.moving.sources import config_of

API = Blocking()
SCENARIOS = [
    conversations.chat_of_three_turns,
    *deltas.SCENARIOS,
    failures.one_of_three_fails,
    failures.fan_out,
    interrupts.several_questions_in_one_step,
    subgraphs.going_back_inside,
    travel.fork_from_the_past,
    travel.pydantic_state,
]
THREAD: Any = {"configurable": {"thread_id": "nested"}}
RARE: Any = {"configurable": {"thread_id": "rare"}}


PLACE = location("one")


def fill(saver: BaseCheckpointSaver[Any]) -> None:
    """Store many kinds of checkpoints, an open question among them."""

    async def run() -> None:
        for scenario in SCENARIOS:
            await scenario(API, saver)
        await API.invoke(subgraphs.nested(saver, memory=None), {"steps": []}, THREAD)

    asyncio.run(run())


def contents(saver: BaseCheckpointSaver[Any]) -> list[Any]:
    """The checkpoints that a saver lists, as LangGraph's serializer keeps them: errors become text, tuples lists."""
    return [
        (
            found.config["configurable"],
            found.parent_config,
            found.checkpoint["channel_values"],
            found.metadata,
            [(*task, _comparable(value)) for *task, value in found.pending_writes or ()],
        )
        for found in sorted(saver.list(None), key=lambda each: str(each.config))
    ]


def _comparable(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return repr(value) if isinstance(value, Exception) else value


class Forgetful(JsonPlusSerializer):
    """Cannot read one of its values."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        value = super().loads_typed(data)
        if value == "lost":
            raise ValueError("forgotten")
        return value


@pytest.mark.parametrize("theirs", THEIRS)
def test_everything_moves_and_comes_back_equal(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    with theirs(tmp_path) as source, SqliteSaver(tmp_path / "ours.db") as target:
        fill(source)
        tried = migrate(source, target, dry_run=True)
        moved = migrate(source, target)
        assert moved == tried
        assert moved.problems == []
        assert moved.checkpoints == len(list(source.list(None)))
        assert moved.writes > 0
        assert contents(target) == contents(source)
        again = migrate(source, target)
        assert (again.checkpoints, again.already_there) == (0, moved.checkpoints)
        for saver in (source, target):
            subgraphs.nested(saver, memory=None).invoke(Command(resume="yes"), THREAD)
            deltas.delta_graph(deltas.Rare, saver).invoke({"items": ["on"], "turn": 9}, RARE)
        assert _states(target) == _states(source)


def _states(saver: BaseCheckpointSaver[Any]) -> Any:
    """The states of two threads, one with an open question and one with a delta channel."""
    graphs = ((subgraphs.nested(saver, memory=None), THREAD), (deltas.delta_graph(deltas.Rare, saver), RARE))
    return [one(graph.get_state(thread)) for graph, thread in graphs]


@pytest.mark.parametrize("keyring", [False, True])
def test_what_is_set_of_a_thread_moves_with_it(keyring: bool) -> None:  # noqa: FBT001 - a parameter of the test
    keys = Keyring({"a": b"k" * 32}, "a", digest_secret=b"d" * 32) if keyring else None
    with MemorySaver() as source, MemorySaver(keyring=keys, ttl=timedelta(days=1)) as target:
        for name in ("set", "kept", "plain"):
            store(wrap(source), location(name), checkpoint({"a": 1}))
        expires = datetime(2096, 1, 1, tzinfo=UTC)
        source.update_thread("set", owner="ada", title="a title", metadata={"k": 1}, expires_at=expires)
        source.update_thread("kept", owner="ada", title="of the source")
        target.create_thread("kept", title="of the target")
        assert not migrate(source, target, dry_run=True).problems
        assert target.get_thread("set") is None
        for _ in range(2):
            assert not migrate(source, target).problems
            found = {thread.id: thread for thread in target.list_threads().threads}
            assert found["set"][1:4] == ("ada", "a title", {"k": 1})
            assert found["set"].expires_at == expires
            assert found["kept"][1:4] == (None, "of the target", {})
            assert found["plain"][1:4] == (None, None, {})


def test_a_thread_without_a_checkpoint_moves_with_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadmark_langgraph.moving.describing._PAGE", 1)
    with MemorySaver() as source, MemorySaver() as target:
        for name in ("begun", "plain"):
            source.create_thread(name)
        source.create_thread("described", owner="ada", title="a title", metadata={"k": 1})
        store(wrap(source), location("begun"), checkpoint({"a": 1}))
        assert migrate(source, target, dry_run=True).threads == 3
        assert target.count_threads() == 0
        for _ in range(2):
            moved = migrate(source, target)
            assert (moved.threads, moved.problems) == (3, [])
            found = {thread.id: thread[1:4] for thread in target.list_threads().threads}
            assert found["described"] == ("ada", "a title", {"k": 1})
            assert found.keys() == {"begun", "described", "plain"}


@pytest.mark.parametrize("theirs", THEIRS)
def test_a_thread_belongs_to_the_user_whose_runs_made_it(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    user: Any = {"configurable": {"thread_id": "of a user", "user_id": "ada"}}
    with theirs(tmp_path) as source, MemorySaver() as target:
        subgraphs.nested(source, memory=None).invoke({"steps": []}, user)
        assert not migrate(source, target).problems
        assert [thread.owner for thread in target.list_threads().threads] == ["ada"]
        assert wrap(target).for_owner("ada").get_tuple(user) is not None


def test_only_classes_are_allowed() -> None:
    with pytest.raises(ConfigError, match="not of 'shop:Order': import the class"):
        migrate(TheirMemory(), MemorySaver(), allow=["shop:Order"])  # type: ignore[list-item]  # the mistake


def test_messages_move_between_two_threadmark_savers() -> None:
    with MemorySaver() as source, MemorySaver() as target:
        talk, moved = Conversations(source), Conversations(target)
        said = [{"id": f"m{number}", "content": "x" * number} for number in range(250)]
        talk.put_messages({"thread_id": "both", "user_id": "ada", "run_id": "r"}, said)
        talk.put_messages({"thread_id": "both"}, [AIMessage("an answer", id="last")])
        store(wrap(source), location("both"), checkpoint({"a": 1}))
        talk.put_messages({"thread_id": "only"}, said[:3])
        assert migrate(source, target, dry_run=True).messages == 254
        assert target.list_threads().threads == []
        report = migrate(source, target)
        assert (report.messages, report.checkpoints, report.threads, report.problems) == (254, 1, 2, [])
        for each in (talk, moved):
            found = each.get_messages({"thread_id": "both", "user_id": "ada"}, limit=300)
            assert found == [*said, AIMessage("an answer", id="last")]
            assert each.get_messages({"thread_id": "only"}) == said[:3]
        talk.put_messages({"thread_id": "only"}, [{"id": "later"}])
        assert migrate(source, target).messages == 1
        assert [message["id"] for message in moved.get_messages({"thread_id": "only"})] == ["m0", "m1", "m2", "later"]


def test_messages_have_no_place_in_langgraphs_savers(tmp_path: Path) -> None:
    with MemorySaver() as source, TheirSqlite.from_conn_string(str(tmp_path / "theirs.db")) as target:
        store(wrap(source), location("both"), checkpoint({"a": 1}))
        Conversations(source).put_messages({"thread_id": "both"}, [{"id": "first"}, {"id": "last"}])
        report = export(wrap(source), target)
        assert (report.checkpoints, report.incomplete) == (1, [])
        (problem,) = report.problems
        assert problem.ref.id == "last"
        assert "no place for messages" in problem.reason
        assert len(list(target.list(None))) == 1


def test_branches_move_to_a_saver_that_expects_the_newest() -> None:
    with MemorySaver() as source, MemorySaver(expect_newest=True) as target:
        saver = wrap(source)
        first = store(saver, location("1"), checkpoint({"a": 1}))
        for value in (2, 3):
            store(saver, first, checkpoint({"a": value}))
        assert migrate(source, target).problems == []
        assert len(list(target.list({"configurable": {"thread_id": "1"}}))) == 3


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("form", [1, 3])
def test_packets_that_an_old_format_kept_with_the_parent_move(
    form: int, theirs: Callable[[Path], Any], tmp_path: Path
) -> None:
    sends = [Send("item", 1), Send("item", 2)]
    with theirs(tmp_path) as source, InMemorySaver() as target:
        parent = store(source, PLACE, {**checkpoint({"m": 1}), "v": form})
        for number, send in enumerate(sends):
            source.put_writes(parent, [(TASKS, send)], f"task {number}", f"~__pregel_pull, {number}")
        child = store(source, parent, {**checkpoint({"m": 2}, 2), "v": form})
        assert migrate(source, target).problems == []
        assert channels(target, child) == {"m": 2, TASKS: sends}
        for again in (migrate(source, target), export(target, source)):
            assert (again.problems, again.already_there) == ([], 2)


def test_a_file_from_before_task_paths_moves_though_it_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with their_sqlite(tmp_path) as source:
        made = store(source, PLACE, checkpoint({"m": 1}))
        source.put_writes(made, [("m", 2)], "task")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    reading = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    with closing(reading), InMemorySaver() as target:
        moved = migrate(TheirSqlite(reading), target)
        assert (moved.problems, moved.checkpoints, moved.writes) == ([], 1, 1)
        found = target.get_tuple(made)
        assert found is not None
        assert found.pending_writes == [("task", "m", 2)]


@pytest.mark.parametrize("theirs", THEIRS[:2])
def test_writes_whose_checkpoint_is_not_there_are_reported(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    with theirs(tmp_path) as source, SqliteSaver(tmp_path / "ours.db") as target:
        store(source, PLACE, checkpoint({"m": 1}))
        for saver, move in ((source, migrate), (target, export)):
            gone = {"thread_id": "two", "checkpoint_ns": "", "checkpoint_id": new_id()}
            for task in ("first", "second"):
                saver.put_writes({"configurable": gone}, [("m", 1), ("n", 2)], task)
            moved = move(saver, target if saver is source else source)
            assert [config_of(problem.ref, problem.ref.id) for problem in moved.problems] == [{"configurable": gone}]
            assert "pending writes" in str(moved)


def test_a_move_is_logged_with_its_counts_and_no_value(caplog: pytest.LogCaptureFixture) -> None:
    source, target = TheirMemory(), InMemorySaver()
    source.put(PLACE, {**empty_checkpoint(), "channel_values": {"a": "distinctive"}}, {}, {"a": 1})
    with caplog.at_level("DEBUG", "threadmark"):
        migrate(source, target, dry_run=True)
        migrate(source, target)
        export(target, TheirMemory())
    ours = [record.getMessage() for record in caplog.records if record.name == "threadmark.langgraph"]
    assert [line.partition(" checkpoint")[0] for line in ours] == ["would be moved: 1", "moved: 1", "moved: 1"]
    assert all(" 0 not moved, in 0." in line for line in ours)
    assert "distinctive" not in caplog.text


def test_dry_run_reads_everything_and_stores_nothing(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with their_sqlite(tmp_path) as source, InMemorySaver() as target:
        asyncio.run(travel.replay(API, source))
        moved = migrate(source, target, dry_run=True, progress=lambda *step: steps.append(step))
        assert moved.checkpoints == len(steps) == steps[-1][1]
        assert list(target.list(None)) == []


def relations(url: str) -> Any:
    """How many tables and indexes of users a Postgres database has, and how many schemas."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT (SELECT count(*) FROM pg_class WHERE oid >= 16384), (SELECT count(*) FROM pg_namespace)"
        ).fetchone()


@pytest.mark.parametrize("before", [None, "", "CREATE TABLE others (x)"], ids=["no file", "empty", "another's"])
def test_dry_run_makes_nothing_in_sqlite(before: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ours.db"
    if before is not None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(before)
    there = {each: each.read_bytes() for each in tmp_path.iterdir()}
    source = TheirMemory()
    store(source, PLACE, checkpoint({"m": 1}))
    with SqliteSaver(path) as target:
        tried = migrate(source, target, dry_run=True)
        assert (tried.checkpoints, tried.problems) == (1, [])
        assert {each: each.read_bytes() for each in tmp_path.iterdir()} == there
        assert migrate(source, target) == tried


@pytest.mark.parametrize("schema", [None, "agents"])
def test_dry_run_makes_nothing_in_postgres(schema: str | None, tmp_path: Path) -> None:
    url = new_database(tmp_path)
    there = relations(url)
    source = TheirMemory()
    store(source, PLACE, checkpoint({"m": 1}))
    with PostgresSaver(url, schema=schema) as target:
        tried = migrate(source, target, dry_run=True)
        assert (tried.checkpoints, tried.problems) == (1, [])
        assert relations(url) == there
        assert migrate(source, target) == tried
        assert migrate(source, target, dry_run=True).already_there == 1


def test_dry_run_makes_nothing_on_the_way_back(tmp_path: Path) -> None:
    url = new_database(tmp_path)
    there = relations(url)
    with (
        SqliteSaver(tmp_path / "ours.db") as source,
        TheirSqlite.from_conn_string(str(tmp_path / "theirs.db")) as file,
        TheirPostgres.from_conn_string(url) as server,
    ):
        assert export(source, file, dry_run=True).checkpoints == 0
        assert not (tmp_path / "ours.db").exists()
        config = store(source, PLACE, checkpoint({"m": 1}))
        tried = [export(source, target, dry_run=True) for target in (file, server)]
        assert (tmp_path / "theirs.db").read_bytes() == b""
        assert relations(url) == there
        assert [export(source, target) for target in (file, server)] == tried
        assert [channels(target, config) for target in (file, server)] == [{"m": 1}] * 2


def test_dry_run_reports_what_cannot_be_stored() -> None:
    source, target = TheirMemory(serde=JsonPlusSerializer(pickle_fallback=True)), InMemorySaver()
    store(source, PLACE, checkpoint({"m": UserDict(a=1)}))
    source.put_writes(store(source, location("two"), checkpoint({"m": 1})), [("m", UserDict(a=1))], "task")
    tried = migrate(source, target, dry_run=True)
    assert all("UserDict cannot be stored" in problem.reason for problem in tried.problems)
    assert len(tried.problems) == 2
    assert migrate(source, target) == tried


def test_dry_run_reports_what_would_come_back_changed() -> None:
    source, target = TheirMemory(serde=Serde()), InMemorySaver(serde=JsonPlusSerializer())
    store(source, store(source, PLACE, checkpoint({"m": [1]})), checkpoint({"m": (1,)}, 2))
    tried = migrate(source, target, dry_run=True)
    assert [problem.reason for problem in tried.problems] == [
        "stored and read back, it differs in channel 'm': (1,) in the source, [1] in the target"
    ]
    assert migrate(source, target) == tried


def test_dry_run_reports_what_would_be_added_to_an_existing_checkpoint() -> None:
    source, target = TheirMemory(), InMemorySaver()
    config = store(source, PLACE, checkpoint({"m": 1}))
    source.put_writes(config, [("m", 2)], "first")
    migrate(source, target)
    source.put_writes(config, [("m", 3)], "second")
    tried = migrate(source, target, dry_run=True)
    assert (tried.checkpoints, tried.writes, tried.already_there, tried.problems) == (0, 1, 1, [])
    assert migrate(source, target) == tried


def test_move_that_was_stopped_is_finished_by_the_next(tmp_path: Path) -> None:
    class Enough(Exception):  # noqa: N818 - the user's action, not an error
        pass

    def stop(done: int, total: int) -> None:
        if done == total // 2:
            raise Enough

    with their_sqlite(tmp_path) as source, InMemorySaver() as target:
        asyncio.run(travel.replay(API, source))
        with pytest.raises(Enough):
            migrate(source, target, progress=stop)
        rest = migrate(source, target)
        assert rest.already_there > 0
        assert rest.checkpoints > 0
        assert contents(target) == contents(source)


def test_checkpoint_that_is_there_and_differs_is_reported_and_left_alone() -> None:
    source, target, stored = TheirMemory(), InMemorySaver(), checkpoint({"m": "moved"})
    config = store(source, PLACE, stored)
    store(target, PLACE, {**stored, "channel_values": {"m": "there"}})
    for dry_run in (True, False):
        moved = migrate(source, target, dry_run=dry_run)
        assert [problem.reason for problem in moved.problems] == [
            "there already, and left alone, it differs in channel 'm': 'moved' in the source, 'there' in the target"
        ]
        assert (moved.checkpoints, moved.already_there) == (0, 0)
        assert channels(target, config) == {"m": "there"}


class Answers(TypedDict):
    given: list[int]


def questions(saver: BaseCheckpointSaver[Any]) -> Any:
    """A node that asks three questions, one after the other."""
    builder: Any = StateGraph(Answers).add_node("ask", lambda _: {"given": [interrupt(n) for n in range(3)]})
    return builder.add_edge(START, "ask").compile(checkpointer=saver)


@pytest.mark.parametrize("asked", [1, 2])
@pytest.mark.parametrize("further", [1, 2])
def test_thread_that_went_on_in_the_target_is_left_alone(asked: int, further: int) -> None:
    source, target = TheirMemory(), InMemorySaver()
    questions(source).invoke({}, PLACE)
    for n in range(asked - 1):
        questions(source).invoke(Command(resume=n), PLACE)
    first = migrate(source, target)
    for n in range(further):
        questions(target).invoke(Command(resume=asked + n), PLACE)
    there = contents(target)
    moved = migrate(source, target)
    assert (moved.checkpoints, moved.writes, moved.already_there) == (0, 0, first.checkpoints)
    assert moved.problems == []
    assert contents(target) == there


@pytest.mark.parametrize("theirs", THEIRS)
def test_thread_that_went_on_in_the_source_is_followed(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    with theirs(tmp_path) as source, InMemorySaver() as target:
        questions(source).invoke({}, PLACE)
        first = migrate(source, target)
        for n in range(2):
            questions(source).invoke(Command(resume=n), PLACE)
            moved = migrate(source, target)
            assert (moved.checkpoints, moved.already_there, moved.problems) == (0, first.checkpoints, [])
            assert moved.writes > 0
            assert contents(target) == contents(source)
        for saver in (source, target):
            assert questions(saver).invoke(Command(resume=2), PLACE) == {"given": [0, 1, 2]}


@pytest.mark.parametrize(("move", "target"), [(migrate, InMemorySaver), (export, TheirMemory)], ids=["there", "back"])
def test_task_that_writes_between_two_moves_keeps_its_place_among_the_others(
    move: Callable[..., Any], target: Callable[[], Any]
) -> None:
    """Its path sorts it before the task that was there, and the ids of both sort the other way."""
    source, there = InMemorySaver(), target()
    config = store(source, PLACE, checkpoint({"m": 1}))
    source.put_writes(config, [("m", 1)], "task 1", "~second")
    assert not move(source, there).problems
    source.put_writes(config, [("m", 2)], "task 2", "~first")
    assert not move(source, there).problems
    for saver in (source, there):
        found = saver.get_tuple(config)
        assert found is not None
        assert found.pending_writes == [("task 2", "m", 2), ("task 1", "m", 1)]


def test_newest_checkpoint_stays_the_newest_if_the_reason_for_it_was_removed() -> None:
    """The clock was set back, so it sorts after its parent only, and that has gone: its id is the smallest."""
    early, first, parent = (new_id() for _ in range(3))
    source, target = wrap(MemorySaver()), wrap(MemorySaver())
    config = PLACE
    for id_ in (first, parent, early):
        stored: Checkpoint = {**checkpoint({"m": id_}), "id": id_}
        config = source.put(config, stored, {"step": 0, "run_id": id_}, stored["channel_versions"])
    assert source.saver.delete_for_runs([parent]).checkpoints == 1
    for expected in ((2, 0), (0, 2)):
        moved = migrate(source, target)
        assert (moved.checkpoints, moved.already_there, moved.problems) == (*expected, [])
        for saver in (source, target):
            assert [each.checkpoint["id"] for each in saver.list(PLACE)] == [early, first]
            assert channels(saver, PLACE) == {"m": early}


def test_thread_that_went_on_on_both_sides_is_reported_and_left_alone() -> None:
    source, target = TheirMemory(), InMemorySaver()
    config = store(source, PLACE, checkpoint({"m": 1}))
    migrate(source, target)
    source.put_writes(config, [("m", 2)], "one task")
    target.put_writes(config, [("m", 3)], "another task")
    (problem,) = migrate(source, target).problems
    assert "each side has some that the other lacks" in problem.reason
    found = target.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("another task", "m", 3)]


@pytest.mark.parametrize(
    ("there", "what"),
    [
        ([("n", 2), ("m", 1)], "the order of pending writes: at [0], \"to 'm' by task task\" in the source, "),
        ([("m", 1), ("n", 3)], "the pending writes to channel 'n': 2 in the source, 3 in the target"),
    ],
)
def test_pending_writes_that_differ_are_reported_and_left_alone(there: list[tuple[str, Any]], what: str) -> None:
    source, target, stored = TheirMemory(), InMemorySaver(), checkpoint({})
    config = store(source, PLACE, stored)
    store(target, PLACE, stored)
    source.put_writes(config, [("m", 1), ("n", 2)], "task")
    target.put_writes(config, there, "task")
    (problem,) = migrate(source, target).problems
    assert problem.reason.startswith(f"there already, and left alone, it differs in {what}")
    found = target.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", *write) for write in there]


def test_checkpoint_that_is_there_and_cannot_be_read_is_reported_and_its_thread_is_held_back() -> None:
    source, target = TheirMemory(), InMemorySaver(serde=JsonPlusSerializer())
    config = store(source, PLACE, checkpoint({"m": "lost"}))
    migrate(source, target)
    store(source, config, checkpoint({"m": "found"}, 2))
    target.serde = Forgetful()
    moved = migrate(source, target)
    assert "there already, it cannot be read" in str(moved)
    assert (moved.checkpoints, len(moved.problems)) == (1, 1)


def test_class_that_may_not_be_loaded_is_reported_and_moves_when_it_may(tmp_path: Path) -> None:
    with their_sqlite(tmp_path) as source, MemorySaver() as target:
        source.serde = JsonPlusSerializer(allowed_msgpack_modules=[])
        store(source, PLACE, checkpoint({"here": Position(1, 2)}))
        (problem,) = migrate(source, target).problems
        assert "langgraph_parity.states.Position" in str(problem)
        assert target.get_tuple(PLACE) is None
        assert migrate(source, target, allow=[Position]).problems == []
        found = target.get(PLACE)
        assert found is not None
        assert found["channel_values"] == {"here": Position(1, 2)}


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("shop_of_another_program", "shop_of_another_program.Order cannot be imported here: move where Python finds"),
        ("__main__", "call threadmark_langgraph.migrate() (or export()) from the application"),
        ("string", "the module 'string' has no class 'Order', and LangGraph's serializer gives only the fields"),
    ],
)
def test_class_that_is_not_found_is_reported_and_moves_where_it_is(
    module: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: Any = dataclass(type("Order", (), {"__annotations__": {"number": int}, "__module__": module}))
    with their_sqlite(tmp_path) as source, InMemorySaver() as target:
        store(source, PLACE, checkpoint({"order": order(1)}))
        for dry_run in (True, False):
            (problem,) = migrate(source, target, dry_run=dry_run).problems
            assert advice in problem.reason
        assert target.get_tuple(PLACE) is None
        shop = sys.modules.get(module) or ModuleType(module)
        monkeypatch.setitem(sys.modules, module, shop)
        monkeypatch.setattr(shop, "Order", order, raising=False)
        assert migrate(source, target).problems == []
        assert channels(target, PLACE) == {"order": order(1)}


def test_damaged_checkpoint_is_reported_and_its_thread_is_held_back(tmp_path: Path) -> None:
    with their_sqlite(tmp_path) as source, InMemorySaver() as target:
        asyncio.run(travel.replay(API, source))
        with sqlite3.connect(tmp_path / "theirs.db") as damage:
            newest = damage.execute("SELECT max(checkpoint_id) FROM checkpoints").fetchone()[0]
            damage.execute("UPDATE checkpoints SET checkpoint = x'c1' WHERE checkpoint_id = ?", (newest,))
        damage.close()
        for dry_run in (True, False):
            moved = migrate(source, target, dry_run=dry_run)
            assert [problem.ref.id for problem in moved.problems] == [newest]
            assert "cannot be read" in str(moved)
            assert (moved.checkpoints, list(target.list(None))) == (0, [])
            assert f"{moved.held_back} held back with them" in str(moved)
        held_back = moved.held_back
        moved = migrate(source, target, partial=True)
        assert [problem.ref.id for problem in moved.problems] == [newest]
        assert moved.checkpoints == len(list(target.list(None))) == held_back > 0


def test_threads_that_are_whole_move_beside_one_that_is_not() -> None:
    source, target = InMemorySaver(serde=Forgetful()), TheirMemory()
    for thread, value in (("a", "found"), ("b", "lost"), ("c", "found")):
        place: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        store(source, store(source, place, checkpoint({"m": value})), checkpoint({"m": "found"}))
    moved = export(source, target)
    assert (moved.checkpoints, moved.held_back, moved.incomplete) == (4, 1, ["b"])
    assert {found.config["configurable"]["thread_id"] for found in target.list(None)} == {"a", "c"}


@pytest.mark.parametrize("theirs", THEIRS)
def test_everything_can_go_back(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "ours.db") as source, theirs(tmp_path) as target:
        fill(source)
        tried = export(source, target, dry_run=True)
        moved = export(source, target)
        assert moved == tried
        assert moved.problems == []
        assert contents(target) == contents(source)
        result = subgraphs.nested(target, memory=None).invoke(Command(resume="yes"), THREAD)
        assert result["steps"][-1] == "shut"


@pytest.mark.parametrize("theirs", THEIRS)
def test_an_update_that_could_be_of_two_nodes_stays_ambiguous_on_the_way_back(
    theirs: Callable[[Path], Any], tmp_path: Path
) -> None:
    def graph(saver: BaseCheckpointSaver[Any]) -> Any:
        builder: Any = StateGraph(Answers)
        for name in ("one", "two", "last"):
            builder.add_node(name, lambda _: {})
        builder.add_edge(START, "one").add_edge(START, "two").add_edge("one", "last")
        return builder.compile(checkpointer=saver, interrupt_before=["last"])

    with InMemorySaver() as source, theirs(tmp_path) as target:
        threads = [location(str(n)) for n in range(3)]
        for thread in threads:
            graph(source).invoke({"given": []}, thread)
        assert export(source, target).problems == []
        for thread in threads:
            with pytest.raises(InvalidUpdateError, match="Ambiguous"):
                graph(target).update_state(thread, {"given": [1]})


def test_forks_stay_apart_in_a_saver_that_goes_by_versions() -> None:
    with InMemorySaver() as source:
        asyncio.run(travel.fork_from_the_past(API, source))
        target = TheirMemory()
        assert export(source, target).problems == []
        thread: Any = {"configurable": {"thread_id": "forked"}}
        theirs = list(travel.walk(target).get_state_history(thread))
        assert record(theirs) == record(list(travel.walk(source).get_state_history(thread)))
        assert {tuple(each.values["trail"]) for each in theirs} >= {("a", "left", "b", "c"), ("a", "right", "b", "c")}


@pytest.mark.parametrize("theirs", THEIRS)
def test_damaged_checkpoint_is_reported_and_its_thread_stays(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    stored = {name: checkpoint({"m": name * 4000}) for name in ("first", "damaged", "last")}
    with SqliteSaver(tmp_path / "ours.db") as whole:
        configs = {name: store(whole, location(name), each) for name, each in stored.items()}
    with sqlite3.connect(tmp_path / "ours.db") as damage:
        damage.execute(
            "UPDATE threadmark_segment SET data = zeroblob(length(data)) "
            "WHERE thread = (SELECT thread FROM threadmark_thread WHERE thread_id = 'damaged')"
        )
    damage.close()
    with SqliteSaver(tmp_path / "ours.db") as source, theirs(tmp_path) as target:
        for dry_run in (True, False):
            moved = export(source, target, dry_run=dry_run)
            assert [problem.ref.thread_id for problem in moved.problems] == ["damaged"]
            assert moved.checkpoints == 2
        assert channels(target, configs["first"]) == stored["first"]["channel_values"]
        assert channels(target, configs["last"]) == stored["last"]["channel_values"]
        assert target.get_tuple(configs["damaged"]) is None


def test_value_that_cannot_be_read_is_reported_and_its_thread_stays() -> None:
    source, target = InMemorySaver(serde=Forgetful()), TheirMemory()
    config = store(source, store(source, PLACE, checkpoint({"m": "lost"})), checkpoint({"m": "found"}))
    moved = export(source, target)
    assert "it cannot be read" in str(moved)
    assert (moved.checkpoints, moved.held_back, len(moved.problems)) == (0, 1, 1)
    assert list(target.list(None)) == []
    moved = export(source, target, partial=True)
    assert (moved.checkpoints, len(moved.problems)) == (1, 1)
    assert channels(target, config) == {"m": "found"}


def test_a_pickled_value_is_named_and_moves_from_a_saver_that_reads_it(tmp_path: Path) -> None:
    path, pickling = tmp_path / "theirs.db", JsonPlusSerializer(pickle_fallback=True)
    value = {"k": Fraction(1, 3)}  # LangGraph has no other way to store it
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        source = TheirSqlite(connection, serde=pickling)
        stored = store(source, PLACE, checkpoint({"m": value}))
        moved = migrate(str(path), InMemorySaver())
        assert (moved.checkpoints, len(moved.problems)) == (0, 1)
        assert "it was stored with pickle_fallback=True" in str(moved)
        assert "serde=JsonPlusSerializer(pickle_fallback=True)" in str(moved)
        with InMemorySaver() as target:
            assert migrate(source, target).checkpoints == 1
            assert channels(target, stored) == {"m": value}


@pytest.mark.parametrize("theirs", THEIRS)
def test_thread_goes_back_to_where_it_came_from(theirs: Callable[[Path], Any], tmp_path: Path) -> None:
    with theirs(tmp_path) as origin, InMemorySaver() as saver:
        first = store(origin, PLACE, checkpoint({"kept": "a", "changed": "b"}))
        migrate(origin, saver)
        second = store(
            saver, first, {**checkpoint({"kept": "a", "changed": "c"}), "channel_versions": {"kept": 1, "changed": 2}}
        )
        moved = export(saver, origin)
        assert (moved.problems, moved.already_there, moved.checkpoints) == ([], 1, 1)
        assert channels(origin, first) == {"kept": "a", "changed": "b"}
        assert channels(origin, second) == {"kept": "a", "changed": "c"}
        assert export(saver, origin).already_there == 2


def test_checkpoint_that_is_there_and_differs_is_left_alone_on_the_way_back_too() -> None:
    source, target, stored = InMemorySaver(), TheirMemory(), checkpoint({"rows": np.array([1, 2])})
    config = store(source, PLACE, stored)
    store(source, config, {**checkpoint({"rows": np.array([1, 2])}), "channel_versions": {"rows": 1}})
    store(target, PLACE, {**stored, "channel_values": {"rows": np.array([3, 4])}})
    moved = export(source, target)
    assert [problem.ref.id for problem in moved.problems] == [stored["id"]]
    assert channels(target, config)["rows"].tolist() == [3, 4]
    assert channels(target, PLACE)["rows"].tolist() == [1, 2]


def test_move_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with their_sqlite(tmp_path) as source:
        asyncio.run(travel.pydantic_state(API, source))
        there = contents(source)
    monkeypatch.chdir(tmp_path)
    assert run_command(monkeypatch, "theirs.db", "sqlite:///ours.db", "--allow", "langgraph_parity.states:Order") == 0
    assert f"{len(there)} checkpoints" in capsys.readouterr().out
    with SqliteSaver("ours.db") as target:
        assert contents(target) == there


@pytest.mark.parametrize("url", ["sqlite:///our%20file.db", "sqlite:///{}/our%20file.db"], ids=["relative", "absolute"])
def test_command_makes_no_file_in_a_dry_run(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    monkeypatch.chdir(tmp_path)
    there = set(tmp_path.iterdir())
    assert run_command(monkeypatch, "theirs.db", url.format(tmp_path), "--dry-run") == 0
    first, counts = capsys.readouterr().out.splitlines()
    assert "nothing was stored" in first
    assert counts.startswith("1 checkpoint with ")
    assert set(tmp_path.iterdir()) == there
    assert run_command(monkeypatch, "theirs.db", url.format(tmp_path)) == 0
    assert run_command(monkeypatch, "theirs.db", url.format(tmp_path), "--dry-run") == 0
    assert "1 already there" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("content", [None, b"", b"no database" * 100], ids=["missing", "empty", "something else"])
def test_command_refuses_a_source_that_is_none(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "mistyped.db").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    there = set(tmp_path.iterdir())
    for source in ("mistyped.db", "sqlite:///mistyped.db"):
        assert run_command(monkeypatch, source, "sqlite:///ours.db") == 2
        assert "'mistyped.db'" in reported_problem(capsys)
    assert set(tmp_path.iterdir()) == there


def test_command_takes_the_source_as_a_url_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    assert run_command(monkeypatch, f"sqlite:///{tmp_path}/theirs.db", f"sqlite:///{tmp_path}/ours.db") == 0


def test_command_refuses_a_server_that_is_not_there_or_has_no_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for source, problem in (
        ("postgresql://127.0.0.1:1/name", "the Postgres database cannot be used: "),
        (new_database(tmp_path), "holds no tables with checkpoints"),
    ):
        assert run_command(monkeypatch, source, f"sqlite:///{tmp_path}/ours.db") == 2
        assert problem in reported_problem(capsys)
        assert list(tmp_path.iterdir()) == []


def test_command_says_what_to_do_with_a_file_that_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class ReadOnly(sqlite3.Connection):
        """SQLite's error for a folder without the right to write, which the user of this test may have everywhere."""

        def execute(self, *_: Any) -> Any:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = sqlite3.SQLITE_READONLY_CANTINIT
            raise error

    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: ReadOnly(":memory:"))
    assert run_command(monkeypatch, f"{tmp_path}/theirs.db", f"{tmp_path}/ours.db") == 2
    assert "copy it to such a folder" in reported_problem(capsys)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("sqlite:///missing/ours.db", "check that its folder exists"),
        ("sqlite:///text.txt", "not a SQLite database"),
        ("mysql://host/name", "no backend serves 'mysql'"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_command_refuses_a_target_that_cannot_be(
    target: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    dry_run: bool,
) -> None:
    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("no database" * 100)
    there = set(tmp_path.iterdir())
    assert run_command(monkeypatch, "theirs.db", target, *["--dry-run"] * dry_run) == 2
    assert problem in reported_problem(capsys)
    assert set(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("langgraph_parity.stats:Order", "the module 'langgraph_parity.stats' cannot be imported"),
        ("langgraph_parity.states:Ordr", "no class 'Ordr': did you mean langgraph_parity.states:Order?"),
        ("langgraph_parity.states:dataclass", "no class 'dataclass'"),
        ("langgraph_parity.states", "'langgraph_parity.states' names no class: write module:Class"),
        ("langgraph_parity.states:", "names no class"),
        (":Order", "names no class"),
        (".states:Order", "cannot be imported"),
        ("broken:Order", "'broken' cannot be imported (ZeroDivisionError: "),
    ],
)
def test_command_refuses_a_class_that_is_none(
    named: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    there = set(tmp_path.iterdir())
    assert run_command(monkeypatch, "theirs.db", "sqlite:///ours.db", "--allow", named) == 2
    assert problem in reported_problem(capsys)
    assert set(tmp_path.iterdir()) == there


def test_command_that_was_stopped_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    monkeypatch.setattr(command, "migrate", stop)
    assert run_command(monkeypatch, str(tmp_path / "theirs.db"), "memory:") == 130
    assert "stopped" in capsys.readouterr().err


def test_command_says_which_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with their_sqlite(tmp_path) as source:
        store(source, PLACE, checkpoint({"m": 1}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    run_command(monkeypatch, "theirs.db", "memory:")
    assert "threadmark-langgraph[migrate]" in capsys.readouterr().err
