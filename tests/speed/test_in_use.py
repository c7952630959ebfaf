"""The choice of parts: the compiled ones if they are installed, those in Python on demand."""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import threadmark_speed
from threadmark.runtime import compiled
from threadmark_postgres.report import PostgresReport
from threadmark_redis.report import RedisReport
from threadmark_speed import plain
from threadmark_sqlite import SqliteSaver

PRINTS = "import threadmark.runtime.compiled as c; print(c.IN_USE)"


def _printed(switch: str | None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    environment = kept if switch is None else {**kept, compiled.SWITCH: switch}
    return subprocess.run([sys.executable, "-c", PRINTS], env=environment, capture_output=True, text=True, check=False)


def test_this_run_uses_what_it_was_asked_to_use() -> None:
    is_wanted = os.environ.get(compiled.SWITCH) != "1"
    assert is_wanted == compiled.IN_USE


@pytest.mark.parametrize(("switch", "in_use"), [(None, True), ("", True), ("0", True), ("1", False)])
def test_the_environment_says_which_parts_are_used(switch: str | None, *, in_use: bool) -> None:
    assert _printed(switch).stdout == f"{in_use}\n"


def test_a_report_says_which_parts_are_used() -> None:
    with SqliteSaver(":memory:") as saver:
        assert saver.report().compiled == compiled.STATE
    assert {kind._field_defaults["compiled"] for kind in (PostgresReport, RedisReport)} == {compiled.STATE}


def test_another_word_in_the_environment_is_a_mistake() -> None:
    assert "THREADMARK_PURE_PYTHON in the environment must be 1, 0 or empty, not 'yes'" in _printed("yes").stderr


def test_no_module_is_forgotten_where_it_was_not_compiled() -> None:
    sources = Path(threadmark_speed.__file__).parent.glob("*.pyx")
    assert sorted(path.stem for path in sources) == list(threadmark_speed.MODULES)


BROKEN = {
    "an old contract": ('CONTRACT, MODULES = 1, ("plain",)', None, "another release"),
    "a damaged file": (f'CONTRACT, MODULES = {threadmark_speed.CONTRACT}, ("plain",)', b"not a library", "plain"),
    "a package that raises": ('raise RuntimeError("not here")', None, "not here"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_package_that_cannot_be_used_is_left_out_with_one_warning(what: str, tmp_path: Path) -> None:
    text, library, reason = BROKEN[what]
    package = tmp_path / "threadmark_speed"
    package.mkdir()
    (package / "__init__.py").write_text(text, encoding="utf-8")
    (package / f"plain{EXTENSION_SUFFIXES[0]}").write_bytes(library or Path(plain.__file__).read_bytes())
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {PRINTS}; print(c.IS_BROKEN, c.STATE)"
    code += "; import threadmark; threadmark.open('memory:').close()"
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    in_use, state = ran.stdout.splitlines()
    assert (in_use, state[:15]) == ("False", "True left out: ")
    assert reason in state
    assert ran.stderr.count("RuntimeWarning: threadmark-speed cannot be used and is left out") == 1
