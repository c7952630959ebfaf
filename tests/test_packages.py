"""Each package is built and installed by itself, works as its README says, and names its author and requirements."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import EntryPoint
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import threadmark
from clean_environment import Built, CleanEnvironment, build, build_speed
from postgres.cluster import shared
from redis_backend.processes import DURABLE, RedisProcess
from threadmark_cli.diagnosis import PACKAGES

ROOT = Path(__file__).parent.parent
LIBS = sorted(path.parent for path in ROOT.glob("libs/*/pyproject.toml"))
PROJECT = "https://github.com/threadmark/threadmark"

UNCAPPED = {
    "cryptography": "its first number grows several times a year, and AES-GCM stays",
    "pytest": "the suite uses what every release of it has, and a limit would hold up a backend's own tests",
    "rich": "the commands use its styles, tables and progress bars only, as every release has them",
}
"""Dependencies that have no upper limit, and why."""


def _name(lib: Path) -> str:
    return "threadmark" if lib.name == "core" else f"threadmark-{lib.name}"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Every package, by its name: built once for all processes of a run, whose temporary folders stand side by side."""
    workers = "PYTEST_XDIST_WORKER" in os.environ
    folder = (tmp_path_factory.getbasetemp().parent if workers else tmp_path_factory.getbasetemp()) / "built"
    return {_name(each.lib): each for each in build(LIBS, folder)}


@pytest.fixture(params=LIBS, ids=lambda lib: lib.name)
def package(request: pytest.FixtureRequest, built: dict[str, Built]) -> Built:
    """Each package in turn."""
    return built[_name(request.param)]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _installs(block: str) -> tuple[set[str], str]:
    """The packages that a block of a page installs from a checkout (the folders, extras left out), and by name."""
    from_checkout, by_name = block.strip().splitlines()
    folders = re.findall(r"\./libs/(\w+)", from_checkout)
    assert re.match(r'pip install "?./libs/core', from_checkout)
    found = re.match(r'pip install "?([\w\[\],-]+)"?\s+# once ', by_name)
    assert found, f"{by_name!r} should install by name"
    return {_name(ROOT / "libs" / folder) for folder in folders}, found[1]


