"""The benchmark runs from end to end, its floor stores the same rows as our saver, and it fails if a must is missed."""

import atexit
import functools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as Xml

import psycopg
import pytest

import musts
import report
import workloads
from measuring import floor, plan, rounds, tables, versions
from measuring.charts import Group, ratios
from measuring.jobs import (
    FLOOR,
    OURS,
    POSTGRES,
    PURE,
    REDIS,
    SQLITE,
    STEPS,
    THEIRS,
    Comparison,
    Figures,
    Job,
    Seconds,
    job_from,
)
from measuring.places import new_place
from measuring.rounds import CPU, WALL, Measured
from measuring.sides import Ours
from postgres.cluster import shared, with_pgvector
from redis_backend.processes import RedisProcess
from storage import Sizes
from threadmark.runtime.compiled import SWITCH

CHAT = plan.steps(SQLITE, "chat")


@functools.cache
def _redis() -> str:
    """A server that waits for the disk."""
    server = RedisProcess(report.REDIS_SETTINGS).start()
    atexit.register(server.__exit__)
    return server.url


def _measured(comparison: Comparison, *times_of_both: tuple[float, float], figure: str = "put") -> Measured:
    """Rounds with our time and theirs."""
    sides = [dict(zip((OURS, THEIRS), both, strict=True)) for both in times_of_both]
    return Measured(
        comparison,
        [{side: Figures({figure: Seconds(time, 2 * time)}) for side, time in each.items()} for each in sides],
    )


def _missed(found: Sequence[Measured], *, margin: float = 0.1, complete: bool = False, sizes: int = 0) -> list[str]:
    chosen = plan.Plan([], rounds=1, margin=margin, complete=complete)
    return musts.missed(found, [Sizes("doc", 150, 10**8, sizes)], chosen)


def test_everything_that_is_measured_works(tmp_path: Path) -> None:
    command = [sys.executable, report.__file__, "--smoke", "--output", tmp_path, "--postgres", shared().url]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "report.md").read_text()
    titles = [line for line in written.splitlines() if line.startswith("## ")]
    assert len(titles) == 9, titles
    assert "figures mean nothing" in written
    times = written.partition("## Times in milliseconds")[2]
    for each in plan.smoke().comparisons:
        assert f"| {each} |" in times
    charts = {path.name: Xml.parse(path).getroot() for path in (tmp_path / "charts").iterdir()}  # noqa: S314 - ours
    assert charts.keys() == {"steps-sqlite.svg", "steps-postgres.svg", "steps-memory.svg", "turns.svg"}
    assert len(charts["steps-sqlite.svg"].findall("{*}rect")) == len(plan.SIZES[SQLITE]) * len(musts.COLUMNS)


def test_a_smoke_run_has_every_kind_of_comparison_of_the_full_benchmark() -> None:
    kinds = [{(each.measure, each.backend, each.api) for each in of.comparisons} for of in (plan.smoke(), plan.full())]
    assert kinds[0] == kinds[1]


def test_the_full_benchmark_measures_every_must_and_the_short_one_some() -> None:
    demanded = {must.comparison._replace(sides=()) for must in musts.musts()}
    full, quick = ({each._replace(sides=()) for each in of.comparisons} for of in (plan.full(), plan.quick()))
    assert demanded <= full
    assert demanded & quick
    assert quick <= full


@pytest.mark.parametrize("backend", [SQLITE, POSTGRES, REDIS])
@pytest.mark.parametrize("workload", workloads.TIMED)
def test_the_floor_stores_the_rows_that_our_saver_stores(backend: str, workload: str) -> None:
    side = floor.Floor()
    steps = list(workloads.TIMED[workload](side.next_version, 3))
    server = shared().url if backend == POSTGRES else _redis() if backend == REDIS else ""
    with new_place(backend, server) as place, new_place(backend, server) as other:
        side.learn(place, server, steps[:2], steps[2:])
        with side.blocking(place) as bare:
            workloads.drive(bare, workloads.thread("steps"), steps)
        with Ours().blocking(other) as saver:
            workloads.drive(saver, workloads.thread("steps"), steps)
        with Ours().blocking(place) as saver:
            newest = saver.get_tuple(workloads.thread("steps"))
            assert newest.checkpoint["channel_values"] == steps[-1].checkpoint["channel_values"]
            assert [found.checkpoint["id"] for found in saver.list(workloads.thread("steps"))] == [
                step.checkpoint["id"] for step in reversed(steps)
            ]
        with closing(floor.bare(place)) as ours, closing(floor.bare(other)) as theirs:
            counts = [{table: len(rows) for table, rows in each.rows().items()} for each in (ours, theirs)]
            assert counts[0] == counts[1]


