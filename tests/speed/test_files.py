"""Files are looked at by the compiled part as they are in Python."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from threadmark.runtime.compiled import COUNTERPARTS
from threadmark_sqlite.driver.database_files import FileId, Looks, id_of

COMPILED, IN_PYTHON, _ = COUNTERPARTS["threadmark_sqlite.driver.database_files.Looks"]


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"12345")
    other.replace(path)


def _touch(path: Path) -> None:
    if path.exists():
        os.utime(path, ns=(1, 1))


HAPPENS: list[Callable[[Path], Any]] = [
    lambda path: path.write_bytes(b"12345"),
    lambda path: path.write_bytes(b"1"),
    lambda path: path.unlink(missing_ok=True),
    _replace,
    _touch,
]
STAMPS = [None, (1, 5), (1, 4), (1, 1)]


def test_whatever_happens_to_files_is_seen_by_both(tmp_path: Path) -> None:
    chance, path, log = random.Random(1), tmp_path / "żółw.db", tmp_path / "żółw.db-wal"
    seen: set[Any] = set()
    for _ in range(60):
        path.write_bytes(b"12345")
        log.touch()
        both = [kind(str(path), id_of(str(path)), str(log)) for kind in (COMPILED, IN_PYTHON)]
        for _ in range(8):
            chance.choice(HAPPENS)(chance.choice([path, path, log]))
            known, stamp = chance.choice([None, id_of(str(log))]), chance.choice(STAMPS)
            changed = chance.choice(["log", "stamp", None, None])
            for looks in both:
                if changed:
                    setattr(looks, changed, known if changed == "log" else stamp)
            found = [
                [looks.is_untouched(), looks.is_there(), looks.is_kept(), looks.stamp, looks.log] for looks in both
            ]
            assert found[0] == found[1]
            seen.add((*found[0][:3], found[0][4] is None))
    # Untouched, there and kept, with a log and without one: this is all that can be. In memory, no file gets the number
    # of one that is gone, so a new one is never kept.
    assert len(seen) in (6, 8)


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="null byte"):
        Looks("a\0b", FileId(1, 2), "log").is_there()
