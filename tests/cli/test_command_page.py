"""The output of the command in README.md and docs/reference/command.md is its output for the demo database."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.running import in_pipe
from threadmark_cli import exits
from threadmark_cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "reference" / "command.md"]


class Example(NamedTuple):
    """A command of a page, and its output there."""

    page: str
    arguments: list[str]
    output: str

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.arguments)}"


def _examples() -> Iterator[Example]:
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            for each in block.split("$ threadmark ")[1:]:
                command, _, output = each.partition("\n")
                yield Example(page.name, shlex.split(command), output)


@pytest.mark.parametrize("example", list(_examples()), ids=str)
def test_an_example_says_what_is_shown(example: Example, demo_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo_file.parent)
    ran = in_pipe(*example.arguments)
    assert (ran.code, ran.err) == (0, "")
    assert _masked(ran.out) == _masked(example.output)


_VARYING = re.compile(
    r"\b(?:[0-9a-f]{32}|(?<=-)[0-9a-f]{4}-[0-9a-f]{12}|(?<=task )[0-9a-f]{8}|(?<=lookup:)[0-9a-f]{4})\b"
    r"|(?<=[ (])[\d.,]+ k?B\b"
)
"""The parts that depend on the releases of LangGraph and LangChain: ends of ids, hashes, and stored bytes."""


def _masked(text: str) -> str:
    return re.sub(" +", " ", _VARYING.sub("*", text))


def test_only_what_varies_is_masked() -> None:
    assert (
        _masked("1f1e4c3f-5df3-6e01-8007-ec6695e761d1 task 3973c4cf 16.3 kB 812 B") == "1f1e4c3f-5df3-6e01-* task * * *"
    )
    assert _masked("1f1e4c3f  step 8") == "1f1e4c3f step 8"


def test_there_are_examples() -> None:
    assert {example.page for example in _examples()} == {page.name for page in PAGES}


def test_the_page_has_every_command() -> None:
    page = PAGES[1].read_text("utf-8")
    assert [command for command in COMMANDS if f"`{command}`" not in page] == []


def test_the_page_has_every_exit_code() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    rows = re.findall(r"^\| (\d+) \|", PAGES[1].read_text("utf-8"), re.MULTILINE)
    assert {int(code) for code in rows} == codes
