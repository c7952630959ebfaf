"""Running the command that moves threads."""

import sys
from typing import Any

import pytest

from threadmark_langgraph.moving import __main__ as command


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Run the command. Returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["moving", *arguments])
    with pytest.raises(SystemExit) as end:
        command.main()
    return end.value.code


def reported_problem(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that names the fault, below the usage."""
    printed = capsys.readouterr()
    assert printed.out == ""
    usage, _, problem = printed.err.partition(" error: ")
    assert usage.startswith("usage: ")
    assert len(problem.splitlines()) == 1
    return problem
