"""One line for each version, so that figures can be compared over time: benchmarks/versions.md."""

import platform
from collections.abc import Sequence
from pathlib import Path

from measuring.jobs import BLOCKING, OURS, POSTGRES, PURE, SQLITE, TURNS, Comparison
from measuring.plan import TURNS_OF, steps
from measuring.rounds import WALL, Measured

_CHAT = Comparison(TURNS, SQLITE, "chat", TURNS_OF["chat"], BLOCKING)

COLUMNS: tuple[tuple[str, Comparison, str], ...] = (
    ("SQLite: put, chat", steps(SQLITE, "chat"), "put"),
    ("put, tiny", steps(SQLITE, "tiny"), "put"),
    ("get, chat", steps(SQLITE, "chat"), "get newest"),
    ("turn, chat", _CHAT, "turn"),
    ("Postgres: put, chat", steps(POSTGRES, "chat"), "put"),
    ("put, tiny", steps(POSTGRES, "tiny"), "put"),
    ("get, chat", steps(POSTGRES, "chat"), "get newest"),
)
"""Title, comparison, operation."""

_HEAD = f"""\
# Figures by version

LangGraph's time divided by ours, as in [report.md](report.md): the compiled part / Python only. `make bench-full`
writes the line of the version that it measures.

| version | Python | {" | ".join(title for title, *_ in COLUMNS)} |
|---|---|{"---:|" * len(COLUMNS)}
"""


def note(file: Path, version: str, found: Sequence[Measured]) -> None:
    """Write the line of this version into the file, in place of the one that it may have."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    others = [
        line for line in lines if line.startswith("| ") and not line.startswith(("| version |", f"| {version} |"))
    ]
    cells = [_cell(found, comparison, operation) for _, comparison, operation in COLUMNS]
    line = f"| {version} | {platform.python_version()} | {' | '.join(cells)} |\n"
    file.write_text("".join([_HEAD, *others, line]), encoding="utf-8")


def _cell(found: Sequence[Measured], comparison: Comparison, operation: str) -> str:
    same = [each for each in found if each.comparison._replace(sides=()) == comparison._replace(sides=())]
    ratios = [each.ratio(operation, WALL, ours=ours) for each in same for ours in (OURS, PURE)]
    return " / ".join(f"{ratio.median:.2f}" for ratio in ratios if ratio)
