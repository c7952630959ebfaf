"""The commands that change threads, on every backend: their effects, their refusals, and their ends."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import threadmark
from cli.databases import STEPS, URLS, answering, config, fill, sizes, sqlite_url, values
from threadmark_cli.exits import DONE, INTERRUPTED, MISSING, REFUSED, USAGE, WRONG
from threadmark_cli.main import run
from threadmark_cli.parameters import duration, size

ALL = pytest.mark.parametrize("place", [*URLS], indirect=True)
"""On every backend; otherwise on SQLite."""


class Place:
    """A database with the threads "one" and "two", and the commands' output about it."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys
        with threadmark.open(url) as saver:
            self.ids = fill(saver)
            fill(saver, "two", 1)

    def ends(self, code: int, *arguments: str) -> str:
        """Run a command, which ends with this code. Returns its output."""
        self._capsys.readouterr()
        ended = run([arguments[0], "--url", self.url, *arguments[1:]])
        printed = self._capsys.readouterr()
        assert ended == code, printed.err
        assert "Traceback" not in printed.err
        return printed.out if code == DONE else printed.err

    def record(self, *arguments: str, code: int = DONE) -> dict[str, Any]:
        """The record of a command with --json."""
        self._capsys.readouterr()
        assert run([arguments[0], "--url", self.url, "--json", *arguments[1:]]) == code
        (line,) = self._capsys.readouterr().out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    """A database of the backend that is asked for, else of SQLite."""
    opened = URLS[getattr(request, "param", "sqlite")]
    with opened(tmp_path) as url:
        yield Place(url, capsys)


def test_threads_whose_runs_died_are_listed_with_their_next_nodes(place: Place) -> None:
    following = {f"branch:to:{name}": None for name in ("ask", "book", "pay", "tell")}
    with threadmark.open(place.url) as saver:
        stored = saver.get("two")
        assert stored is not None
        died: threadmark.Checkpoint = {
            **stored,
            "id": threadmark.new_id(),
            "channel_values": {**stored["channel_values"], **following},
            "channel_versions": {**stored["channel_versions"], **dict.fromkeys(following, 9)},
            "versions_seen": {"__input__": {}},
        }
        saver.put(config("two"), died, {}, dict.fromkeys(following, 9))
    (line,) = place.ends(DONE, "threads", "--status", "unfinished").splitlines()[1:]
    assert "  unfinished: ask, book, pay, ...  " in line
    record = place.record("threads", "--status", "unfinished")
    assert (record["id"], record["next"]) == ("two", ["ask", "book", "pay", "tell"])
    assert place.record("threads", "--status", "idle")["id"] == "one"


