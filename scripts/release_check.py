"""Builds the files of a release into dist/, and tries them as its users would: `make release-check`, on Linux.

It makes the sdists, and the wheels from the sdists; one compiled wheel for each Python at hand (PYTHONS names others),
which auditwheel repairs; and a list of all parts (SBOM). Then it makes empty environments, into which pip installs from
folders alone, without an index and without a compiler: one for each Python with the compiled wheel, and one for the
newest with the wheel that has no compiled code. There the README's examples, the command, the page and a sample of the
behaviour suite run (scripts/smoke.py). After everything is uninstalled, no file may be left. The table at the end has
all steps.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
LIBS = sorted(path.parent for path in ROOT.glob("libs/*/pyproject.toml"))
SPEED = ROOT / "libs" / "speed"
TOOLS = ROOT / "scripts" / "release-requirements.txt"
EVERYTHING = ("threadmark[all]", "threadmark-conformance")
OLDEST, NEWEST = 11, 14
"""The minor versions of Python 3 that are looked for."""
SHARED_FIELDS = ("Version", "Requires-Python", "License-Expression", "License-File", "Author", "Project-URL")
"""Fields of the metadata that are the same in all packages."""


class CheckFailedError(Exception):
    """Something is not as a release must be."""


class Python(NamedTuple):
    """An interpreter at hand."""

    program: str
    version: str
    """Such as 3.12.1."""


class Table:
    """The steps that were tried, with the result and the seconds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, float]] = []

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Try something. The block appends its result to the list."""
        say(f"{name} ...")
        begin, said = time.monotonic(), list[str]()
        try:
            yield said
        except BaseException:
            self.rows.append((name, "FAILED", time.monotonic() - begin))
            raise
        self.rows.append((name, "; ".join(said) or "ok", time.monotonic() - begin))

    def __str__(self) -> str:
        width = max(len(name) for name, _, _ in self.rows)
        return "\n".join(f"{name:<{width}}  {seconds:5.0f} s  {result}" for name, result, seconds in self.rows)


def main() -> None:
    """Build and try everything, and print the table."""
    table = Table()
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="release-check-") as folder:
            check_release(table, Path(folder))
    except CheckFailedError as failed:
        sys.exit(f"\n{table}\n\nrelease-check failed: {failed}")
    say(f"\n{table}\n")
    for path in sorted(DIST.iterdir()):
        say(f"{path.stat().st_size / 1000:9,.1f} kB  {path.name}")
    say(f"\nrelease-check passed in {time.monotonic() - begin:.0f} seconds; dist/ is complete for this machine.")


def check_release(table: Table, work: Path) -> None:
    """Do all steps, in a folder that is removed afterwards."""
    with table.step("version, pins, changelog") as said:
        version = checked_version()
        said.append(version)
    with table.step("Pythons at hand") as said:
        pythons = found_pythons()
        said.append(", ".join(python.version for python in pythons))
    with table.step("sdists and wheels without compiled code") as said:
        build_all()
        said.append(f"{len(list(DIST.glob('*.tar.gz')))} and {len(list(DIST.glob('*.whl')))}")
    universal = work / "universal"
    shutil.copytree(DIST, universal, ignore=shutil.ignore_patterns("*.tar.gz"))
    for python in pythons:
        with table.step(f"compiled wheel for Python {python.version}") as said:
            said.append(build_compiled(python, work).name.split("-", 2)[2])
    with table.step("metadata of all packages compared") as said:
        said.append(compare_metadata(version))
    with table.step("twine check --strict"):
        run([*tool("twine"), "check", "--strict", *map(str, package_files())])
    for python in pythons:
        with table.step(f"dependencies for Python {python.version}, prefetched") as said:
            said.append(f"{prefetch(python, work)} wheels")
    for python in pythons:
        with table.step(f"Python {python.version} with its compiled wheel") as said:
            said.extend(try_installed(python, "compiled", DIST, work, version))
    newest = pythons[-1]
    with table.step(f"Python {newest.version} without compiled code") as said:
        said.extend(try_installed(newest, "Python", universal, work, version))


def checked_version() -> str:
    """Return the version, which every pin and the changelog have."""
    text = (ROOT / "libs/core/src/threadmark/__init__.py").read_text(encoding="utf-8")
    version = str(re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0])
    for lib in LIBS:
        project = tomllib.loads((lib / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = project.get("optional-dependencies", {}).values()
        for needs in map(Requirement, [*project["dependencies"], *(each for extra in extras for each in extra)]):
            if needs.name.startswith("threadmark") and str(needs.specifier) not in (f"=={version}", ""):
                raise CheckFailedError(f"{lib.name} asks for {needs}, not for {version}: run scripts/set-version")
    run([sys.executable, str(ROOT / "scripts" / "changelog-section"), version])
    return version


def found_pythons() -> list[Python]:
    """Return each CPython at hand, or those that PYTHONS names: on PATH, and of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    wanted = os.environ.get("PYTHONS", "").split() or [
        each
        for minor in range(OLDEST, NEWEST + 1)
        for each in (f"python3.{minor}", *map(str, sorted(versions.glob(f"3.{minor}.*/bin/python"))))
    ]
    question = "import ensurepip, platform, sys; print(platform.python_implementation(), platform.python_version())"
    found: dict[str, Python] = {}
    for program in wanted:
        place = shutil.which(program)
        asked = place and subprocess.run([place, "-c", question], capture_output=True, text=True, check=False)
        if asked and asked.returncode == 0:
            implementation, version = asked.stdout.split()
            if implementation == "CPython":
                found.setdefault(version.rpartition(".")[0], Python(str(place), version))
    if not found:
        raise CheckFailedError(f"there is no CPython 3.{OLDEST} to 3.{NEWEST} here: name some, PYTHONS='python3.11'")
    return list(found.values())


