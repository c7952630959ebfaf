"""`upgrade` of every kind of saver, blocking and with asyncio: it switches, or only reports."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sqlite_next_format
from releases.worker import at, checkpoint
from threadmark import ConfigError, MemoryCache, MemorySaver, Saver, cached, replicated
from threadmark.types import UpgradeReport
from threadmark_langgraph import wrap
from threadmark_sqlite import SqliteSaver

DUE = UpgradeReport(1, sqlite_next_format.NUMBER, "0.2.0")
DONE = DUE._replace(before=sqlite_next_format.NUMBER)

AROUND: dict[str, Callable[[Path], Any]] = {
    "alone": SqliteSaver,
    "cached": lambda path: cached(SqliteSaver(path), MemoryCache()),
    "a pair": lambda path: replicated(SqliteSaver(path), SqliteSaver(f"{path}-other")),
    "wrapped": lambda path: wrap(SqliteSaver(path)),
}


@pytest.mark.parametrize("kind", AROUND)
def test_it_switches_the_database_behind_a_saver(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agents.db"
    for name in (path, f"{path}-other"):
        with SqliteSaver(name) as saver:
            saver.setup()
    sqlite_next_format.install(monkeypatch)
    saver = AROUND[kind](path)
    try:
        saver.put(at("one", ""), checkpoint({"a": 1}, {"a": 1}), {}, {"a": 1})
        assert saver.upgrade(dry_run=True) == saver.upgrade(dry_run=True) == DUE
        assert saver.upgrade() == DUE
        assert asyncio.run(saver.aupgrade()) == DONE
        saver.put(at("two", ""), checkpoint({"a": 1}, {"a": 1}), {}, {"a": 1})
    finally:
        (saver.saver if kind == "wrapped" else saver).close()
    for name in (path, f"{path}-other") if kind == "a pair" else (path,):
        with SqliteSaver(name) as behind:
            assert behind.report()[2:5] == (DONE.after, 1, DONE.after)
            assert len(list(behind.list(None))) == 2


def test_a_saver_in_memory_has_nothing_to_switch() -> None:
    with MemorySaver() as saver:
        assert saver.upgrade() == asyncio.run(saver.aupgrade()) == UpgradeReport(1, 1)


@pytest.mark.parametrize("made", [MemorySaver, lambda: SqliteSaver(":memory:")])
def test_the_view_of_one_owner_does_not_switch_what_others_use(made: Callable[[], Saver]) -> None:
    with made() as saver:
        view = saver.for_owner("ada")
        assert view.upgrade(dry_run=True) == UpgradeReport(1, 1)
        with pytest.raises(ConfigError, match="only the threads of 'ada'"):
            view.upgrade()


def test_a_dry_run_is_true_or_false() -> None:
    with MemorySaver() as saver, pytest.raises(ConfigError, match="dry_run"):
        saver.upgrade(dry_run="yes")  # type: ignore[arg-type]
