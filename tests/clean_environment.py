"""The packages as a user gets them: built into sdists and wheels, and installed into an empty environment.

A clean environment holds only the packages' requirements. The dependencies come from the environment that the
tests run in, as links to its files, so that no network is needed.
"""

import fcntl
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_BUILD = "import sys; from hatchling import build; print(build.build_{kind}(sys.argv[1]))"


class Built(NamedTuple):
    """A package's sdist, and the wheel that was built from it."""

    lib: Path
    sdist: Path
    wheel: Path
    metadata: Message
    """The path of the wheel."""


def build(lib: Path, folder: Path) -> Built:
    """Build the sdist from the checkout, and the wheel from the sdist alone, unpacked elsewhere.

    Processes that share the folder build each package once, because one of them is compiled.
    """
    folder.mkdir(exist_ok=True)
    names = folder / f"{lib.name}.txt"
    with (folder / f"{lib.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not names.exists():
            sdist = _built("sdist", lib, folder)
            with tarfile.open(sdist) as archive:
                archive.extractall(folder / "unpacked", filter="data")
            wheel = _built("wheel", folder / "unpacked" / sdist.name.removesuffix(".tar.gz"), folder)
            names.write_text(f"{sdist.name}\n{wheel.name}")
    sdist, wheel = (folder / name for name in names.read_text().splitlines())
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Built(lib, sdist, wheel, BytesParser().parsebytes(archive.read(name)))


def _built(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-c", _BUILD.format(kind=kind), str(folder)]
    return folder / _output(command, source).splitlines()[-1]


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
