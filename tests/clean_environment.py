"""The packages as a user gets them: built into sdists and wheels, and installed into an empty environment.

A clean environment holds only the packages' requirements. The dependencies come from the environment that the
tests run in, as links to its files, so that no network is needed.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_BUILD = """
import os, sys, tarfile
from pathlib import Path
from hatchling import build

folder, names = sys.argv[1], []
for lib in sys.argv[2:]:
    os.chdir(lib)
    sdist = build.build_sdist(folder)
    with tarfile.open(Path(folder, sdist)) as archive:
        archive.extractall(Path(folder, "unpacked"), filter="data")
    os.chdir(Path(folder, "unpacked", sdist.removesuffix(".tar.gz")))
    names += [sdist, build.build_wheel(folder)]
Path(folder, "names.txt").write_text("\\n".join(names), encoding="utf-8")
"""


class Built(NamedTuple):
    """A package's sdist, and the wheel that was built from it."""

    lib: Path
    sdist: Path
    wheel: Path
    metadata: Message
    """The path of the wheel."""

    @property
    def unpacked(self) -> Path:
        """The folder of the sdist's files."""
        return self.sdist.parent / "unpacked" / self.sdist.name.removesuffix(".tar.gz")


def build(libs: Sequence[Path], folder: Path) -> list[Built]:
    """Build each sdist from the checkout, and each wheel from the sdist alone, unpacked elsewhere.

    Processes that share the folder build once, in one child process. Nothing is compiled: `scripts/release_check.py`
    builds the compiled wheel.
    """
    folder.mkdir(exist_ok=True)
    names = folder / "names.txt"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not names.exists():
            environment = {**os.environ, "THREADMARK_SPEED": "pure"}
            _output([sys.executable, "-c", _BUILD, str(folder), *map(str, libs)], folder, environment)
    files = [folder / name for name in names.read_text(encoding="utf-8").splitlines()]
    return [_described(*each) for each in zip(libs, files[::2], files[1::2], strict=True)]


def _described(lib: Path, sdist: Path, wheel: Path) -> Built:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Built(lib, sdist, wheel, BytesParser().parsebytes(archive.read(name)))


def build_speed(source: Path, folder: Path, **environment: str) -> Path:
    """Build a wheel of the compiled part from its unpacked sdist, with variables of the environment."""
    code = "import sys; from hatchling import build; print(build.build_wheel(sys.argv[1]))"
    printed = _output([sys.executable, "-c", code, str(folder)], source, {**os.environ, **environment})
    return folder / printed.splitlines()[-1]


class CleanEnvironment:
    """A virtual environment with `requirement` installed from the built wheels."""

    def __init__(self, folder: Path, requirement: str, built: Mapping[str, Built]) -> None:
        self._folder = folder
        _output([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
        self.python = folder / "bin" / "python"
        self.site = Path(self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        for name in _needed(requirement, built):
            self._link(metadata.distribution(name))
        wheels = {str(package.wheel.parent) for package in built.values()}
        links = [argument for folder in wheels for argument in ("--find-links", folder)]
        # pip itself selects the packages, and checks that the linked ones are within the limits.
        pip = [sys.executable, "-m", "pip", "--isolated", "--python", str(self.python), "--disable-pip-version-check"]
        _output([*pip, "install", "--quiet", "--no-index", "--no-compile", *links, requirement], folder)

    def run(self, *arguments: str, **environment: str) -> str:
        """The output of this environment's Python. It sees neither the checkout nor the user's settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return _output([str(self.python), "-I", *arguments], self._folder, kept | environment)

    def installed(self) -> set[str]:
        """The names of our packages that are installed."""
        found = (each.metadata["Name"] for each in metadata.distributions(path=[str(self.site)]))
        return {name for name in found if name.startswith("threadmark")}

    def _link(self, distribution: metadata.Distribution) -> None:
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.exists():
                target = self.site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(source)


def _needed(requirement: str, built: Mapping[str, Built]) -> set[str]:
    """The foreign packages among all that a requirement leads to."""
    seen: set[tuple[str, str]] = set()
    waiting = [requirement]
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                waiting.extend(_requirements(name, extra, built))
    return {name for name, _ in seen} - built.keys()


def _requirements(name: str, extra: str, built: Mapping[str, Built]) -> Iterator[str]:
    ours = built.get(name)
    texts = ours.metadata.get_all("Requires-Dist", []) if ours else metadata.requires(name) or []
    for text in texts:
        marker = Requirement(text).marker
        if marker is None or marker.evaluate({"extra": extra}):
            yield text


def _output(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