@ALL
def test_fork_begins_a_branch_or_a_thread(place: Place, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('["of a file"]')
    done = place.record("fork", "one", "--at", "~2", "--set", "count=7", "--set", f"log=@{tmp_path / 'log.json'}")
    assert done["from"] == config("one", place.ids[-3])
    assert values(place.url, "one") == {"count": 7, "log": ["of a file"]}
    assert sizes(place.url) == {"one": STEPS + 1, "two": 1}
    shown = place.ends(DONE, "fork", "one", "--at", place.ids[1], "--as", "three")
    assert "three" in shown
    assert place.ids[1] in shown
    assert values(place.url, "three")["count"] == 1
    assert values(place.url, "one")["count"] == 7
    assert "three" in place.ends(REFUSED, "fork", "one", "--as", "three")


@ALL
def test_restore_makes_an_old_state_the_newest(place: Place) -> None:
    done = place.record("restore", "one", "--at", "~3")
    assert done["from"] == config("one", place.ids[1])
    assert values(place.url, "one")["count"] == 1
    assert values(place.url, "one", place.ids[-1])["count"] == STEPS - 1
    assert sizes(place.url)["one"] == STEPS + 1
    assert "Missing option '--at'" in place.ends(USAGE, "restore", "one")


def test_a_checkpoint_is_named_by_an_id_its_beginning_or_its_place(place: Place) -> None:
    assert place.record("fork", "one", "--as", "a")["from"] == config("one", place.ids[-1])
    assert place.record("fork", "one", "--as", "b", "--at", "~0")["from"] == config("one", place.ids[-1])
    assert place.record("fork", "one", "--as", "c", "--at", place.ids[0])["from"] == config("one", place.ids[0])
    shortest = next(n for n in range(1, 40) if sum(each.startswith(place.ids[0][:n]) for each in place.ids) == 1)
    found = place.record("fork", "one", "--as", "d", "--at", place.ids[0][:shortest])
    assert found["from"] == config("one", place.ids[0])
    assert f"beginning of {STEPS} checkpoints" in place.ends(MISSING, "fork", "one", "--at", place.ids[0][:4])
    for at in ("~99", "nothing"):
        assert "thread 'one' has " in place.ends(MISSING, "fork", "one", "--at", at)
    assert "no thread 'nobody'" in place.ends(MISSING, "fork", "nobody", "--at", "abc")
    for command in (["fork", "one"], ["restore", "one"], ["delete", "one", "--yes"]):
        assert "the address of a checkpoint is empty" in place.ends(USAGE, *command, "--at", "")
    assert "--as is empty" in place.ends(USAGE, "fork", "one", "--as", "")
    assert sizes(place.url)["one"] == STEPS
    assert "no thread 'nobody'" in place.ends(MISSING, "restore", "nobody", "--at", "~0")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("count", "CHANNEL=JSON"),
        ("=1", "CHANNEL=JSON"),
        ("count=text", "text stands in quotation marks"),
        ("count=@nowhere.json", "cannot be read"),
    ],
)
def test_a_value_that_is_no_json_is_refused_before_anything_is_stored(place: Place, given: str, said: str) -> None:
    assert said in place.ends(USAGE, "fork", "one", "--set", given)
    assert "twice" in place.ends(USAGE, "fork", "one", "--set", "a=1", "--set", "a=2")
    assert sizes(place.url)["one"] == STEPS


@ALL
def test_copy_and_rename_move_a_whole_thread(place: Place) -> None:
    assert place.ends(DONE, "copy", "one", "copy") == "copied one to copy\n"
    assert place.record("rename", "one", "renamed") == {"thread": "renamed", "from": "one", "done": "renamed"}
    assert sizes(place.url) == {"copy": STEPS, "renamed": STEPS, "two": 1}
    assert values(place.url, "copy") == values(place.url, "renamed")
    for command in ("copy", "rename"):
        assert "already" in place.ends(REFUSED, command, "copy", "two")
        assert "no thread 'nobody'" in place.ends(MISSING, command, "nobody", "somebody")
    assert sizes(place.url)["two"] == 1


