"""Delta channels, which are stored as changes: the commands name them, and list the stored changes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph

from cli.running import in_pipe, json_lines
from threadmark_langgraph import SqliteSaver

STEPS = 20


def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*(state or []), *(item for write in writes for item in write)]


class State(TypedDict):
    items: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1000)]
    turn: int


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A thread of a graph with a small delta channel."""
    path: Path = tmp_path_factory.mktemp("deltas") / "agents.db"
    with SqliteSaver(path) as saver:
        builder: Any = StateGraph(State)
        builder.add_node("add", lambda values: {"items": [f"item {values['turn']}"], "turn": values["turn"] + 1})
        builder.add_edge(START, "add")
        builder.add_conditional_edges("add", lambda values: "add" if values["turn"] < STEPS else "__end__")
        thread: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 100}
        builder.compile(checkpointer=saver).invoke({"turn": 0}, thread)
    return str(path)


def test_show_names_them(file: str) -> None:
    shown = in_pipe("show", file, "one")
    assert "items: stored as changes (a delta channel): graph.get_state(config).values has its value" in shown.lines
    assert json_lines(in_pipe("show", file, "one", "--json"))[0]["deltas"] == ["items"]


def test_diff_names_those_that_were_written(file: str) -> None:
    compared = in_pipe("diff", file, "one", "--exit-code")
    assert compared.code == 1
    assert [line for line in compared.lines if line.startswith("~ items: written to, stored as changes")]
    assert [line for line in in_pipe("diff", file, "one", "--path", "turn").lines if "items" in line] == []
    assert in_pipe("diff", file, "one", "~0", "~0").lines[1:] == []
    records = json_lines(in_pipe("diff", file, "one", "--path", "items", "--json"))
    assert [(each["path"], each["kind"]) for each in records] == [("items", "delta")]


@pytest.mark.parametrize("dry_run", [True, False])
def test_prune_says_how_many_are_kept_for_them(file: str, tmp_path: Path, *, dry_run: bool) -> None:
    copy = tmp_path / "copy.db"
    assert in_pipe("backup", file, str(copy)).code == 0
    more = ["--dry-run"] if dry_run else ["--yes"]
    pruned = in_pipe("prune", str(copy), "one", "--keep-last", "3", *more)
    keeps = "would keep" if dry_run else "kept"
    assert pruned.lines[1:] == [
        f"{keeps} {STEPS - 1} old checkpoints, because delta channels of newer ones are read from there"
    ]
    (record,) = json_lines(in_pipe("prune", str(copy), "one", "--keep-last", "3", "--yes", "--json"))
    assert record["kept_for_deltas"] == STEPS - 1


def test_retention_says_so_too(file: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert in_pipe("backup", file, str(copy)).code == 0
    retained = in_pipe("retention", str(copy), "--keep-last", "3", "--yes")
    assert f"{STEPS - 1} old checkpoints kept, which delta channels are read from" in retained.out
