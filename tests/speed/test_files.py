"""Files are looked at by the compiled part as they are in Python."""

import os
from pathlib import Path
from typing import Any

import pytest

from threadmark.runtime.compiled import COUNTERPARTS
from threadmark_sqlite.driver.database_files import FileId, Looks, id_of

IN_PYTHON: list[Any] = [pair.reference for name, pair in COUNTERPARTS.items() if name.endswith(".Looks")] or [Looks]

BOTH = pytest.mark.parametrize("kind", [pytest.param(Looks, id="compiled"), pytest.param(*IN_PYTHON, id="python")])


def _known(kind: Any, path: Path) -> Any:
    path.write_bytes(b"12345")
    return kind(str(path), id_of(str(path)), f"{path}-wal")


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"12345")
    other.rename(path)


@BOTH
def test_a_file_that_stays_is_there(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "żółw.db"
    looks = _known(kind, path)
    assert looks.is_there()
    path.write_bytes(b"1")
    assert looks.is_there()
    _replace(path)
    assert not looks.is_there()
    path.unlink()
    assert not looks.is_there()
    assert not kind(str(path / "below"), (1, 2), "none").is_there()


@BOTH
def test_a_file_is_untouched_once_it_has_a_stamp(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    looks = _known(kind, path)
    assert (looks.stamp, looks.is_untouched()) == (None, False)
    assert looks.is_kept()
    assert looks.stamp == (path.stat().st_mtime_ns, 5)
    assert looks.is_untouched()
    os.utime(path, ns=(1, 1))
    assert not looks.is_untouched()
    looks.stamp = (1, 5)
    assert looks.is_untouched()
    looks.stamp = (1, 4)
    assert not looks.is_untouched()
    looks.stamp = None
    assert not looks.is_untouched()
    assert looks.is_kept()
    _replace(path)
    stamp = looks.stamp
    assert not looks.is_kept()
    assert looks.stamp == stamp


@BOTH
def test_a_log_that_is_known_must_stay(kind: Any, tmp_path: Path) -> None:
    path, log = tmp_path / "kept.db", tmp_path / "kept.db-wal"
    looks = _known(kind, path)
    assert looks.log is None
    assert looks.is_kept()
    log.touch()
    looks.log = known = id_of(str(log))
    assert looks.log == known
    assert looks.is_kept()
    log.unlink()
    looks.stamp = None
    assert not looks.is_kept()
    assert looks.stamp == (path.stat().st_mtime_ns, 5)
    assert looks.is_there()


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="null byte"):
        Looks("a\0b", FileId(1, 2), "log").is_there()
