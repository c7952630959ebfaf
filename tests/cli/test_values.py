"""The text of a value: as a tree that is cut and says so, or in one line; and its JSON."""

import json
from collections import deque
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rich.cells import cell_len

import threadmark
from cli.running import in_pipe, in_process, in_terminal
from threadmark.types import ObjectView
from threadmark_cli.output.json_values import json_line
from threadmark_cli.output.styles import plain
from threadmark_cli.output.values import DEFAULT, EVERYTHING, Limits, brief, value_lines

PLAN = ObjectView("app.state:Plan", {"goal": "to rest", "steps": [], "done": None, "tries": 0})
SECRET = ObjectView("pydantic.types:SecretStr", {"_secret_value": "hunter2"})


def _shown(value: Any, limits: Limits = DEFAULT) -> list[str]:
    return ["".join(map(plain, line)) for line in value_lines("it", value, limits)]


def _brief_id(value: Any) -> str:
    """The name of a test's argument; pytest cannot write a number of thousands of digits."""
    return brief(value, 20)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["it: None"]),
        (True, ["it: True"]),
        ('a "word"', ['it: "a \\"word\\""']),
        ([], ["it: []"]),
        ({}, ["it: {}"]),
        ((1, 2.5), ["it: (1, 2.5)"]),
        ({"a": [1, {"b": None}]}, ['it: {"a": [1, {"b": None}]}']),
        ({3: "three"}, ['it: {3: "three"}']),
        (deque([1]), ["it: deque(1)"]),
        (b"\x00\xff", ["it: bytes of 2: 00ff"]),
        (datetime(2026, 11, 20, tzinfo=UTC), ["it: 2026-11-20T00:00:00+00:00"]),
        (Decimal("1.50"), ["it: Decimal(1.50)"]),
        (PLAN, ["it: Plan (app.state)", '  goal: "to rest"', "  tries: 0"]),
        (ObjectView("app:Nothing", {}), ["it: Nothing (app)"]),
        (SECRET, ["it: SecretStr (pydantic.types)", '  _secret_value: "**********"']),
        ("one\r\ntwo\n", ["it: text of 9 characters", "  │ one", "  │ two", "  │ "]),
        ([PLAN, 1], ["it: list of 2", "  [0] Plan (app.state)", '    goal: "to rest"', "    tries: 0", "  [1] 1"]),
        (10**6000, [f"it: {hex(10**6000)}"]),
        ({10**6000: 1}, ["it: dict of 1", f"  {hex(10**6000)}: 1"]),
        (Fraction(10**6000, 3), ["it: Fraction(<too many digits to write>)"]),
    ],
    ids=_brief_id,
)
def test_a_value_is_a_tree(value: Any, expected: list[str]) -> None:
    assert _shown(value) == expected


def test_what_is_long_is_cut_and_says_how_much_there_is() -> None:
    lines = _shown([f"item {number}, which is long enough for a line" for number in range(100)])
    assert lines[0] == "it: list of 100"
    assert [line.partition("]")[0].strip(" [") for line in lines[1:]] == [
        *map(str, range(4)), "… 88 more", *map(str, range(92, 100))
    ]  # fmt: skip
    assert _shown("x" * 1000) == [f'it: "{"x" * 400}"… (1,000 characters)']
    assert _shown("line\n" * 1000)[-1] == "  │ …"
    assert len(_shown("line\n" * 1000, EVERYTHING)) == 1002
    assert len(_shown(list(range(1000)), EVERYTHING)) == 1001


def test_what_is_deep_is_cut() -> None:
    nested: Any = "the end"
    for _ in range(5000):
        nested = {"deeper": nested}
    lines = _shown(nested)
    assert len(lines) == DEFAULT.depth + 1
    assert lines[-1].endswith("deeper: dict of 1 …")
    assert len(brief(nested)) <= 72


def test_fields_that_hold_nothing_are_shown_where_everything_is() -> None:
    assert _shown(PLAN, EVERYTHING) == [
        "it: Plan (app.state)", '  goal: "to rest"', "  steps: []", "  done: None", "  tries: 0"
    ]  # fmt: skip


def test_a_value_in_one_line_is_as_long_as_there_is_room() -> None:
    assert brief(PLAN) == 'Plan(goal="to rest", tries=0)'
    assert brief("x" * 1000, 20) == f'"{"x" * 18}…'
    assert len(brief({str(number): number for number in range(10**5)}, 40)) == 40
    assert "hunter2" not in brief(SECRET)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), {"__type__": "float", "value": "nan"}),
        (10**6000, {"__type__": "int", "hex": hex(10**6000)}),
        (2**70, 2**70),
        (Fraction(10**6000, 3), {"__type__": "Fraction", "value": "<too many digits to write>"}),
        (b"\x00", {"__type__": "bytes", "base64": "AA=="}),
        ({1: 2}, {"__type__": "dict", "items": [[1, 2]]}),
        (frozenset({1}), {"__type__": "frozenset", "items": [1]}),
        (datetime(2026, 11, 20, tzinfo=UTC), {"__type__": "datetime", "value": "2026-11-20T00:00:00+00:00"}),
        (UUID(int=0), {"__type__": "UUID", "value": "00000000-0000-0000-0000-000000000000"}),
        ((1, [2]), [1, [2]]),
        (SECRET, {"__type__": "pydantic.types:SecretStr", "_secret_value": "**********"}),
    ],
    ids=_brief_id,
)
def test_what_json_has_no_word_for_names_its_type(value: Any, expected: Any) -> None:
    assert json.loads(json_line({"value": value})) == {"value": expected}


def test_a_value_that_is_nested_very_deeply(tmp_path: Path) -> None:
    nested: Any = "the end"
    for _ in range(800):
        nested = [nested]
    database = str(tmp_path / "deep.db")
    with threadmark.open(f"sqlite:///{database}") as saver:
        threadmark.States(saver).save("deep", {"nested": nested})
    for arguments in (("show",), ("diff", "deep", "~0"), ("blame", "deep", "nested"), ("search", "deep", "the end")):
        assert in_pipe(arguments[0], database, *arguments[1:]).code == 0
    whole = in_process("show", database, "deep", "nested", "--full")
    assert '"the end"' in whole.out or "nested too deeply" in whole.err
    assert "Traceback" not in whole.err


def test_a_line_of_the_graph_is_no_wider_than_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    values = {"漢字" * 10: 1, "other": 2}
    with threadmark.open(f"sqlite:///{path}") as saver:
        saver.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            {
                "v": 4,
                "id": threadmark.new_id(),
                "ts": "2026-11-20T12:00:00+00:00",
                "channel_values": values,
                "channel_versions": dict.fromkeys(values, 1),
                "versions_seen": {},
            },
            {"source": "漢" * 12, "step": 1},
            dict.fromkeys(values, 1),
        )
    for columns in (20, 60, 70, 80, 100):
        lines = in_terminal("log", str(path), "t", "--graph", "--no-color", columns=columns).lines
        assert lines
        assert max(map(cell_len, lines)) <= columns