def build_all() -> None:
    """Build each sdist from the checkout, and from it a wheel, for which nothing is compiled."""
    shutil.rmtree(DIST, ignore_errors=True)
    for lib in LIBS:
        command = [*tool("build"), "--no-isolation", "--outdir", str(DIST), str(lib)]
        run(command, environment={**os.environ, "THREADMARK_SPEED": "pure"})


def build_compiled(python: Python, work: Path) -> Path:
    """Build the compiled wheel from the sdist, and repair it, so that it needs nothing of this machine but glibc."""
    (sdist,) = DIST.glob("threadmark_speed-*.tar.gz")
    source, built = work / "source", work / f"built-{python.version}"
    if not source.exists():
        with tarfile.open(sdist) as archive:
            archive.extractall(source, filter="data")
    program = environment_of(python, work / f"build-{python.version}")
    pip = [program, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--constraint", str(TOOLS), "hatchling", "cython", "setuptools"])
    command = [*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(built)]
    (unpacked,) = source.iterdir()
    run([*command, str(unpacked)], environment={**os.environ, "THREADMARK_SPEED": "compiled"})
    (wheel,) = built.iterdir()
    before = set(DIST.iterdir())
    with_patchelf = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run([*tool("auditwheel"), "repair", "--strip", "--wheel-dir", str(DIST), str(wheel)], environment=with_patchelf)
    (repaired,) = set(DIST.iterdir()) - before
    return repaired


def compare_metadata(version: str) -> str:
    """Fail if packages differ in their common metadata, or files of one package in anything."""
    packages: dict[str, list[tuple[str, Message]]] = {}
    for path in package_files():
        described = metadata_of(path)
        packages.setdefault(described["Name"], []).append((path.name, described))
    shared = set()
    for name, files in packages.items():
        if len({described.as_string() for _, described in files}) != 1:
            raise CheckFailedError(f"the files of {name} have different metadata: {[file for file, _ in files]}")
        described = files[0][1]
        classifiers = [each for each in described.get_all("Classifier", []) if re.search(r"Status|Python :: 3", each)]
        shared.add((*(tuple(described.get_all(field, [])) for field in SHARED_FIELDS), tuple(classifiers)))
    if len(packages) != len(LIBS) or len(shared) != 1 or shared.pop()[0] != (version,):
        raise CheckFailedError(f"the packages differ in {', '.join(SHARED_FIELDS)} or classifiers: {sorted(shared)}")
    for wheel in DIST.glob("threadmark_speed-*.whl"):
        check_compiled(wheel)
    return f"{len(packages)} packages, {len(package_files())} files"


def check_compiled(wheel: Path) -> None:
    """Fail if a wheel has other modules than it should: all if it is for a platform, none if it is for every one."""
    with ZipFile(wheel) as archive:
        found = sorted(Path(name).name.partition(".")[0] for name in archive.namelist() if name.endswith(".so"))
    modules = [] if wheel.name.endswith("-any.whl") else sorted(path.stem for path in SPEED.glob("src/*/*.pyx"))
    if found != modules:
        raise CheckFailedError(f"{wheel.name} has the modules {found}, not {modules}")
    if modules and not any(tag.platform.startswith("manylinux") for tag in parse_wheel_filename(wheel.name)[3]):
        raise CheckFailedError(f"{wheel.name} is for this machine only")


def package_files() -> list[Path]:
    """Return the sdists and wheels."""
    return sorted([*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")])


def metadata_of(path: Path) -> Message:
    """Return the metadata of a wheel or an sdist."""
    if path.suffix == ".whl":
        with ZipFile(path) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return BytesParser().parsebytes(archive.read(name))
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        return BytesParser().parsebytes(file.read() if file else b"")


def prefetch(python: Python, work: Path) -> int:
    """Download the dependencies of the packages, as wheels for this Python. Returns their number."""
    folder = work / f"dependencies-{python.version}"
    pip = [program_of(work / f"build-{python.version}"), "-m", "pip", "--disable-pip-version-check"]
    pinned = ["--constraint", str(ROOT / "constraints.txt"), "--only-binary", ":all:"]
    run([*pip, "download", "--quiet", *pinned, "--find-links", str(DIST), "--dest", str(folder), *EVERYTHING])
    for ours in folder.glob("threadmark*"):
        ours.unlink()
    return len(list(folder.iterdir()))


def try_installed(python: Python, code: str, ours: Path, work: Path, version: str) -> Iterator[str]:
    """Install into an empty environment, use it, and remove everything again."""
    folder = work / f"{code}-{python.version}"
    place = Path(shutil.copytree(ROOT / "examples", folder / "examples")).parent
    program = environment_of(python, folder / "environment")
    before = files_of(folder / "environment")
    bare = bare_environment(folder)
    links = ["--find-links", str(ours), "--find-links", str(work / f"dependencies-{python.version}")]
    pip = [program, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    smoke = [program, "-I", str(ROOT / "scripts" / "smoke.py"), "--expect", code]

    for wanted in (["threadmark", "threadmark-sqlite"], ["threadmark[all]"], EVERYTHING):
        printed = run([*pip, "install", "--no-compile", "--no-index", *links, *wanted], folder=place, environment=bare)
        if "Building wheel" in printed:
            raise CheckFailedError(f"pip built something, instead of taking wheels:\n{printed}")
        if wanted == ["threadmark", "threadmark-sqlite"]:
            run(smoke, folder=place, environment=bare)
        elif wanted == ["threadmark[all]"]:
            write_parts(program, version)
    installed = run([*pip, "list", "--format", "freeze"], folder=place, environment=bare).split()
    yield f"{len(installed)} packages installed"

    for example in readme_examples():
        run([program, "-I", "-c", example], folder=place, environment=bare)
    run([program, "examples/demo_database.py", "demo.db"], folder=place, environment=bare)
    said = run([*smoke, "--demo", "demo.db"], folder=place, environment=bare).splitlines()
    yield f"README's {len(readme_examples())} examples"
    yield from said[1:]

    names = [line.partition("=")[0] for line in installed if not re.match("(pip|setuptools)==", line)]
    run([*pip, "uninstall", "--quiet", "--yes", *names], folder=place, environment=bare)
    left = files_of(folder / "environment") - before
    if left:
        raise CheckFailedError(f"uninstalling left {len(left)} files, such as {sorted(left)[:5]}")
    yield "nothing left"


def write_parts(program: str, version: str) -> None:
    """Write the list of the packages of `threadmark[all]`, with licences and dependencies (CycloneDX)."""
    sbom = DIST / f"threadmark-{version}.cdx.json"
    if sbom.exists():
        return
    project = ["--pyproject", str(ROOT / "libs/core/pyproject.toml"), "--mc-type", "library"]
    parts = json.loads(run([*tool("cyclonedx_py"), "environment", "--output-reproducible", *project, program]))
    parts["metadata"]["component"]["version"] = version
    installers = {each["bom-ref"] for each in parts["components"] if each["name"] in ("pip", "setuptools")}
    parts["components"] = [each for each in parts["components"] if each["bom-ref"] not in installers]
    parts["dependencies"] = [each for each in parts["dependencies"] if each["ref"] not in installers]
    ours = {lib.name for lib in LIBS if lib.name not in ("core", "conformance")}
    missing = ours - {each["name"].removeprefix("threadmark-") for each in parts["components"]}
    if missing:
        raise CheckFailedError(f"{sbom.name} does not name {sorted(missing)}")
    sbom.write_text(json.dumps(parts, indent=2), encoding="utf-8")


def readme_examples() -> list[str]:
    """Return the examples of README.md. Later ones read the data of the first one."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def environment_of(python: Python, folder: Path) -> str:
    """Make an empty virtual environment. Returns its Python."""
    run([python.program, "-m", "venv", str(folder)])
    return program_of(folder)


def program_of(environment: Path) -> str:
    """Return the Python of a virtual environment."""
    return str(environment / "bin" / "python")


def bare_environment(folder: Path) -> dict[str, str]:
    """Return the variables of a user who has no compiler, no index, and no settings of pip."""
    nothing = folder / "nothing"
    nothing.mkdir()
    absent = dict.fromkeys(("CC", "CXX"), "no-such-compiler")
    return {"PATH": str(nothing), "HOME": str(nothing), "PIP_CONFIG_FILE": os.devnull, "LANG": "C.UTF-8", **absent}


def files_of(environment: Path) -> set[str]:
    """Return the files of an environment, without those of pip and setuptools, which were there and get compiled."""
    paths = (path.relative_to(environment) for path in environment.rglob("*") if not path.is_dir())
    return {str(path) for path in paths if not {"pip", "setuptools", "_distutils_hack"} & set(path.parts)}


def tool(name: str) -> list[str]:
    """Return the command of a tool of this environment."""
    return [sys.executable, "-m", name]


def run(command: list[str], *, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Return the output of a command. Fail with its output and its errors."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckFailedError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


if __name__ == "__main__":
    main()
