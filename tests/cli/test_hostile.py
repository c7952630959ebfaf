"""Stored values are text for a terminal, never a command: not in ids, titles, values, keys, errors or metadata."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import threadmark
from cli.running import in_pipe, in_terminal
from threadmark import new_id
from threadmark_cli.output import one_line, printable
from threadmark_cli.output.json_values import json_line

EVIL = "\x1b[31mred\x1b]0;title\x07\x9b31m\x7f\b\r[bold]x[/bold]\u202eevil\u2066\u200b\ud83d"
"""Escape sequences in both forms, a window's title, a bell, deletions, turned text, rich's markup, half an emoji."""

OWN = re.compile("\x1b\\[[0-9;]*m|\x1b\\[[0-9]*[AKGJ]|\x1b\\[\\?25[lh]|\r")
"""The codes that the command itself sends: colours, and those of its progress bar."""

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

COMMANDS: list[tuple[str, ...]] = [
    ("threads",),
    ("log",),
    ("log", "--graph"),
    ("show",),
    ("show", "--full", "--engine"),
    ("effects", "--state", "all"),
    ("stats",),
    ("verify", "--decode"),
    ("doctor",),
]
OF_THREAD: list[tuple[str, ...]] = [
    ("show", "{}", "text"),
    ("show", "{}", "nested"),
    ("diff", "{}"),
    ("diff", "{}", "--engine", "--full"),
    ("blame", "{}", "nested"),
    ("blame", "{}", "nested", "--each"),
    ("search", "{}", "red"),
    ("effects", "{}", "{}"),
]


@pytest.fixture(scope="module")
def thread() -> str:
    """An id that is hostile, too. It holds no half character, which no id may."""
    return EVIL.replace("\ud83d", "")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory, thread: str) -> str:
    """A database in which everything is hostile."""
    path = tmp_path_factory.mktemp("evil") / "evil.db"
    name = thread
    with threadmark.open(f"sqlite:///{path}") as saver:
        config: dict[str, Any] = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        for version, lines in enumerate((f"{EVIL}\na\n", f"{EVIL}\nb {EVIL}\n"), 1):
            values = {"text": lines, "nested": {EVIL: [EVIL, version]}, f"c{name}": EVIL, "word": f"{EVIL} {version}"}
            checkpoint: threadmark.Checkpoint = {
                "v": 4,
                "id": new_id(),
                "ts": "2026-11-20T12:00:00+00:00",
                "channel_values": values,
                "channel_versions": dict.fromkeys(values, version),
                "versions_seen": {name: {"text": version}},
            }
            metadata = {"source": name, "step": version, name: EVIL}
            config = saver.put(config, checkpoint, metadata, dict.fromkeys(values, version))
        saver.put_writes(
            config, [("__error__", ValueError(EVIL)), (f"c{name}", EVIL)], "task", f"~__pregel_pull, {name}"
        )
        threadmark.Effects(saver).of(name).once(name, lambda: EVIL, undo_with=name)
        saver.update_thread(name, title=name, metadata={name: EVIL}, owner=name)
    return str(path)


def _commands(thread: str) -> list[list[str]]:
    return [*map(list, COMMANDS), *([part.format(thread) for part in each] for each in OF_THREAD)]


@pytest.mark.parametrize("number", range(len(COMMANDS) + len(OF_THREAD)))
def test_nothing_that_is_stored_reaches_a_terminal_raw(evil: str, thread: str, number: int) -> None:
    arguments = _commands(thread)[number]
    for shown in (in_terminal("-u", evil, *arguments), in_terminal("-u", evil, *arguments, columns=40)):
        assert shown.code == 0
        assert FORBIDDEN.findall(OWN.sub("", shown.out)) == []
        assert "\x1b[31mred" not in shown.out
    assert FORBIDDEN.findall(in_pipe("-u", evil, *arguments).out) == []
    as_json = in_pipe("-u", evil, *arguments, "--json")
    assert FORBIDDEN.findall(as_json.out) == []
    assert all(isinstance(json.loads(line), dict) for line in as_json.lines)


def test_markup_is_text(evil: str) -> None:
    assert "[bold]x[/bold]" in in_terminal("-u", evil, "show").out
    assert "[bold]x[/bold]" in in_terminal("-u", evil, "threads", columns=1000).out


def test_json_gives_back_what_was_stored(evil: str) -> None:
    (record,) = (json.loads(line) for line in in_pipe("-u", evil, "show", "--json").lines)
    assert record["state"]["text"] == f"{EVIL}\nb {EVIL}\n"


def test_messages_about_mistakes_are_no_commands_either(evil: str) -> None:
    for arguments in (
        ("show", EVIL),
        ("show", "--at", EVIL),
        (EVIL,),
        ("threads", "--metadata", EVIL),
        ("log", "-n", EVIL),
    ):
        shown = in_terminal("-u", evil, *arguments)
        assert shown.code in {2, 3}
        assert FORBIDDEN.findall(OWN.sub("", shown.out)) == [], arguments


def test_a_file_with_a_hostile_name(tmp_path: Path) -> None:
    shown = in_terminal("threads", str(tmp_path / "\x1b[31mred.db"))
    assert shown.code == 5
    assert "\x1b[31mred" not in shown.out


@pytest.mark.parametrize("code", [*range(0xA0), *range(0x2000, 0x2070), 0xFEFF, 0xE0041, 0xDC80, 0x10FFFF])
def test_what_a_terminal_could_take_for_a_command_is_escaped(code: int) -> None:
    character = chr(code)
    assert not FORBIDDEN.search(one_line(character))
    assert "\n" not in one_line(character)
    assert printable(character) == (character if character == "\n" else one_line(character))
    line = json_line({"text": character})
    assert not FORBIDDEN.search(line)
    assert character not in line or printable(character) == character
    assert json.loads(line) == {"text": character}


def test_text_of_any_language_is_shown_as_it_is() -> None:
    for text in ("Grüße", "日本語", "שלום", "می‌خواهم", "👩‍👩‍👧", "a\u00a0b", "🇪🇺", "e\u0301"):
        assert one_line(text) == text
