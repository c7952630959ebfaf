"""`effects`, and the effects of a thread's steps in `log`, `show` and `restore`"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import threadmark
from cli.databases import URLS
from cli.langgraphs import graph, say, sqlite_place
from cli.running import in_pipe, json_lines
from effects.graphs import Shop
from threadmark import Effects
from threadmark_cli.effects import is_ledger
from threadmark_cli.exits import DONE, MISSING, REFUSED, USAGE, WRONG

THREAD: Any = {"configurable": {"thread_id": "order"}}


@contextmanager
def _opened(url: str) -> Iterator[threadmark.Saver]:
    with threadmark.open(url) as saver:
        assert isinstance(saver, threadmark.Saver)
        yield saver


def _runs(url: str) -> None:
    """One turn with two calls, and one whose call gets no answer."""
    with _opened(url) as saver:
        shop = Shop(saver, undo_with="refund it")
        shop.run(THREAD, rounds=2)
        shop.receiver.errors = [TimeoutError("no answer")]
        with pytest.raises(TimeoutError):
            shop.run(THREAD, amount=7)
        Effects(saver).of("other").once("welcome", lambda: "sent")


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind with two threads."""
    with URLS[request.param](tmp_path) as found:
        _runs(found)
        yield found


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with the same."""
    path = str(tmp_path / "orders.db")
    _runs(f"sqlite:///{path}")
    return path


def _ends(code: int, *arguments: str) -> str:
    ran = in_pipe(*arguments)
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    return ran.out if code == DONE else ran.err


def _records(*arguments: str) -> list[dict[str, Any]]:
    return [*json_lines(in_pipe(*arguments, "--json"))]


def test_unknown_effects_are_listed_and_settled(url: str) -> None:
    (unknown,) = _records("effects", "--url", url)
    assert (unknown["thread"], unknown["name"], unknown["state"]) == ("order", "charge", "unknown")
    assert (unknown["node"], unknown["error"]) == ("charge", "TimeoutError: no answer")
    key = unknown["key"]
    every = _records("effects", "--url", url, "--state", "all")
    assert sorted(each["state"] for each in every) == ["done", "done", "done", "unknown"]
    value = '{"receipt": 9, "amount": 7}'
    settle = "effects", "--url", url, "order", key[:13], "--settle"
    assert "unknown before, now done" in _ends(DONE, *settle, "done", "--value", value)
    assert _records("effects", "--url", url) == []
    (shown,) = _records("effects", "--url", url, "order", key)
    assert (shown["value"], shown["state"], shown["error"]) == ({"receipt": 9, "amount": 7}, "done", None)
    with _opened(url) as saver:
        shop = Shop(saver, undo_with="refund it")
        assert shop.go_on(THREAD) == [1, 2, 9]
        assert shop.receiver.calls == []


def test_an_effect_is_settled_as_failed_or_as_not_done(file: str) -> None:
    key = _records("effects", file)[0]["key"]
    _ends(DONE, "effects", file, "order", key, "--settle", "failed", "--reason", "card refused")
    assert "card refused" in _ends(DONE, "effects", file, "order", key)
    with _opened(f"sqlite:///{file}") as saver:
        shop = Shop(saver, undo_with="refund it")
        with pytest.raises(threadmark.EffectFailedError, match="card refused"):
            shop.go_on(THREAD)
        _ends(DONE, "effects", file, "order", key, "--settle", "not-done")
        assert shop.go_on(THREAD) == [1, 2, 1]
        assert shop.receiver.keys == [key]


def test_a_running_effect_is_settled_after_a_question(file: str) -> None:
    with threadmark.open(f"sqlite:///{file}") as saver:
        asked: list[str] = []

        def call() -> None:
            assert "1 effect is running" in in_pipe("effects", file, "other").err
            asked.append(_ends(REFUSED, "effects", file, "other", "slow", "--settle", "not-done"))
            _ends(DONE, "effects", file, "other", "slow", "--settle", "done", "--value", "5", "--yes")

        with pytest.raises(threadmark.EffectLostError):
            Effects(saver).of("other").once("slow", call)
        assert "may still run" in asked[0]
        assert Effects(saver).of("other").once("slow", call) == 5


def test_a_step_has_its_effects_and_their_namespaces_are_not_listed(file: str) -> None:
    entries = _records("log", file, "order")
    assert {entry["ns"] for entry in entries} == {""}
    assert [[each["state"] for each in entry["effects"]] for entry in entries if entry["effects"]] == [
        ["unknown"],
        ["done"],
        ["done"],
    ]
    assert len(_records("log", file, "order", "-n", "3")) == 3
    drawn = _ends(DONE, "log", file, "order", "--graph")
    assert len(drawn.splitlines()) == len(entries) == 8
    assert drawn.splitlines()[0].endswith("(newest)  (error)  (effects: 1 unknown)")
    assert "effects:" not in _ends(DONE, "log", file, "order").replace("effects: 1", "")
    shown = _ends(DONE, "show", file, "order")
    assert "charge  unknown  TimeoutError: no answer  " in shown
    assert "effects of" not in _ends(DONE, "show", file, "order", "--at", "~1")
    (record,) = _records("show", file, "order")
    assert [each["name"] for each in record["effects"]] == ["charge"]


def test_a_checkpoint_of_the_ledger_is_found_by_its_namespace_or_its_whole_id(file: str) -> None:
    with threadmark.open(f"sqlite:///{file}") as saver:
        stored = next(entry for entry in saver.history("order", ns=None).entries if is_ledger(entry.ns))
    for place in (["--at", stored.id], ["--ns", stored.ns]):
        assert "source" in _ends(DONE, "show", file, "order", *place)
    assert len(_records("log", file, "order", "--ns", stored.ns)) > 1


def test_a_restore_lists_what_it_leaves(file: str) -> None:
    out = _ends(DONE, "restore", file, "order", "--at", "~5")
    assert "not undone" in out
    assert out.count("undo with refund it: ") == 2
    (record,) = _records("restore", file, "order", "--at", "~2")
    assert [each["args"] for each in record["to_undo"]] == [[5]]


def test_mistakes_are_named(file: str, tmp_path: Path) -> None:
    assert "there is no thread" in _ends(MISSING, "effects", file, "nope")
    assert "has no effect 'mail'" in _ends(MISSING, "effects", file, "order", "mail")
    assert "means 3 effects" in _ends(MISSING, "effects", file, "order", "charge")
    assert "Name the THREAD" in _ends(USAGE, "effects", file, "order", "--settle", "done")
    assert "--reason" in _ends(USAGE, "effects", file, "order", "charge", "--settle", "failed")
    assert "--settle done" in _ends(USAGE, "effects", file, "order", "charge", "--settle", "failed", "--value", "1")
    assert "--settle" in _ends(USAGE, "effects", file, "order", "charge", "--value", "1")
    place = sqlite_place(tmp_path)
    with place.open() as saver:
        say(graph(saver), "thread", "hello")
    assert "has no effects" in _ends(REFUSED, "effects", place.url)


def test_a_damaged_effect_is_reported_and_the_thread_still_shown(file: str) -> None:
    with threadmark.open(f"sqlite:///{file}") as saver:
        stored = next(entry for entry in saver.history("order", ns=None).entries if is_ledger(entry.ns))
        config = {"configurable": {"thread_id": "order", "checkpoint_ns": stored.ns, "checkpoint_id": stored.id}}
        checkpoint: threadmark.Checkpoint = {
            "v": 4,
            "id": threadmark.new_id(),
            "ts": "2026-11-20T12:00:00+00:00",
            "channel_values": {},
            "channel_versions": {},
            "versions_seen": {},
        }
        saver.put(config, checkpoint, {"source": "effect", "step": 1}, {})
    ran = in_pipe("show", file, "order")
    assert ran.code == DONE
    assert "the effects cannot be read" in ran.err
    assert "it has no claims of effects" in _ends(WRONG, "effects", file)
