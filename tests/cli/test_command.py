"""The command as a whole: the name of a database, unchanged databases, signals, pipes, pagers, keys, exit codes."""

import hashlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import threadmark
from cli.running import COMMAND, in_pipe, in_process, in_terminal
from threadmark_cli.main import COMMANDS
from threadmark_cli.opening import printable_url
from threadmark_sqlite import SqliteSaver

if sys.platform != "win32":
    import pty

PATIENCE = 120.0
KEYS = {"newest": "2026", "keys": {"2026": "ab" * 32}, "digest_secret": "cd" * 32}


def _checkpoint(text: str, identifier: str) -> threadmark.Checkpoint:
    return {
        "v": 4,
        "id": identifier,
        "ts": "2026-11-20T12:00:00+00:00",
        "channel_values": {"text": text},
        "channel_versions": {"text": 1},
        "versions_seen": {},
    }


def _put(saver: threadmark.SaverProtocol, thread_id: str, text: str = "secret words") -> None:
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    saver.put(config, _checkpoint(text, threadmark.new_id()), {"source": "input", "step": -1}, {"text": 1})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A database with one thread."""
    path = tmp_path / "small.db"
    with SqliteSaver(path) as saver:
        _put(saver, "one")
    return path


def test_a_database_is_named_in_four_ways(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small.parent)
    expected = in_pipe("threads", "--json", "-u", str(small))
    assert expected.code == 0
    for arguments in (
        ("threads", "small.db", "--json"),
        ("--url", "small.db", "--json", "threads"),
        ("--json", "threads", f"sqlite:///{small}"),
        ("threads", "--json", "-u", "sqlite:///small.db"),
    ):
        assert in_pipe(*arguments) == expected
    monkeypatch.setenv("THREADMARK_URL", "small.db")
    assert in_pipe("threads", "--json") == expected
    assert in_pipe("show", "one", "text").out == "secret words\n"  # the first argument is the thread then
    assert in_pipe("show", f"sqlite:///{small}", "one", "text").out == "secret words\n"  # unless it is a URL
    assert "write --url small.db" in in_pipe("log", "small.db").err


@pytest.mark.parametrize("arguments", [["threads"], ["log"], ["show"], ["stats"], ["verify"], ["doctor"]])
def test_without_a_database_a_command_says_how_to_name_one(arguments: list[str]) -> None:
    ran = in_pipe(*arguments)
    assert ran.code == 2
    assert "first argument or by --url, or set THREADMARK_URL" in ran.err


def test_a_missing_file_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    for command in ("threads", "log", "show", "stats", "verify"):
        ran = in_pipe(command, str(tmp_path / "none.db"))
        assert (ran.code, ran.out) == (5, "")
        assert "there is no file" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_thread_without_a_database_is_answered_with_the_place_of_the_database() -> None:
    for arguments in (("log", "support-42"), ("show", "support-42", "plan"), ("copy", "support-42", "one", "two")):
        ran = in_pipe(*arguments)
        assert (ran.code, ran.out) == (5, "")
        assert "'support-42': the database comes before the thread, unless --url or THREADMARK_URL names it" in ran.err
    assert in_pipe("log", "none.db").err == "error: there is no file 'none.db'\n"


def test_what_is_no_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("no database at all, only a text that is long enough to be read as a header" * 20)
    before = path.read_bytes()
    ran = in_pipe("threads", str(path))
    assert ran.code == 1
    assert "is damaged or is not a SQLite database" in ran.err
    assert path.read_bytes() == before
    assert in_pipe("threads", str(tmp_path)).code == 5
    empty = tmp_path / "empty.db"
    empty.touch()
    ran = in_pipe("threads", str(empty))
    assert (ran.code, empty.read_bytes()) == (5, b"")
    assert "has no tables of Threadmark" in ran.err


def test_a_reading_command_leaves_the_file_as_it_is(small: Path) -> None:
    before = hashlib.sha256(small.read_bytes()).digest()
    small.chmod(0o400)
    for arguments in (["threads"], ["log"], ["show"], ["stats"], ["verify"], ["doctor"], ["blame", "one", "text"]):
        command, *others = arguments
        assert in_pipe(command, str(small), *others).code == 0
    assert hashlib.sha256(small.read_bytes()).digest() == before
    assert sorted(path.name for path in small.parent.iterdir()) == ["small.db"]


def test_damage_is_exit_code_1(small: Path) -> None:
    small.write_bytes(small.read_bytes().replace(b"secret words", b"secret sword"))
    ran = in_pipe("verify", str(small))
    assert ran.code == 1
    assert "damaged" in ran.out
    assert json.loads(in_pipe("verify", str(small), "--json").out)["kind"] == "damaged"
    shown = in_pipe("show", str(small))
    assert shown.code == 1
    assert "Traceback" not in shown.err


def test_a_search_says_what_it_could_not_read(small: Path) -> None:
    with threadmark.open(f"sqlite:///{small}") as saver:
        thread = saver.list_threads().threads[0].id
    assert in_pipe("search", str(small), thread, "not there").code == 3
    small.write_bytes(small.read_bytes().replace(b"secret words", b"secret sword"))
    for how in ([], ["--every"], ["--json"]):
        ran = in_pipe("search", str(small), thread, "secret words", *how)
        assert ran.code == 1
        assert f"warning: thread {thread!r}" in ran.err
    assert in_pipe("doctor", str(small)).code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("threads", "x.db", "--nothing"),
        ("threads", "-u", "x.db", "more"),
        ("threads", "-u", "x.db", "--limit", "many"),
        ("threads", "-u", "http://x"),
        ("threads", "-u", "x.db", "-o", "schema"),
        ("show", "-u", "{small}", "one", "a[[b"),
        ("threads", "-u", "{small}", "--metadata", "[1]"),
        ("threads", "-u", "{small}", "-o", "nothing=1"),
        ("blame", "-u", "{small}"),
        ("blame", "-u", "{small}", "one", "text", "--each"),
    ],
)
def test_a_mistake_in_the_command_line_is_exit_code_2(small: Path, arguments: tuple[str, ...]) -> None:
    ran = in_pipe(*(argument.format(small=small) for argument in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert "error: " in ran.err
    assert "Traceback" not in ran.err


def test_options_of_the_saver_are_passed_on(small: Path) -> None:
    assert in_pipe("threads", str(small), "-o", "timeout=1.5", "-o", "durability=normal", "-o", "slow=null").code == 0
    refused = in_pipe("-o", "durability=all", "threads", str(small), "-o", "timeout=1")
    assert (refused.code, "durability must be" in refused.err) == (2, True)


def test_a_password_is_not_shown() -> None:
    ran = in_pipe("doctor", "postgresql://somebody:hunter2@127.0.0.1:1/none")
    assert ran.code == 5
    assert "hunter2" not in ran.out + ran.err
    for url in ("postgresql://me:hunter2@host/db", "redis://:hunter2@host:6379", "postgresql://h/db?password=hunter2"):
        assert "hunter2" not in printable_url(url)


# Keys


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A sealed database, next to a file with its keys."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(KEYS))
    keys.chmod(0o600)
    keyring = threadmark.Keyring({"2026": b"\xab" * 32}, "2026", digest_secret=b"\xcd" * 32)
    with SqliteSaver(tmp_path / "sealed.db", keyring=keyring) as saver:
        _put(saver, "one")
    return tmp_path


def test_a_sealed_database_is_opened_with_a_file_of_keys(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, keys = str(sealed / "sealed.db"), str(sealed / "keys.json")
    assert in_pipe("show", database, "one", "text", "--keyring", keys) == (0, "secret words\n", "")
    monkeypatch.setenv("THREADMARK_KEYRING", keys)
    assert in_pipe("show", database, "one", "text") == (0, "secret words\n", "")
    monkeypatch.delenv("THREADMARK_KEYRING")
    without = in_pipe("show", database, "one", "text")
    assert without.code in {1, 2}
    assert "keyring" in without.err


def test_keys_that_others_may_read_are_warned_of(sealed: Path) -> None:
    (sealed / "keys.json").chmod(0o644)
    ran = in_pipe("show", str(sealed / "sealed.db"), "one", "text", "--keyring", str(sealed / "keys.json"))
    assert (ran.code, ran.out) == (0, "secret words\n")
    assert "chmod 600" in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "[]",
        '{"newest": 1}',
        json.dumps({**KEYS, "keys": {"2026": "zz"}}),
        json.dumps({**KEYS, "keys": 3}),
    ],
)
def test_an_error_about_keys_quotes_none(sealed: Path, text: str) -> None:
    (sealed / "keys.json").write_text(text)
    ran = in_pipe("threads", str(sealed / "sealed.db"), "--keyring", str(sealed / "keys.json"))
    assert ran.code == 2
    assert "cdcd" not in ran.err
    assert "Traceback" not in ran.err
    assert in_pipe("threads", str(sealed / "sealed.db"), "--keyring", str(sealed / "none")).code == 2


# Separate processes


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database whose listing no pipe takes at once."""
    path = tmp_path_factory.mktemp("long") / "long.db"
    with SqliteSaver(path, durability="normal") as saver:
        for number in range(400):
            saver.create_thread(f"thread-{number}-{'x' * 200}")
    return path