def test_each_side_has_a_process_of_its_own_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[list[Job]] = []

    def in_child(given: Sequence[Job]) -> list[Figures]:
        jobs.append(list(given))
        return [Figures({"put": Seconds(1, 1)})]

    monkeypatch.setattr(rounds, "in_child", in_child)
    comparison = plan.steps(SQLITE, "chat", floor=True)
    (measured,) = rounds.measure([comparison], 2, {}, lambda _: None)
    assert [[job.side for job in each] for each in jobs] == [[OURS], [THEIRS], [FLOOR]] * 2
    assert [list(each) for each in measured.rounds] == [[OURS, THEIRS, FLOOR]] * 2


def test_a_child_that_fails_fails_the_benchmark_and_says_why() -> None:
    job = Job(CHAT._replace(workload="no such workload", size=1), OURS, "")
    with pytest.raises(RuntimeError, match=r"ours, SQLite, no such workload 1 failed:[^$]*KeyError"):
        rounds.in_child([job])


def test_a_job_reaches_the_child_as_it_was_given() -> None:
    job = Job(plan.steps(POSTGRES, "wide", floor=True), FLOOR, "postgresql://there")
    assert job_from(json.loads(json.dumps(job.told()))) == job


def test_a_ratio_is_taken_within_each_round() -> None:
    measured = _measured(CHAT, (1, 2), (10, 40), (2, 2))
    assert measured.ratio("put", WALL) == (2, 1, 4)
    assert measured.seconds(OURS, "put", CPU) == (4, 2, 20)
    assert measured.ratio("prune", WALL) is None
    assert measured.seconds(FLOOR, "put", WALL) is None


def test_ours_in_python_has_a_row_of_its_own_with_the_times_of_both_sides() -> None:
    round_ = {
        side: Figures({"put": Seconds(wall, wall)}) for side, wall in ((OURS, 0.001), (THEIRS, 0.004), (PURE, 0.002))
    }
    lines = [*tables.ratios([Measured(CHAT, [round_])], [("put", "put", WALL)], tables.workload_of)]
    assert lines[2:] == [
        "| chat, 500 | 4.00 (4.00-4.00), 4 / 1 ms |",
        "| chat, 500, in Python | 2.00 (2.00-2.00), 4 / 2 ms |",
    ]


def test_the_slowest_of_a_hundred_is_of_all_rounds_together() -> None:
    rounds_of = [{OURS: Figures({}, 0, {"put": [0.001] * 49 + [0.2]})}] * 2
    assert Measured(CHAT, rounds_of[:1]).slowest(OURS, "put") is None
    assert Measured(CHAT, rounds_of).slowest(OURS, "put") == pytest.approx(0.2)
    assert Measured(CHAT, rounds_of).slowest(THEIRS, "put") is None


def test_python_only_is_measured_without_the_compiled_part(monkeypatch: pytest.MonkeyPatch) -> None:
    environments: list[Mapping[str, str]] = []

    def run(*_: object, env: Mapping[str, str], **__: object) -> subprocess.CompletedProcess[str]:
        environments.append(env)
        return subprocess.CompletedProcess([], 0, '{"figures": []}', "")

    monkeypatch.setattr(subprocess, "run", run)
    comparison = plan.with_pure(plan.steps(SQLITE, "chat"))
    assert comparison.sides == (OURS, THEIRS, PURE)
    for side in comparison.sides:
        rounds.in_child([Job(comparison, side, "")])
    assert [each[SWITCH] for each in environments] == [os.environ.get(SWITCH, "")] * 2 + ["1"]


def test_a_version_has_one_line_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "versions.md"
    versions.note(file, "0.1.0", [_measured(CHAT, (1, 2.0))])
    versions.note(file, "0.2.0", [_measured(CHAT, (1, 3.0))])
    versions.note(file, "0.2.0", [_measured(CHAT, (1, 4.0))])
    lines = [line for line in file.read_text().splitlines() if line.startswith("| 0.")]
    python = platform.python_version()
    assert lines == [f"| 0.1.0 | {python} | 2.00 |  |  |  |  |  |  |", f"| 0.2.0 | {python} | 4.00 |  |  |  |  |  |  |"]


def test_a_must_that_is_missed_is_named_with_its_figures() -> None:
    (line,) = _missed([_measured(CHAT, (1, 0.5), (1, 0.6), (1, 0.8))])
    assert line == "SQLite, chat 500: put: 0.60 (0.50 to 0.80), must be 1.0"
    (line,) = _missed([_measured(CHAT, (1, 2.0), figure="step")])
    assert line == "SQLite, chat 500: CPU of a step: 2.00 (2.00 to 2.00), must be 2.5"


def test_noise_within_the_margin_is_no_failure() -> None:
    slow = [_measured(CHAT, (1, 0.91))]
    assert _missed(slow, margin=0.1) == []
    assert len(_missed(slow, margin=0.05)) == 1