def test_update_sets_what_is_given_and_leaves_the_rest(place: Place) -> None:
    place.ends(DONE, "update", "one", "--title", "A title", "--metadata", '{"a": 1, "b": 2}', "--set-owner", "lee")
    found = place.record("update", "one", "--metadata", '{"a": null}', "--expires", "2d12h")
    assert (found["title"], found["metadata"], found["owner"]) == ("A title", {"b": 2}, "lee")
    left = datetime.fromisoformat(found["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=2) < left <= timedelta(days=2.5)
    found = place.record("update", "one", "--title", "", "--set-owner", "", "--expires", "2030-01-31T12:00+00:00")
    assert (found["title"], found["owner"], found["expires_at"]) == (None, None, "2030-01-31T12:00:00+00:00")
    assert place.record("update", "one", "--expires", "never")["expires_at"] is None
    assert "JSON object" in place.ends(USAGE, "update", "one", "--metadata", "[1]")
    said = place.ends(USAGE, "update", "one", "--expires", "soon")
    assert "'--expires': 'soon' is no length of time" in said
    assert "; a moment as 2027-01-31T12:00Z; or never" in said
    place.ends(MISSING, "update", "nobody", "--title", "x")


@ALL
def test_delete_removes_threads_after_a_yes(place: Place) -> None:
    before = sizes(place.url)
    said = place.ends(REFUSED, "delete", "one", "two")
    assert "2 threads with 6 checkpoints" in said
    assert "--yes" in said
    assert place.ends(DONE, "delete", "one", "--dry-run").startswith("would delete one with 5 checkpoints (")
    assert "no thread 'nobody'" in place.ends(MISSING, "delete", "one", "nobody", "--yes")
    assert sizes(place.url) == before
    found = place.record("delete", "two", "two", "--yes")
    assert (found["thread"], found["checkpoints"], found["deleted"], found["dry_run"]) == ("two", 1, True, False)
    assert sizes(place.url) == {"one": STEPS}


def test_delete_removes_one_checkpoint(place: Place) -> None:
    assert "name one" in place.ends(USAGE, "delete", "one", "two", "--at", "~0", "--yes")
    assert f"checkpoint {place.ids[1]}" in place.ends(REFUSED, "delete", "one", "--at", place.ids[1])
    assert not place.record("delete", "one", "--at", "~0", "--dry-run")["deleted"]
    assert sizes(place.url)["one"] == STEPS
    assert place.record("delete", "one", "--at", "~0", "--yes")["config"] == config("one", place.ids[-1])
    assert values(place.url, "one")["count"] == STEPS - 2


@ALL
def test_prune_leaves_the_newest(place: Place) -> None:
    before = sizes(place.url)
    found = place.record("prune", "--all", "--keep-last", "2", "--dry-run")
    assert (found["threads"], found["checkpoints"], found["dry_run"]) == (2, STEPS - 2, True)
    assert "Remove 4 checkpoints and 0 pending writes of 2 threads" in place.ends(REFUSED, "prune", "--all")
    assert "there is no thread 'nobody'\n" in place.ends(MISSING, "prune", "one", "nobody", "--yes")
    assert place.record("prune", "one", "--older-than", "1h", "--yes")["checkpoints"] == 0
    assert sizes(place.url) == before
    assert "removed 3 checkpoints" in place.ends(DONE, "prune", "--all", "--keep-last", "2", "--yes")
    assert place.record("prune", "one", "nobody", "--missing-ok", "--yes")["checkpoints"] == 1
    assert sizes(place.url) == {"one": 1, "two": 1}
    assert values(place.url, "one")["count"] == STEPS - 1
    place.ends(DONE, "prune", "two", "--strategy", "delete", "--yes")
    assert sizes(place.url) == {"one": 1}
    for arguments in ([], ["one", "--all"]):
        assert "give --all" in place.ends(USAGE, "prune", *arguments)
    place.ends(USAGE, "prune", "--all", "--strategy", "delete", "--yes")
    place.ends(USAGE, "prune", "one", "--keep-last", "0")


@ALL
def test_retention_removes_what_is_over(place: Place) -> None:
    with threadmark.open(place.url) as saver:
        saver.update_thread("two", expires_at=datetime.now(UTC) - timedelta(seconds=1))
        saver.update_thread("one", metadata={"keep": True})
    found = place.record("retention", "--keep-last", "1", "--dry-run")
    assert (found["expired"], found["pruned"]["checkpoints"], found["dry_run"]) == (1, STEPS - 1, True)
    assert "Remove 1 thread (" in place.ends(REFUSED, "retention")
    assert place.record("retention", "--idle-for", "0.0001s", "--metadata", '{"keep": false}', "--yes")["threads"] == 0
    assert sizes(place.url) == {"one": STEPS, "two": 1}
    assert "removed 1 (1 expired, 0 idle" in place.ends(DONE, "retention", "--idle-for", "1d", "--yes")
    assert sizes(place.url) == {"one": STEPS}
    assert place.record("retention", "--older-than", "0.0001s", "--yes")["pruned"]["checkpoints"] == STEPS - 1
    assert place.record("retention", "--max-bytes", "1kB", "--dry-run")["for_space"] == 0
    assert place.record("retention", "--max-bytes", "0", "--yes")["for_space"] == 1
    assert sizes(place.url) == {}


def test_retention_ends_with_1_where_it_met_damage(place: Place) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("UPDATE threadmark_checkpoint SET metadata = '{}'")
    assert place.ends(WRONG, "retention", "--keep-last", "1", "--yes").count("warning: ") == 2
    assert sizes(place.url) == {"one": STEPS, "two": 1}


def test_only_an_owners_threads_are_there_for_an_owner(place: Place) -> None:
    with threadmark.open(place.url) as saver:
        saver.update_thread("one", owner="lee")
    assert "no thread 'two'" in place.ends(MISSING, "delete", "two", "--yes", "--owner", "lee")
    assert place.record("prune", "--all", "--yes", "--owner", "lee")["threads"] == 1
    assert place.record("retention", "--max-bytes", "0", "--yes", "--owner", "lee")["for_space"] == 1
    assert sizes(place.url) == {"two": 1}


@pytest.mark.parametrize(
    ("answer", "code", "left"),
    [(b"n\n", REFUSED, 2), (b"\n", REFUSED, 2), (b"\x03", INTERRUPTED, 2), (b"y\n", DONE, 1)],
    ids=["no", "nothing", "ctrl-c", "yes"],
)
def test_a_terminal_is_asked(tmp_path: Path, answer: bytes, code: int, left: int) -> None:
    with sqlite_url(tmp_path) as url:
        with threadmark.open(url) as saver:
            fill(saver)
            fill(saver, "two", 1)
        ran = answering(["delete", url, "one"], answer=answer)
        assert ran.code == code, ran.screen
        assert f"Delete thread 'one' with {STEPS} checkpoints" in ran.screen
        assert "Traceback" not in ran.screen
        assert len(sizes(url)) == left


def test_an_interrupt_between_two_threads_leaves_each_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with threadmark.open(place.url) as saver:
        for number in range(40):
            fill(saver, f"t{number}", 2)
    before = sizes(place.url)
    monkeypatch.setattr("threadmark_cli.output.Output.progress", _interrupting)
    assert place.ends(INTERRUPTED, "retention", "--keep-last", "1", "--yes").strip() == ""
    after = sizes(place.url)
    assert after.keys() == before.keys()
    assert all(after[thread] in (1, before[thread]) for thread in before)
    assert {1} < set(after.values())  # some threads are done, others are as they were
    with threadmark.open(place.url) as saver:
        assert saver.verify().problems == []
    monkeypatch.undo()
    place.ends(DONE, "prune", "--all", "--yes")
    assert set(sizes(place.url).values()) == {1}


def _interrupting(*_: object, **__: object) -> Any:
    """Ctrl-C as soon as a transaction is done."""
    from contextlib import nullcontext

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    return nullcontext(interrupt)


def test_lengths_of_time_and_sizes() -> None:
    assert duration("1d12h") == timedelta(days=1.5)
    assert duration("2w") == timedelta(weeks=2)
    assert duration("1.5m") == timedelta(seconds=90)
    assert [size(each) for each in ("0", "100", "2k", "1.5MB", "64MiB", "3 GB")] == [
        *(0, 100, 2000, 1_500_000, 64 * 2**20, 3 * 10**9),
    ]


@pytest.mark.parametrize("text", ["", "12", "d", "1y", "1d 2h", "-1d", "0d", "9" * 30 + "w"])
def test_what_is_no_length_of_time_is_refused(place: Place, text: str) -> None:
    assert "Invalid value for '--older-than'" in place.ends(USAGE, "prune", "--all", "--yes", f"--older-than={text}")


@pytest.mark.parametrize("text", ["", "MB", "-1", "1XB", "1.2.3"])
def test_what_is_no_size_is_refused(place: Place, text: str) -> None:
    assert "Invalid value for '--max-bytes'" in place.ends(USAGE, "retention", "--yes", f"--max-bytes={text}")
