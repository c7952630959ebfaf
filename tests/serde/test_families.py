"""Families that an installed package adds, through the entry point that docs/how-to/kinds.md describes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "kinds.md"
PALETTE = """
class Color:
    __slots__ = ("_red", "_green", "_blue")

    @classmethod
    def fromhex(cls, text):
        color = cls()
        color._red, color._green, color._blue = bytes.fromhex(text)
        return color

    def hex(self):
        return bytes([self._red, self._green, self._blue]).hex()
"""
"""The library: a class that no family of Threadmark's own stores."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages, the library and the one that adds its family."""
    (tmp_path / "palette.py").write_text(PALETTE)
    return _installed(tmp_path, _family_of_the_page(), "palette = threadmark_palette:FAMILIES")


def _family_of_the_page() -> str:
    (module,) = re.findall(r"^<!-- .* -->\n```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(module)


def _installed(site: Path, module: str, entry: str, name: str = "threadmark_palette") -> Path:
    (site / f"{name}.py").write_text(module)
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[threadmark.kinds]\n{entry}\n")
    return site


def _run(site: Path, program: str) -> str:
    """The output of a program in which these packages are installed."""
    path = os.pathsep.join([str(site), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", _BEGINNING + program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_BEGINNING = """
import sys
from threadmark import ForbiddenTypeError, SerializationError
from threadmark.serde import Serde

def imported():
    return sorted({"numpy", "pandas", "palette", "threadmark_palette"} & {*sys.modules})

def error_of(call):
    try:
        call()
    except (ForbiddenTypeError, SerializationError) as error:
        return f"{type(error).__name__}: {error}"
"""


def test_a_package_adds_a_family(site: Path) -> None:
    program = """
import palette
color = palette.Color.fromhex("ff8800")
tag, data = Serde().dumps_typed({"colors": [color]})
found = Serde().loads_typed((tag, data))["colors"][0]
print(type(found) is palette.Color, found.hex(), b"(palette.Color)palette:Color" in data)
"""
    assert _run(site, program).split() == ["True", "ff8800", "True"]


def test_a_library_that_is_imported_later_is_noticed(site: Path) -> None:
    program = """
import signal
serde = Serde()
serde.dumps_typed(signal.SIGINT)
print(imported())
import palette
print(serde.loads_typed(serde.dumps_typed(palette.Color.fromhex("ff8800"))).hex())
"""
    assert _run(site, program).splitlines() == ["[]", "ff8800"]


def test_a_stored_value_imports_neither_the_library_nor_its_family(site: Path) -> None:
    stored = _run(site, 'import palette; print(Serde().dumps_typed(palette.Color.fromhex("ff8800"))[1].hex())').strip()
    program = f"""
stored = "t", bytes.fromhex("{stored}")
print(error_of(lambda: Serde().loads_typed(stored)))
print(error_of(lambda: Serde(allow=["other:Color"]).loads_typed(stored)))
print(imported())
print(Serde(allow=["palette:Color"]).loads_typed(stored).hex(), imported())
"""
    forbidden, not_allowed, nothing, allowed = _run(site, program).splitlines()
    assert forbidden.startswith(
        "ForbiddenTypeError: palette:Color was stored, but the program has not imported palette"
    )
    assert not_allowed.startswith("ForbiddenTypeError: palette:Color is not allowed here")
    assert nothing == "[]"
    assert allowed == "ff8800 ['palette', 'threadmark_palette']"


def test_a_family_that_is_not_installed_any_more_is_named(site: Path) -> None:
    stored = _run(site, 'import palette; print(Serde().dumps_typed(palette.Color.fromhex("ff8800"))[1].hex())').strip()
    (site / "threadmark_palette-1.0.dist-info" / "entry_points.txt").unlink()
    program = f"""
import palette
print(error_of(lambda: Serde().loads_typed(("t", bytes.fromhex("{stored}")))))
print(error_of(lambda: Serde().dumps_typed(palette.Color.fromhex("ff8800"))))
"""
    read, written = _run(site, program).splitlines()
    assert "stored by the kind (palette.Color), which no installed package has" in read
    assert "not a kind of value that the serializer knows" in written


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (lambda page: page.replace('"(palette.Color)"', '"Y"'), "must be a name in parentheses, such as (palette)"),
        (lambda page: page.replace('"(palette.Color)"', '"(palette"'), "must be a name in parentheses"),
        (lambda page: page.replace("(Colors(),)", "(Colors,)"), "is not an instance of a family"),
        (lambda page: page.replace("(Colors(),)", "(Colors(), Colors())"), "are families with one code"),
        (lambda page: page + "\nraise RuntimeError('half installed')", "half installed"),
    ],
)
def test_a_faulty_package_is_named(tmp_path: Path, module: Callable[[str], str], said: str) -> None:
    (tmp_path / "palette.py").write_text(PALETTE)
    _installed(tmp_path, module(_family_of_the_page()), "palette = threadmark_palette:FAMILIES")
    program = """
import palette
print(error_of(lambda: Serde().dumps_typed(palette.Color.fromhex("ff8800"))))
"""
    assert said in _run(tmp_path, program)


def test_no_package_takes_the_place_of_threadmarks_own(tmp_path: Path) -> None:
    """A family that accepts everything comes after enums and exceptions, and cannot have a code of ours."""
    module = _family_of_the_page().replace("cls is palette.Color", "True")
    (tmp_path / "palette.py").write_text(PALETTE)
    _installed(tmp_path, module, "palette = threadmark_palette:FAMILIES")
    program = """
import palette, signal
print(Serde().loads_typed(Serde().dumps_typed([signal.SIGINT, ValueError("x"), {1, 2}, 1 + 2j])))
"""
    assert _run(tmp_path, program) == "[<Signals.SIGINT: 2>, ValueError('x'), {1, 2}, (1+2j)]\n"


def test_numpy_and_pandas_are_not_imported_for_their_families(tmp_path: Path) -> None:
    program = """
import threadmark
Serde().dumps_typed([{1}, ValueError()])
print(imported())
print(sorted({"threadmark.arrays.numpy_kinds", "threadmark.arrays.pandas_kinds"} & {*sys.modules}))
import numpy
print(Serde().loads_typed(Serde().dumps_typed(numpy.arange(3))).tolist())
"""
    assert _run(tmp_path, program).splitlines() == ["[]", "[]", "[0, 1, 2]"]


@pytest.mark.parametrize("module", ["numpy", "pandas", "msgspec", "pydantic_core", "pydantic.main", "pydantic.types"])
def test_values_are_stored_while_another_thread_imports_a_library(tmp_path: Path, module: str) -> None:
    package, _, name = module.partition(".")
    file = tmp_path / package / f"{name}.py" if name else tmp_path / f"{package}.py"
    file.parent.mkdir(exist_ok=True)
    (file.parent / "__init__.py").touch()
    file.write_text("import threading\nthreading.half.set()\nthreading.rest.wait()\n")
    program = f"""
import dataclasses, importlib, threading
from threadmark.serde import Serde

@dataclasses.dataclass
class Value:
    text: str

threading.half, threading.rest = threading.Event(), threading.Event()
importing = threading.Thread(target=importlib.import_module, args=["{module}"], daemon=True)
importing.start()
threading.half.wait()
serde = Serde(allow=[Value])
print(serde.loads_typed(serde.dumps_typed([Value("a")])))
threading.rest.set()
importing.join()
"""
    assert "[Value(text='a')]" in _run(tmp_path, program)
