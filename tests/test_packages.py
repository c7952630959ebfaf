"""Each package can be built by itself, and says that it is typed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LIBS = sorted(path.parent for path in (Path(__file__).parent.parent / "libs").glob("*/pyproject.toml"))


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.name)
def test_a_package_builds_alone_and_is_typed(lib: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(lib)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    (package,) = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert f"{package}/py.typed" in names
    assert f"{package}/__init__.py" in names
