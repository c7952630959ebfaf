"""The records of attacks: one line of JSON each, with its command, date, commit, versions and output."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from platform import platform, python_version
from typing import NamedTuple

from threadmark.runtime.compiled import IN_USE

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "benchmarks" / "proof.jsonl"
PACKAGES = (
    *("threadmark", "langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite"),
    *("langgraph-checkpoint-postgres", "psycopg", "redis"),
)


class Record(NamedTuple):
    """An attack that came to its end, or that was ended after a time."""

    attack: str
    form: str
    """`short` or `long`."""
    command: str
    """As a reader types it."""
    date: str
    commit: str
    seconds: int
    held: bool
    versions: dict[str, str]
    output: str


def load(path: Path = RECORDS) -> list[Record]:
    """Read all records."""
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def append(record: Record, path: Path = RECORDS) -> None:
    """Keep a record, in place of an earlier one of the same attack and form."""
    others = [each for each in (load(path) if path.exists() else []) if each[:2] != record[:2]]
    lines = [json.dumps(each._asdict(), ensure_ascii=False) for each in sorted([*others, record])]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def commit() -> str:
    """The commit of this checkout, with a plus if tracked files of the library or of the attacks differ from it."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    found = _output([git, "rev-parse", "--short=10", "HEAD"])
    return found + ("+" if _output([git, "status", "--porcelain", "-uno", "libs", "benchmarks/*.py", "tests"]) else "")


def versions(environment: dict[str, str]) -> dict[str, str]:
    """The versions of everything that takes part, with the servers that these variables choose."""
    programs = Path(_output([str(ROOT / "scripts" / "ensure-postgres")], environment))
    redis = _output([str(ROOT / "scripts" / "ensure-redis")]).splitlines()[-1]
    return {
        "system": platform(),
        "cores": str(os.cpu_count()),
        "Python": python_version(),
        "compiled parts": "yes" if IN_USE else "no",
        "SQLite": sqlite3.sqlite_version,
        "Postgres": _output([str(programs / "postgres"), "--version"]).split()[2],
        "Redis": _output([redis, "--version"]).partition("v=")[2].split()[0],
        **{name: version(name) for name in PACKAGES},
    }


def newest(records: Iterable[Record], attack: str) -> Iterator[Record]:
    """The records of an attack, the long form first."""
    return iter(sorted((each for each in records if each.attack == attack), key=lambda each: each.form))


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - programs of this project, and servers that it has found
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"{command[0]} failed")
    return done.stdout.strip()