def test_a_pipe_that_is_closed_is_left_quietly(long: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "threads", str(long), "--limit", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"THREAD")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 141


def test_ctrl_c_ends_it_with_130_and_no_traceback(small: Path) -> None:
    # The keyring is a pipe without a writer, so that the command waits for as long as it takes.
    pipe = small.parent / "keys"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [*COMMAND, "threads", str(small), "--keyring", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        with pipe.open("wb"):  # returns once it is there
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert b"Traceback" not in errors


def test_a_terminal_gets_a_pager_that_colours_reach(long: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "PAGER": "sed s/^/paged:/", "COLUMNS": "80"}
    shown = _in_own_terminal(["threads", str(long), "--limit", "3"], environment)
    rows = [line for line in shown.splitlines() if "thread-" in line]
    assert len(rows) == 3
    assert all(row.startswith("paged:\x1b[33mthread-") for row in rows)
    assert "paged:" not in _in_own_terminal(["threads", str(long), "--no-pager"], environment)
    assert "\x1b[33m" not in _in_own_terminal(["threads", str(long)], environment | {"NO_COLOR": "1"})


def test_a_pager_that_is_left_early_ends_it_quietly(long: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "PAGER": "head -n 2", "COLUMNS": "80"}
    shown = _in_own_terminal(["threads", str(long), "--limit", "0"], environment)
    assert "Traceback" not in shown
    assert len(shown.splitlines()) == 2


def _in_own_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        shown, until = b"", time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if select.select([ours], [], [], 1)[0]:
                    shown += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
        process.wait(PATIENCE)
    os.close(ours)
    return shown.decode()


def test_a_process_of_its_own_does_the_same(small: Path) -> None:
    assert in_process("show", "one", "text", environment={"THREADMARK_URL": str(small)}) == (0, "secret words\n", "")
    assert in_process("show", "two", environment={"THREADMARK_URL": str(small)}).code == 3
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    assert "*  1" in in_process("log", "--graph", environment={"THREADMARK_URL": str(small), **ascii_only}).out


# Colours, help, completion


def test_colours_are_for_terminals(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in in_terminal("threads", str(small)).out
    assert "\x1b[" not in in_terminal("threads", str(small), "--no-color").out
    assert "\x1b[" in in_pipe("threads", str(small), "--color").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in in_terminal("threads", str(small)).out
    assert "\x1b[" in in_terminal("threads", str(small), "--color").out


def test_a_narrow_terminal_cuts_what_may_be_cut(long: Path) -> None:
    rows = in_terminal("threads", str(long), "--no-color", columns=90).lines
    assert max(map(len, rows)) == 90
    assert "…" in rows[1]


def test_long_work_shows_how_far_it_has_come(long: Path) -> None:
    assert "400/400" in in_terminal("verify", str(long)).out
    assert in_pipe("verify", str(long)).err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_work(command: str) -> None:
    ran = in_pipe(command, "--help")
    assert ran.code == 0
    assert {"migrate": "SOURCE [TARGET]", "keys": "{new|add} FILE"}.get(command, "[DATABASE]") in ran.out
    examples = ran.out.partition("Examples:\n")[2]
    assert f"  threadmark {command} " in examples
    assert ("--url or THREADMARK_URL.\n" in examples) == ("[DATABASE]" in ran.out)
    assert ran.out.splitlines()[2].strip()


def test_the_help_lists_every_command() -> None:
    ran = in_pipe("--help")
    assert ran.code == 0
    assert all(f"  {command} " in ran.out for command in COMMANDS)
    assert in_pipe("--version").out == f"threadmark, version {threadmark.__version__}\n"
    assert in_pipe() == ran
    assert in_pipe("--json").code == 2


def test_every_command_is_where_the_table_says() -> None:
    for where in COMMANDS.values():
        module, _, name = where.partition(":")
        assert isinstance(getattr(import_module(module), name), click.Command)


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")])
def test_a_shell_gets_its_completion(shell: str, word: str) -> None:
    assert word in in_process(environment={"_THREADMARK_COMPLETE": f"{shell}_source"}).out


def test_commands_and_options_are_completed() -> None:
    environment: dict[str, Any] = {"_THREADMARK_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    done = in_process(environment={**environment, "COMP_WORDS": "threadmark bl"})
    assert done.out == "plain,blame\n"
    done = in_process(environment={**environment, "COMP_WORDS": "threadmark log --gr", "COMP_CWORD": "2"})
    assert done.out == "plain,--graph\n"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["threadmark", "show", ""], "file,\n"),
        (["threadmark", "show", "FILE", "thr"], "plain,three\n"),
        (["threadmark", "show", "FILE", ""], "plain,one\nplain,three\nplain,two\n"),
        (["threadmark", "-u", "FILE", "delete", "one", "tw"], "plain,two\n"),
        (["threadmark", "diff", "-u", "FILE", "o"], "plain,one\n"),
        (["threadmark", "backup", "FILE", "ag"], "file,ag\n"),
        (["threadmark", "migrate", "ag"], "file,ag\n"),
        (["threadmark", "keys", "new", "ag"], "file,ag\n"),
        (["threadmark", "threads", "--keyring", "ag"], "file,ag\n"),
        (["threadmark", "show", "none.db", "o"], ""),
        (["threadmark", "show", "redis://127.0.0.1:1/0", "o"], ""),
    ],
)
def test_files_and_threads_are_completed(tmp_path: Path, typed: list[str], expected: str) -> None:
    database = tmp_path / "agents.db"
    with threadmark.open(f"sqlite:///{database}") as saver:
        for thread in ("one", "two", "three"):
            saver.create_thread(thread)
    words = [str(database) if word == "FILE" else word for word in typed]
    environment = {"_THREADMARK_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words) - 1)}
    done = in_process(environment={**environment, "COMP_WORDS": " ".join(words)})
    assert ("\n".join(sorted(done.out.splitlines())), done.err) == (expected.removesuffix("\n"), "")


def test_the_threads_of_a_variable_are_completed(small: Path) -> None:
    environment = {"_THREADMARK_COMPLETE": "bash_complete", "COMP_CWORD": "2", "THREADMARK_URL": str(small)}
    done = in_process(environment={**environment, "COMP_WORDS": "threadmark log "})
    assert done.out.startswith("plain,")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["thread"], "Did you mean threads"),
        (["serch", "x"], "Did you mean search"),
        (["DIFF"], "Did you mean diff?"),
        (["agents.db", "log"], "The command comes first: threadmark log agents.db"),
        (["redis://host/0"], "The command comes first: threadmark threads redis://host/0"),
        (["zzz"], "The names are in threadmark --help."),
    ],
)
def test_a_wrong_command_gets_a_suggestion(arguments: list[str], hint: str) -> None:
    ran = in_pipe(*arguments)
    assert ran.code == 2
    assert f"No such command {arguments[0]!r}." in ran.err
    assert hint in ran.err


def test_files_that_only_their_owner_reads_are_no_warning(small: Path) -> None:
    small.chmod(stat.S_IRUSR | stat.S_IWUSR)
    ran = in_pipe("doctor", str(small), "--strict")
    assert ran.code == 0, ran.out
    small.chmod(0o644)
    ran = in_pipe("doctor", str(small), "--strict")
    assert ran.code == 1
    assert f"chmod o= {small}" in ran.out
