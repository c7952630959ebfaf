"""The page of the proof agrees with the kept outputs of its attacks, and a loss in an output is noticed."""

import json
from pathlib import Path

import pytest

from proving import figures
from proving.attacks import attacks
from proving.page import PAGE, page
from proving.records import ROOT, Record, append, load

_ROW = "| {} | yes | 1 | 90 | 0 | 2 | 4 | 0 | 0 | 3 | 0 | {} |"
LOSSES: dict[figures.Reader, str] = {
    figures.killed_runs: json.dumps({"threads": 3, "tasks_run": 30, "killed": 5, "lost": 1, "repeated": 1}),
    figures.power_cuts: "\n".join(
        f"{name}: 1 recordings, 168 operations, 2376 events, 137 syncs, 3338 states, 9 distinct, 8 unsynced, 0 fewer, "
        "1 objections"
        for name in ("full", "normal")
    ),
    figures.killed_servers: json.dumps({"killed": 5, "puts": 40, "batches": 40, "lost_or_torn": ["a", "b"]}, indent=4),
    figures.transactions: json.dumps({"committed": 30, "killed": 5, "in_a_transaction": 4, "apart": 1, "lost": 1}),
    figures.damage: "9 single-bit damages of cells of SQLite:\n  without effect on any answer: 1\n  an error: 6\n"
    "  an answer that lacks a part:  1\n  a wrong answer: 1\n  with an effect, and not named by verify: 0",
    figures.histories: "\n".join(
        _ROW.format(*cells)
        for cells in (
            ("Threadmark sqlite", "1 torn values, 1 no moment"),
            ("Threadmark redis", "7 no moment"),
            ("LangGraph sqlite", "9 torn values"),
        )
    ),
    figures.locks: "| put | 1,200 | 3 ms | 4 ms |\ndeadlocks: 1; failures: 1; problems found afterwards: 0",
    figures.leases: json.dumps(
        {"checkpoints": 9, "hand_overs": 2, "refused": 1, "stopped": 3, "killed_connections": 2}
        | {"lost": 0, "forks": 1, "late": 1}
    ),
    figures.lost_answers: "\n".join(
        f"{place}, Blocking, Postgres 18: 36 operations with 90 answers, 72 rounds, 72 answers lost, 1 objections, 4 s"
        for place in ("postgres", "postgres, pgbouncer")
    ),
    figures.pairs: "| all | 8 | 213 | 1 | 0 | 2 | 0 | 0.0 | 2 | 73 |",
    figures.effects: json.dumps({"calls": 30, "stopped": 3, "lost": 1, "twice": 1}),
    figures.worlds: "1,200 seeds in 60 s, 1,200 a minute, 2 failed\n    1,451  a request was lost\n       20  x",
    figures.soak: "| threads | 1.00 | 3.00 | 9.00 | 8.00 | 2.00 | NOT FLAT |\n"
    "runs finished: 5,718; steps cancelled: 1,352\nnot flat: threads; lost runs: 1; problems: []",
}
"""Outputs with two losses each."""


def test_the_page_is_that_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(load()), "write it: make proof PROOF=--page"


def test_every_guarantee_of_the_readme_has_attacks_with_names_of_their_own() -> None:
    found = attacks()
    assert len({attack.name for attack in found}) == len(found)
    for attack in found:
        assert (ROOT / attack.script).exists()


@pytest.mark.parametrize("read", LOSSES, ids=lambda read: read.__name__)
def test_a_loss_in_an_output_is_counted(read: figures.Reader) -> None:
    assert read(LOSSES[read]).losses == 2
    with pytest.raises((ValueError, AttributeError)):
        read("")


def test_a_new_output_takes_the_place_of_the_last_one_of_its_form(tmp_path: Path) -> None:
    path = tmp_path / "proof.jsonl"
    first = Record("soak", "long", "python soak.py", "2026-01-01", "0123456789", 5, True, {}, "before")
    last = first._replace(output="after")
    short = first._replace(form="short")
    for record in (first, short, last):
        append(record, path)
    assert load(path) == [last, short]


def test_a_failed_attack_is_on_the_page() -> None:
    name = attacks()[0].name
    failed = Record(name, "short", "python attack.py", "2026-01-01", "0123456789", 5, False, {}, "no")
    assert "**It failed.**" in page([failed])
    assert "0, and 1 failed" in page([failed])
