"""The choice of parts: the compiled ones if they are installed, those in Python on demand."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import threadmark_speed
from threadmark.runtime import compiled
from threadmark_redis.report import full_report
from threadmark_speed import plain
from threadmark_sqlite import SqliteSaver


def _printed(switch: str | None, what: str = "c.IN_USE") -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    environment = kept if switch is None else {**kept, compiled.SWITCH: switch}
    code = f"import threadmark.runtime.compiled as c; print({what})"
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_this_run_uses_what_it_was_asked_to_use() -> None:
    is_wanted = os.environ.get(compiled.SWITCH) != "1"
    assert is_wanted == compiled.IN_USE


@pytest.mark.parametrize(("switch", "in_use"), [(None, True), ("", True), ("0", True), ("1", False)])
def test_the_environment_says_which_parts_are_used(switch: str | None, *, in_use: bool) -> None:
    assert _printed(switch).stdout == f"{in_use}\n"


def test_a_report_says_which_code_runs() -> None:
    with SqliteSaver(":memory:") as saver:
        assert saver.report().implementation == compiled.implementation()
    assert full_report((), (), None).implementation == compiled.implementation()


def test_compiled_code_says_its_contract() -> None:
    printed = _printed("0", "c.implementation()").stdout
    assert printed == f"compiled (contract {threadmark_speed.CONTRACT})\n"


def test_python_says_why() -> None:
    assert _printed("1", "c.implementation()").stdout == "Python (switched off by THREADMARK_PURE_PYTHON)\n"


def test_a_package_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(compiled.SWITCH, raising=False)
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    assert compiled._choice() == (False, "Python (threadmark-speed is not installed)", False)


def test_another_word_in_the_environment_is_a_mistake() -> None:
    assert "THREADMARK_PURE_PYTHON in the environment must be 1, 0 or empty, not 'yes'" in _printed("yes").stderr


def test_no_module_is_forgotten_where_it_was_not_compiled() -> None:
    sources = Path(threadmark_speed.__file__).parent.glob("*.pyx")
    assert sorted(path.stem for path in sources) == list(threadmark_speed.MODULES)


SUFFIX = EXTENSION_SUFFIXES[0]
CURRENT = f'CONTRACT, MODULES, COMPILED = {threadmark_speed.CONTRACT}, ("plain",), True'
LIBRARY = Path(plain.__file__).read_bytes()
BROKEN = {
    "an old contract": (
        'CONTRACT, MODULES = 1, ("plain",)',
        {f"plain{SUFFIX}": LIBRARY},
        "it has contract 1 and needs",
    ),
    "a damaged file": (CURRENT, {f"plain{SUFFIX}": b"not a library"}, "plain"),
    "a missing file": (CURRENT, {}, "its module plain is missing"),
    "another Python's file": (CURRENT, {"plain.cpython-399-none.so": LIBRARY}, "built for another Python or system"),
    "a package that raises": ('raise RuntimeError("not here")', {}, "not here"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_package_that_cannot_be_used_is_left_out_with_one_warning(what: str, tmp_path: Path) -> None:
    text, files, reason = BROKEN[what]
    package = tmp_path / "threadmark_speed"
    package.mkdir()
    (package / "__init__.py").write_text(text, encoding="utf-8")
    for name, content in files.items():
        (package / name).write_bytes(content)
    ran = _used(tmp_path)
    assert ran.stdout.startswith("False True Python (threadmark-speed is left out: ")
    assert reason in ran.stdout
    assert ran.stderr.count("RuntimeWarning: threadmark-speed cannot be used and is left out") == 1


def test_a_module_that_fails_while_it_is_imported_leaves_all_of_them_out(tmp_path: Path) -> None:
    package = _copied(tmp_path)
    (broken,) = package.glob(f"checks{SUFFIX}")
    broken.unlink()
    (package / "checks.py").write_text('raise ImportError("core has no such name")', encoding="utf-8")
    ran = _used(tmp_path)
    assert ran.stdout.startswith("False True Python (threadmark-speed is left out: core has no such name)")
    assert ran.stdout.endswith("0 counterparts\n")
    assert ran.stderr.count("RuntimeWarning: threadmark-speed cannot be used and is left out") == 1


def test_a_package_without_compiled_code_is_passed_over_in_silence(tmp_path: Path) -> None:
    package = _copied(tmp_path)
    for library in package.glob("*.so"):
        library.unlink()
    ran = _used(tmp_path)
    assert ran.stdout.startswith("False False Python (threadmark-speed is installed without compiled code)")
    assert ran.stderr == ""


def _copied(folder: Path) -> Path:
    package = Path(threadmark_speed.__file__).parent
    return Path(shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__")))


USE = """
import sys
sys.path.insert(0, sys.argv[1])
import threadmark
from threadmark.runtime import compiled
from threadmark_sqlite import SqliteSaver

with SqliteSaver(":memory:") as saver:
    states = threadmark.States(saver)
    for number in range(3):
        states.save("one", {"text": f"{number}" + "a lamp " * 1000, "number": complex(number, 2)})
    assert states.load("one")["number"] == complex(2, 2)
    assert saver.report().implementation == compiled.implementation()
print(compiled.IN_USE, compiled.IS_BROKEN, compiled.implementation(), len(compiled.COUNTERPARTS), "counterparts")
"""


def _used(folder: Path) -> subprocess.CompletedProcess[str]:
    """Store and read with the package in a folder, and print which code did."""
    environment = {name: value for name, value in os.environ.items() if name != compiled.SWITCH}
    command = [sys.executable, "-c", USE, str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