def test_a_row_is_found_with_and_without_the_floor_beside_it() -> None:
    assert len(_missed([_measured(plan.steps(SQLITE, "chat", floor=True), (1, 0.5))])) == 1


def test_only_the_full_benchmark_misses_what_was_not_measured() -> None:
    assert _missed([]) == []
    missed = _missed([], complete=True)
    assert len(missed) == len(list(musts.musts()))
    assert missed[0] == "SQLite, chat 500: put: was not measured"


def test_bytes_may_grow_by_a_tenth_whatever_the_margin() -> None:
    readme = musts.BYTES["doc"]
    assert _missed([], margin=0.5, sizes=readme * 11 // 10) == []
    (line,) = _missed([], margin=0.5, sizes=readme * 11 // 10 + 1)
    assert line.startswith("SQLite, doc: 432,301 bytes on disk")


def test_a_missed_must_is_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(plan.SIZES[SQLITE], "tiny", 2)
    monkeypatch.setitem(musts.RUN[SQLITE], "tiny", (1e9, None, None, None, None))
    monkeypatch.setattr(plan, "quick", lambda: plan.Plan([plan.steps(SQLITE, "tiny")], rounds=1, margin=0.1))
    monkeypatch.setattr(report, "_counted", lambda _: ([Sizes("doc", 150, 10**8, 10**6)], []))
    monkeypatch.setattr(sys, "argv", ["report.py", "--output", str(tmp_path), "--postgres", shared().url])
    assert report.main() == 1
    missed = [line for line in capsys.readouterr().err.splitlines() if line.startswith("missed: ")]
    assert missed[0].startswith("missed: SQLite, tiny 2: put: ")
    assert missed[1].startswith("missed: SQLite, doc: 1,000,000 bytes on disk")
    written = (tmp_path / "report.md").read_text()
    assert all(f"* {line.removeprefix('missed: ')}" in written for line in missed)
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {"steps-sqlite.svg", "bytes.svg"}


def test_a_comparison_says_what_it_is() -> None:
    assert str(Comparison(STEPS, POSTGRES, "chat", 2_000)) == "Postgres, chat 2,000"
    assert str(Comparison("turns", SQLITE, "slim", 50, "asyncio")) == "SQLite, asyncio, slim 50"


def test_bars_go_right_where_ours_is_better_and_left_where_it_is_not() -> None:
    svg = Xml.fromstring(ratios("Title <&>", "", [Group("group", [("better", 4.0), ("equal", 1.0), ("worse", 0.5)])]))  # noqa: S314 - ours
    (line,) = svg.findall("{*}line")
    one = float(line.attrib["x1"])
    better, equal, worse = svg.findall("{*}rect")
    assert float(better.attrib["x"]) == one
    assert float(equal.attrib["width"]) == 1
    assert float(worse.attrib["x"]) + float(worse.attrib["width"]) == pytest.approx(one, abs=0.2)
    assert float(better.attrib["width"]) == pytest.approx(2 * float(worse.attrib["width"]), abs=0.2)
    assert better.attrib["fill"] == equal.attrib["fill"] != worse.attrib["fill"]
    texts = [element.text for element in svg.findall("{*}text")]
    assert texts == ["Title <&>", None, "group", "better", "4.0x", "equal", "1.0x", "worse", "0.50x"]
    width = float(svg.attrib["width"])
    for bar in (better, equal, worse):
        assert 0 <= float(bar.attrib["x"]) <= float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width


def _rows(script: str, *arguments: str) -> set[str]:
    """The names of the rows that a script of the benchmarks prints."""
    command = [sys.executable, str(Path(__file__).parent.parent / "benchmarks" / script), "--smoke", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return {line.split(" | ")[0].removeprefix("| ") for line in done.stdout.splitlines() if line.startswith("| ")}


@pytest.mark.parametrize("database", [SQLITE, POSTGRES])
def test_stores_of_items_are_measured(database: str) -> None:
    url = shared().database("stores_measured") if database == POSTGRES else ""
    rows = _rows("item_stores.py", "--only", database, "--postgres", url)
    assert {"bytes of an item", "put a new item", "get an item", "search all items, a range"} <= rows


def test_searches_by_vectors_are_measured() -> None:
    url = with_pgvector().database("vectors_measured")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    rows = _rows("vector_search.py", "--postgres", url)
    assert {"put 500 items", "search in all items", "found in all items"} <= rows


def test_puts_through_a_pair_are_measured() -> None:
    script = Path(__file__).parent.parent / "benchmarks" / "replicated_puts.py"
    done = subprocess.run(
        [sys.executable, script, "--puts", "3", "--rounds", "1"],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert [line.split()[3] for line in done.stdout.splitlines()] == ["bare", "sync", "async"]