def test_a_package_has_all_its_files(package: Built) -> None:
    (source,) = (package.lib / "src").iterdir()
    paths = [path for path in source.rglob("*") if "__pycache__" not in path.parts and path.suffix != ".so"]
    expected = {str(path.relative_to(source.parent)) for path in paths}
    with ZipFile(package.wheel) as wheel, tarfile.open(package.sdist) as sdist:
        in_wheel, in_sdist = set(wheel.namelist()), {name.partition("/")[2] for name in sdist.getnames()}
        (licence,) = (name for name in in_wheel if name.endswith("/licenses/LICENSE"))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    files = {name for name in expected if (source.parent / name).is_file()}
    assert f"{source.name}/py.typed" in files
    installed = {name for name in files if not name.endswith((".pyx", ".pxd"))}
    assert {name for name in in_wheel if ".dist-info/" not in name} == installed
    assert in_sdist >= {f"src/{name}" for name in files} | {"LICENSE", "README.md", "PKG-INFO", "pyproject.toml"}


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.name)
def test_a_package_is_named_where_it_is_looked_for(lib: Path) -> None:
    assert f"libs/{lib.name} " in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert f'"libs/{lib.name}/src"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8"), "mypy_path"
    installs = [ROOT / name for name in ("requirements-dev.txt", "scripts/make-venv")]  # the second if it compiles
    assert any(re.search(rf"\./libs/{lib.name}\b", path.read_text(encoding="utf-8")) for path in installs)


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.name)
def test_a_backend_is_an_extra_and_has_its_options_told(lib: Path) -> None:
    entries = tomllib.loads((lib / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("entry-points", {})
    savers = entries.get("threadmark.savers", {})
    if lib.name == "core" or not savers:
        return
    core = tomllib.loads((ROOT / "libs/core/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lib.name in core["optional-dependencies"]
    assert _name(lib) in PACKAGES, "`threadmark doctor` does not look for it"
    options = (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for entry in (EntryPoint(scheme, target, "threadmark.savers") for scheme, target in savers.items()):
        assert entry.module == f"threadmark_{lib.name}.saver"
        name = inspect.signature(entry.load()).return_annotation.__name__
        assert name in options, f"docs/reference/options.md has nothing of {name}"
        assert name in readme, f"the README does not name {name}"


def test_a_package_says_what_it_is(package: Built) -> None:
    says = package.metadata
    assert says["Name"] == _name(package.lib)
    assert says["Version"] == threadmark.__version__
    assert says["Requires-Python"] == ">=3.11"
    assert says["License-Expression"] == "MIT"
    assert says.get_all("License-File") == ["LICENSE"]
    assert says["Author"] == "The Threadmark developers"
    assert says["Summary"]
    assert says["Keywords"]
    assert says["Description-Content-Type"] == "text/markdown"
    assert says.get_payload() == (package.lib / "README.md").read_text(encoding="utf-8")
    urls = dict(line.split(", ") for line in says.get_all("Project-URL", []))
    assert urls["Homepage"] == PROJECT
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(PROJECT) for url in urls.values())
    classifiers = says.get_all("Classifier", [])
    languages = {each for each in classifiers if each.startswith("Programming Language :: Python")}
    versions = {"3", "3 :: Only", *(f"3.{minor}" for minor in range(11, 15))}
    kinds = {"Implementation :: CPython"} if package.lib.name == "speed" else set()
    assert languages == {f"Programming Language :: Python :: {each}" for each in versions | kinds}
    assert {"Development Status :: 4 - Beta", "Typing :: Typed"} < set(classifiers)


def test_what_a_package_needs_has_limits(package: Built) -> None:
    for text in package.metadata.get_all("Requires-Dist", []):
        needs = Requirement(text)
        operators = {each.operator for each in needs.specifier}
        if needs.name.startswith("threadmark"):
            assert needs.specifier == SpecifierSet(f"=={threadmark.__version__}"), "run scripts/set-version"
        elif needs.name in UNCAPPED:
            assert operators == {">="}
        else:
            assert operators == {">=", "<"}, f"{text} has no upper limit"


def test_the_version_of_a_release_is_set_in_core_and_in_all_pins(tmp_path: Path) -> None:
    init = "libs/core/src/threadmark/__init__.py"
    for path in ("scripts/set-version", init, *(str(lib.relative_to(ROOT) / "pyproject.toml") for lib in LIBS)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    subprocess.run([sys.executable, tmp_path / "scripts/set-version", "7.8.9rc1"], check=True, capture_output=True)
    assert '__version__ = "7.8.9rc1"' in (tmp_path / init).read_text(encoding="utf-8")
    pins = [pin for path in tmp_path.glob("libs/*/pyproject.toml") for pin in _pins(path)]
    assert len(pins) > len(LIBS)
    assert set(pins) == {"==7.8.9rc1"}


def _pins(path: Path) -> Iterator[str]:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    for needs in map(Requirement, [*project["dependencies"], *(each for extra in extras.values() for each in extra)]):
        if needs.name.startswith("threadmark") and needs.name != project["name"]:
            yield str(needs.specifier)


def test_the_extra_that_is_everything_names_every_other(built: dict[str, Built]) -> None:
    says = built["threadmark"].metadata
    brought: dict[str, set[str]] = {extra: set() for extra in says.get_all("Provides-Extra", [])}
    for needs in map(Requirement, says.get_all("Requires-Dist", [])):
        for extra, names in brought.items():
            if needs.marker and needs.marker.evaluate({"extra": extra}) and "extra" in str(needs.marker):
                names.add(f"{needs.name}{sorted(needs.extras)}{needs.specifier}")
    everything = brought.pop("all")
    assert all(brought.values())
    assert everything == set().union(*brought.values())


@pytest.fixture
def one_module(built: dict[str, Built], tmp_path: Path) -> Path:
    """The sources of the compiled part, unpacked, with one module to compile."""
    source = Path(shutil.copytree(built["threadmark-speed"].unpacked, tmp_path / "source"))
    for path in source.glob("src/threadmark_speed/*.p[yx][xd]"):
        if path.stem != "seam":
            path.unlink()
    return source


def test_the_compiled_part_is_a_wheel_for_this_platform(one_module: Path, tmp_path: Path) -> None:
    wheel = build_speed(one_module, tmp_path, THREADMARK_SPEED="compiled")
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version, python) == ("threadmark_speed", threadmark.__version__, abi)
    assert platform != "any"
    with ZipFile(wheel) as archive:
        (library,) = (name for name in archive.namelist() if name.endswith(EXTENSION_SUFFIXES[0]))
    assert library == f"threadmark_speed/seam{EXTENSION_SUFFIXES[0]}"


NO_COMPILER = {"CC": "no-such-compiler", "CXX": "no-such-compiler"}


def test_without_a_compiler_the_build_leaves_the_compiled_code_out(one_module: Path, tmp_path: Path) -> None:
    wheel = build_speed(one_module, tmp_path, THREADMARK_SPEED="", **NO_COMPILER)
    assert wheel.name.endswith("-py3-none-any.whl")
    with ZipFile(wheel) as archive:
        assert "threadmark_speed/__init__.py" in archive.namelist()
        assert not [name for name in archive.namelist() if name.endswith((".so", ".pyd", ".c"))]


def test_without_a_compiler_asking_for_compiled_code_fails(one_module: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no-such-compiler"):
        build_speed(one_module, tmp_path, THREADMARK_SPEED="compiled", **NO_COMPILER)


def test_another_word_for_the_build_is_a_mistake(one_module: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="must be compiled, pure or empty, not 'fast'"):
        build_speed(one_module, tmp_path, THREADMARK_SPEED="fast")


def test_a_package_works_alone_as_its_readme_says(package: Built, built: dict[str, Built], tmp_path: Path) -> None:
    readme = package.lib / "README.md"
    folders, requirement = _installs(_blocks(readme, "sh")[0])
    assert Requirement(requirement).name == ("threadmark" if package.lib.name == "speed" else _name(package.lib))
    clean = CleanEnvironment(tmp_path / "clean", requirement, built)
    assert clean.installed() == folders

    (example,) = _blocks(readme, "python")
    script = tmp_path / "test_example.py"
    script.write_text(example, encoding="utf-8")
    run = ["-m", "pytest", "-q", "-k", "prune"] if "def test_" in example else []
    with _server(package.lib.name) as environment:
        clean.run("-W", "error", *run, str(script), **environment)
    (source,) = (package.lib / "src").iterdir()
    assert clean.run("-c", f"import {source.name}; print({source.name}.__file__)").startswith(str(clean.site))


@contextmanager
def _server(backend: str) -> Iterator[dict[str, str]]:
    """The environment variables of a backend's example, while there is a server for it."""
    if backend == "postgres":
        yield {"DATABASE_URL": shared().database(f"readme{uuid.uuid4().hex}")}
    elif backend == "redis":
        with RedisProcess(DURABLE).start() as server:
            yield {"REDIS_URL": server.url}
    else:
        yield {}


def _installs_and_examples() -> list[tuple[str, list[str]]]:
    """The blocks of the README that install something, each with the examples between it and the next one."""
    blocks = re.findall(
        r"^```(sh|python)\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    found: list[tuple[str, list[str]]] = []
    for language, block in blocks:
        if language == "sh":
            found.append((block, []))
        else:
            found[-1][1].append(block)
    return found


@pytest.mark.parametrize(("install", "examples"), _installs_and_examples())
def test_the_readme_installs_what_its_examples_need(
    install: str, examples: list[str], built: dict[str, Built], tmp_path: Path
) -> None:
    folders, requirement = _installs(install)
    clean = CleanEnvironment(tmp_path / "clean", requirement, built)
    assert clean.installed() == folders
    assert examples
    for example in examples:
        clean.run("-W", "error", "-c", example)


def test_a_readme_links_to_pages_that_are_there(package: Built) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (package.lib / "README.md").read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert link.startswith(f"{PROJECT}/blob/main/"), f"{link} leads nowhere outside the repository"
        path, _, section = link.removeprefix(f"{PROJECT}/blob/main/").partition("#")
        assert (ROOT / path).exists(), link
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert not section or section in anchors, link
