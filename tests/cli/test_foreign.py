"""LangGraph's own databases: read as ours are, without a change to them, and without a trust in any row."""

import asyncio
import json
import os
import pickle
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from http import HTTPStatus
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from httpx import ASGITransport, AsyncClient
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send

from cli.langgraphs import PLACES, Place, config, extension, graph, say, sqlite_place
from threadmark.errors import ConfigError
from threadmark.types import ObjectView
from threadmark_cli.exits import DONE, FAILED, REFUSED, USAGE, WRONG
from threadmark_cli.foreign.decoding import Decoder
from threadmark_cli.foreign.opening import in_file, in_postgres
from threadmark_cli.main import run
from threadmark_cli.page.app import create_app
from threadmark_cli.sqlite_files import read_file


@pytest.fixture(scope="module", params=PLACES, ids=["sqlite", "postgres"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A database of LangGraph's, with a thread that asks, one that failed and one that is done. Tests change copies."""
    place: Place = request.param(tmp_path_factory.mktemp("theirs"))
    with place.open() as saver:
        app = graph(saver)
        for thread_id in ("asks", "failed"):
            say(app, thread_id, "first")
            say(app, thread_id, "second")
        with pytest.raises(ValueError, match="the third time"):
            say(app, "failed", "third")
        say(app, "done", "hello")
    return place


@pytest.fixture
def place(filled: Place, tmp_path: Path) -> Place:
    """A copy for one test."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    return filled.copy(folder)


def opened(place: Place) -> Any:
    """Our reader of LangGraph's tables."""
    found = looked_for(place)
    assert found is not None
    return found


def looked_for(place: Place) -> Any:
    """The reader of LangGraph's tables, if it is for those."""
    return in_postgres(place.url) if "://" in place.url else in_file(Path(place.url))


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """The records of a command with --json."""
    assert run([*arguments, "--json"]) == DONE
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_threads_are_listed_from_the_tables(filled: Place, capsys: pytest.CaptureFixture[str]) -> None:
    before = filled.content()
    listed = {each["id"]: each for each in records(capsys, "threads", filled.url)}
    with filled.open() as saver:
        everything = list(saver.list(None))
    assert {name: each["status"] for name, each in listed.items()} == {
        "asks": "interrupted",
        "failed": "error",
        "done": "idle",
    }
    for name, each in listed.items():
        mine = [found for found in everything if found.config["configurable"]["thread_id"] == name]
        assert each["checkpoints"] == len(mine)
        assert each["namespaces"] == len({found.config["configurable"]["checkpoint_ns"] for found in mine}) == 2
        newest = max(found.config["configurable"]["checkpoint_id"] for found in mine if not _ns(found))
        assert each["newest"] == newest
        assert each["size_bytes"] > 1000
        assert (
            each["updated_at"][:16]
            == next(found for found in mine if found.checkpoint["id"] == newest).checkpoint["ts"][:16]
        )
    assert filled.content() == before


def _ns(found: Any) -> str:
    return str(found.config["configurable"]["checkpoint_ns"])


def test_a_listing_is_sorted_paged_and_filtered(filled: Place) -> None:
    with opened(filled) as saver:
        first = saver.list_threads(sort="id", limit=2)
        assert [each.id for each in first.threads] == ["asks", "done"]
        rest = saver.list_threads(sort="id", limit=2, cursor=first.cursor)
        assert ([each.id for each in rest.threads], rest.cursor) == (["failed"], None)
        assert [each.id for each in saver.list_threads().threads] == ["done", "failed", "asks"]
        assert [each.id for each in saver.list_threads(sort="created", offset=1).threads] == ["failed", "done"]
        assert [each.id for each in saver.list_threads(status="error").threads] == ["failed"]
        assert [each.id for each in saver.list_threads(text="on").threads] == ["done"]
        done = saver.get_thread("done")
        assert [each.id for each in saver.list_threads(since=done.updated_at).threads] == ["done"]
        assert [each.id for each in saver.list_threads(until=done.updated_at, sort="id").threads] == ["asks", "failed"]
        assert saver.list_threads(owner="somebody").threads == saver.list_threads(metadata={"team": 1}).threads == []
        assert saver.count_threads() == saver.stats().threads == 3
        whole, parts = saver.stats(), [saver.stats(each) for each in ("asks", "failed", "done")]
        assert whole.writes == sum(each.writes for each in parts) > 0
        assert whole.bytes_stored == sum(each.bytes_stored for each in parts)
        assert {"messages", "count", "log"} <= parts[0].channels.keys()
        assert saver.get_thread("nobody") is None
        with pytest.raises(ConfigError, match="threadmark migrate copies its threads"):
            saver.list_threads(status="unfinished")


def test_every_checkpoint_reads_as_langgraph_reads_it(filled: Place) -> None:
    with filled.open() as theirs:
        expected = list(theirs.list(config("failed")))
    with opened(filled) as saver:
        for found in expected:
            ours = saver.get_tuple(found.config)
            assert ours.metadata == found.metadata
            assert ours.config == found.config
            assert ours.parent_config == found.parent_config
            assert ours.checkpoint["channel_versions"] == found.checkpoint["channel_versions"]
            assert ours.checkpoint["channel_values"].keys() == found.checkpoint["channel_values"].keys()
            assert _comparable(ours.checkpoint["channel_values"]) == _comparable(found.checkpoint["channel_values"])
            # LangGraph keeps the text of an error only.
            assert _comparable(ours.pending_writes) == _comparable(found.pending_writes)


def _comparable(value: Any) -> Any:
    """A value with the facts that both sides have of an object: its class, and its content or value."""
    if isinstance(value, ObjectView):
        return value.name, _comparable(value.fields.get("content", value.fields.get("value")))
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_comparable(each) for each in value]
    if type(value).__module__.startswith("lang"):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        return name, _comparable(getattr(value, "content", getattr(value, "value", None)))
    return value


def test_history_tree_diff_blame_and_search_work_on_it(filled: Place) -> None:
    before = filled.content()
    with opened(filled) as saver:
        history = saver.history("asks", ns=None, limit=100).entries
        assert [each.problem for each in history] == [None] * len(history)
        newest = saver.history("asks").entries[0]
        assert newest.source == "loop"
        assert newest.nodes == ["sub"]
        assert [(each.node, each.channel) for each in newest.writes] == [("check", "__interrupt__")]
        assert len({each.created_at for each in history}) == len(history)  # each as old as its id says
        assert newest.created_at - history[-1].created_at < timedelta(minutes=5)
        assert {node.id for node in saver.tree("asks").nodes} == {each.id for each in history}
        older = {"configurable": {**config("asks")["configurable"], "checkpoint_id": newest.parent}}
        changed = {each.path: each.kind for each in saver.diff(older, config("asks")).changes}
        assert changed["log[2]"] == "added"
        stats = saver.stats("asks")
        assert (stats.threads, stats.checkpoints, stats.bytes_stored) == (
            1,
            len(history),
            saver.get_thread("asks").size_bytes,
        )
        assert saver.history("nobody").entries == []
        assert saver.get_tuple(config("nobody")) is None
    assert filled.content() == before


@pytest.mark.parametrize("arguments", [("fork", "asks"), ("prune", "--all", "--yes"), ("delete", "asks", "--yes")])
def test_what_would_change_it_is_refused(
    place: Place, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.content()
    assert run([*arguments, "--url", place.url]) == REFUSED
    assert "threadmark migrate" in capsys.readouterr().err
    assert place.content() == before


def test_methods_that_write_and_owners_are_refused(filled: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(filled) as saver:
        with pytest.raises(Exception, match="only read here"):
            saver.delete_thread("asks")
        with pytest.raises(AttributeError):
            saver.no_such_method()
    assert run(["threads", filled.url, "--owner", "somebody"]) == USAGE
    assert "have no owners" in capsys.readouterr().err


async def _read_twice(saver: Any) -> tuple[Any, Any]:
    return await saver.ahistory("asks", ns=None, limit=50), (await saver.alist_threads()).threads


def test_asyncio_reads_the_same(filled: Place) -> None:
    with opened(filled) as saver:
        history, threads = asyncio.run(_read_twice(saver))
        assert history == saver.history("asks", ns=None, limit=50)
        assert threads == saver.list_threads().threads


async def _asked_by_the_page(saver: Any, newest: str) -> list[tuple[str, Any]]:
    questions = [
        "threads?count=1",
        *(f"{each}?thread=asks" for each in ("thread", "history", "tree", "checkpoint", "search")),
        f"value?thread=asks&ns=&id={newest}&path=messages[0]",
        f"diff?thread=asks&ns=&b={newest}",
        f"blame?thread=asks&ns=&id={newest}&path=count",
    ]
    app = create_app(saver, token="once")  # noqa: S106 - of a test
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        await client.get("/?token=once")
        answers = [await client.get(f"/api/{each}{'&text=second' * ('search' in each)}") for each in questions]
    return [(str(answer.url), answer.json()) for answer in answers if answer.status_code != HTTPStatus.OK]


def test_the_page_reads_it(filled: Place) -> None:
    before = filled.content()
    with opened(filled) as saver:
        assert asyncio.run(_asked_by_the_page(saver, saver.get_thread("asks").newest)) == []
    assert filled.content() == before


def test_a_thread_that_goes_on_is_followed(place: Place) -> None:
    with opened(place) as saver, place.open() as theirs:
        app = graph(theirs)
        before = saver.history("done", ns=None, limit=100).entries
        state = app.get_state(config("done"))
        app.update_state(state.config, {"count": 10})
        after = saver.history("done", ns=None, limit=100).entries
        assert [each.id for each in after[1:]] == [each.id for each in before]
        assert [each.channel for each in after[1].writes] == ["count"]
        assert saver.get_tuple(config("done")).checkpoint["channel_values"]["count"] == 10
        theirs.delete_thread("done")
        assert saver.history("done", ns=None).entries == []
        assert saver.get_thread("done") is None
        say(app, "done", "anew")
        assert len(saver.history("done", ns=None, limit=100).entries) == len(list(theirs.list(config("done"))))


def test_nothing_is_made_beside_a_file_whose_log_is_empty_or_in_use(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
        in_use = place.content()
        assert in_use[1] == ["old.db", "old.db-shm", "old.db-wal"]
        assert [each.id for each in opened(place).list_threads().threads] == ["one"]
        assert place.content() == in_use
    closed = place.content()
    assert closed[1] == ["old.db"]
    assert [each.id for each in opened(place).list_threads().threads] == ["one"]
    assert place.content() == closed


def test_a_log_is_found_through_a_symbolic_link(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "old.db")
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
        threads = read_file(link, lambda file: file.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall())
        assert [thread for (thread,) in threads] == ["one"]


def test_tables_of_ours_count_once_they_hold_something(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"asks", "failed", "done"}
    assert run(["setup", place.url]) == DONE
    assert looked_for(place) is not None
    capsys.readouterr()
    assert {each["id"] for each in records(capsys, "threads", place.url)} == names
    assert run(["delete", "asks", "--yes", "--url", place.url]) == REFUSED
    assert run(["migrate", place.url, place.url]) == DONE
    assert looked_for(place) is None
    capsys.readouterr()
    assert {each["id"] for each in records(capsys, "threads", place.url)} == names
    if "://" in place.url:
        assert (
            run(["threads", place.url, "-o", "schema=another"]) == FAILED
        )  # which has no tables, whatever is next to it


class _Runs:
    """Touches a file when a pickle of it is loaded."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self._path,)


def _payloads(canary: str) -> dict[str, tuple[str, bytes]]:
    """Rows that run code if they are trusted: each makes a folder."""
    return {
        "pickle": ("pickle", pickle.dumps(_Runs(canary))),
        "function": ("msgpack", extension(0, ["os", "mkdir", canary])),
        "arguments": ("msgpack", extension(1, ["os", "mkdir", [canary]])),
        "names": ("msgpack", extension(2, ["os", "mkdir", {"path": canary}])),
        "method": ("msgpack", extension(3, ["pathlib", "Path", canary, "mkdir"])),
        "import": ("msgpack", extension(0, ["canary_module", "Anything", canary])),
        "model": ("msgpack", extension(5, ["canary_module", "Anything", {"a": 1}, "model_validate_json"])),
        "json": (
            "json",
            json.dumps({"lc": 2, "type": "constructor", "id": ["os", "mkdir"], "args": [canary]}).encode(),
        ),
    }


def test_what_a_row_names_is_shown_and_neither_imported_nor_called(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "canary_module.py").write_text(f"import os; os.mkdir({str(canary)!r})")
    monkeypatch.syspath_prepend(str(tmp_path))
    named = {"pickle": "unread:pickle", "method": "pathlib:Path"}
    named |= {"import": "canary_module:Anything", "model": "canary_module:Anything"}
    for kind, (tag, data) in _payloads(str(canary)).items():
        place.replace("asks", tag, data)
        before = place.content()
        shown = records(capsys, "export", place.url, "asks")
        assert named.get(kind, "os:mkdir") in {value["__type__"] for line in shown for value in _shown_in(line)}
        assert not canary.exists(), kind
        assert place.content() == before
    assert "canary_module" not in sys.modules


def _shown_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "__type__" in value:
            yield value
        for each in value.values():
            yield from _shown_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _shown_in(each)


def test_the_attacks_are_real(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    payloads = _payloads(str(canary))
    for kind in ("pickle", "function", "arguments", "names"):
        JsonPlusSerializer(pickle_fallback=True, allowed_msgpack_modules=True).loads_typed(payloads[kind])
        assert canary.is_dir(), kind
        canary.rmdir()


def test_a_row_that_cannot_be_read_hides_no_other(place: Place) -> None:
    place.replace("failed", "msgpack", b"\xc1")
    with opened(place) as saver:
        assert len(saver.history("failed", ns=None, limit=100).entries) == saver.get_thread("failed").checkpoints
        found = saver.get_tuple(config("failed"))
        unread = [each for each in _values(found) if isinstance(each, ObjectView) and each.name == "unread:msgpack"]
        assert unread
        assert unread[0].fields["data"] == b"\xc1"
        assert saver.get_tuple(config("done")).checkpoint["channel_values"]["count"] == 1


def test_a_row_whose_ids_are_no_text_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # SQLite keeps anything in a column of text: bytes, a number, text that is not UTF-8.
    place = sqlite_place(tmp_path)
    with place.open() as saver:
        say(graph(saver), "done", "hello")
    expected = records(capsys, "log", place.url, "done")
    with closing(sqlite3.connect(place.url)) as connection:
        odd = ("x'ff00'", "CAST(x'ff41' AS TEXT)", "''")
        for sound in ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id"):
            columns = "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
            for number, value in enumerate(odd[: 2 if sound in {"thread_id", "checkpoint_ns"} else 3]):
                taken = columns.replace(sound, value, 1).replace(" checkpoint_id", f" 'id-{sound}-{number}'")
                connection.execute(f"INSERT OR IGNORE INTO checkpoints ({columns}) SELECT {taken} FROM checkpoints")
        for sound in ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "channel"):
            columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value"
            for number, value in enumerate(odd[:2]):
                taken = columns.replace(sound, value, 1).replace("idx", str(1000 + number))
                connection.execute(f"INSERT OR IGNORE INTO writes ({columns}) SELECT {taken} FROM writes")
        connection.execute("UPDATE checkpoints SET metadata = 5 WHERE checkpoint_id LIKE 'id-%'")
        connection.commit()
    shown = records(capsys, "log", place.url, "done")
    assert {each["id"] for each in expected} < {each["id"] for each in shown}
    assert [each["id"] for each in records(capsys, "threads", place.url, "--text", "done")] == ["done"]
    for arguments in (["threads"], ["log"], ["log", "--graph"], ["stats"], ["doctor"], ["show"]):
        assert run(["-u", place.url, *arguments]) == DONE, arguments
    assert "Traceback" not in capsys.readouterr().err


def _values(found: Any) -> list[Any]:
    return [*found.checkpoint["channel_values"].values(), *(value for _, _, value in found.pending_writes)]


def test_what_a_cipher_wrote_is_shown_as_that() -> None:
    shown = Decoder().value("msgpack+aes", b"secret")
    assert shown == ObjectView("unread:msgpack+aes", {"reason": shown.fields["reason"], "data": b"secret"})
    assert Decoder().value(None, None) is Decoder().value("null", b"") is None


@settings(max_examples=100)
@given(st.sampled_from(["msgpack", "json", "pickle", "null", "bytes", ""]), st.binary(max_size=60))
def test_no_bytes_make_it_raise(kind: str, data: bytes) -> None:
    Decoder().value(kind, data)
    Decoder().value("msgpack", bytes([0xC7, len(data), 0]) + data)
    Decoder().value("msgpack", bytes([0xC7, len(data), 2]) + data)


def test_an_object_that_is_repeated_is_decoded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    serializer = JsonPlusSerializer()
    rows = [serializer.dumps_typed([HumanMessage(f"text {each % 3}", id=str(each % 3))] * 2) for each in range(9)]
    once = [Decoder().value(*row) for row in rows]
    for held in (10**6, 300, 1):
        monkeypatch.setattr("threadmark_cli.foreign.decoding._MOST_HELD", held)
        decoder = Decoder()
        assert [decoder.value(*row) for row in rows] == once
    assert [each[0].fields["content"] for each in once[:3]] == ["text 0", "text 1", "text 2"]


def test_builtin_kinds_come_back_as_they_are() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))
    kinds: list[Any] = [
        *({1, 2}, frozenset("ab"), deque([1, 2]), Decimal("1.50"), UUID(int=5), IPv4Address("127.0.0.1")),
        *(moment, moment.date(), moment.time(), timedelta(days=1, microseconds=2), UTC, Path("/a/b")),
        *({"nested": [{1: b"bytes"}, None, True, 2.5]}, ZoneInfo("Europe/Paris"), bytearray(b"a"), b"a"),
    ]
    serializer = JsonPlusSerializer()
    for value in kinds:
        found = Decoder().value(*serializer.dumps_typed(value))
        assert (type(found), found) == (type(value), value)
    send = Decoder().value(*serializer.dumps_typed(Send("node", {"a": 1})))
    assert send == ObjectView("langgraph.types:Send", {"node": "node", "arg": {"a": 1}})


def test_objects_that_are_nested_too_deep_are_not_followed() -> None:
    data = b"\xc0"
    for _ in range(5000):
        data = b"\xc9" + len(data).to_bytes(4, "big") + b"\x00" + data
    assert Decoder().value("msgpack", data).name == "unread:msgpack"
    assert Decoder().value("json", b"[" * 100_000).name == "unread:json"


def test_reading_needs_nothing_of_langgraph(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        say(graph(theirs), "one", "hello")
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['langgraph', 'langchain_core', 'threadmark_langgraph']));"
        "from threadmark_cli.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "export", place.url, "one"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert json.loads(done.stdout.splitlines()[-1])["values"]["messages"][0]["content"] == "hello"


def test_early_tables_without_task_paths_are_read(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with place.open() as theirs:
        app = graph(theirs)
        say(app, "asks", "first")
        say(app, "asks", "second")
    with closing(sqlite3.connect(place.url)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    with opened(place) as saver:
        assert [each.channel for each in saver.history("asks").entries[0].writes] == ["__interrupt__"]


def test_a_database_that_fails_is_an_error_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.db").write_text("this is no database " * 100)
    assert run(["threads", str(tmp_path / "text.db")]) == WRONG
    assert "not a SQLite database" in capsys.readouterr().err
    assert run(["threads", "postgresql://127.0.0.1:1/none"]) == FAILED


def test_a_schema_that_is_no_text_is_an_error_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, target = str(tmp_path / "theirs.db"), str(tmp_path / "target.db")
    with closing(sqlite3.connect(file)) as database:
        database.executescript("CREATE TABLE checkpoints (thread_id); CREATE TABLE writes (thread_id)")
    data = bytearray(Path(file).read_bytes())
    data[data.index(b"CREATE TABLE checkpoints") + len("CREATE ")] = 0xEE  # SQLite's message quotes it
    Path(file).write_bytes(data)
    for arguments in (["threads", file], ["backup", file, target], ["migrate", file, target]):
        assert run(arguments) == FAILED
        assert capsys.readouterr().err.startswith("error: ")
