"""A put can be followed file by file: through few of them, and those that ARCHITECTURE.md names."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint

import threadmark
from threadmark.runtime.compiled import IN_USE
from threadmark_langgraph import InMemorySaver, SqliteSaver

ROOT = Path(__file__).resolve().parent.parent
MOST, MOST_LINES = (20, 5050) if IN_USE else (27, 6650)
"""The most modules and lines, if another thread writes; the modules of that thread are its backend's."""

COMPILED = {f"threadmark/format/rope/{name}.py" for name in ("deduplicating", "match", "packed")} | {
    "threadmark/ids.py",
    "threadmark/metadata.py",
    "threadmark/saver/arguments.py",
    "threadmark/serde/encoder.py",
    "threadmark_langgraph/shapes.py",
    "threadmark_sqlite/columns.py",
    "threadmark_sqlite/driver/database_files.py",
}
"""Modules that a put does not go through if their compiled counterparts are used."""


@pytest.fixture(autouse=True)
def _packages_are_of_this_checkout() -> None:
    """Modules are known by their place, so those of another checkout, such as one in PYTHONPATH, would not count."""
    place = Path(str(threadmark.__file__)).resolve()
    assert ROOT / "libs" in place.parents, f"threadmark is imported from {place}, outside of this checkout"


def _checkpoint(number: int) -> Checkpoint:
    made = empty_checkpoint()
    items = [{"n": n} for n in range(number + 99)]
    made["channel_values"] = {"count": number, "text": "a long text " * 100 * (number + 1), "items": items}
    made["channel_versions"] = dict.fromkeys(made["channel_values"], number + 1)
    return made


def _modules(put: Callable[[], object]) -> set[str]:
    """The modules under libs/ in which this thread calls a function."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and ROOT / "libs" in path.parents:
            found.add("/".join(path.relative_to(ROOT).parts[3:]))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        put()
    finally:
        sys.setprofile(before)
    return found


def _touched(saver: BaseCheckpointSaver[Any]) -> set[str]:
    """The modules of the fourth put of a thread, called by this thread."""
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    for number in range(3):
        made = _checkpoint(number)
        config = saver.put(config, made, {"source": "loop", "step": number, "parents": {}}, made["channel_versions"])
    last = _checkpoint(3)
    metadata: Any = {"source": "loop", "step": 3, "parents": {}}
    return _modules(lambda: saver.put(config, last, metadata, last["channel_versions"]))


def test_a_put_goes_through_few_modules(tmp_path: Path) -> None:
    with InMemorySaver() as memory, SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as sqlite:
        for saver in (memory, sqlite):
            touched = _touched(saver)
            lines = [len(path.read_text().splitlines()) for name in touched for path in ROOT.glob(f"libs/*/src/{name}")]
            assert len(lines) == len(touched)
            assert 0 < len(lines) <= MOST
            assert 0 < sum(lines) <= MOST_LINES


def test_the_modules_of_a_put_are_those_that_are_described(tmp_path: Path) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text[text.index("## A put") : text.index("## A get")]
    described = {word for word in section.split("`") if word.endswith(".py") and not word.startswith("tests/")}
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver, ThreadPoolExecutor(1) as engine:
        touched = _touched(saver) | engine.submit(_touched, saver).result()  # a separate thread writes by itself
    assert touched == (described - COMPILED if IN_USE else described)
