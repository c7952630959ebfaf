"""The house rules that a linter cannot check: layers, sync and async methods, places of SQL, lengths, errors."""

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import threadmark
from threadmark import Saver, ThreadmarkError, backends, errors
from threadmark.saver import kit
from threadmark_conformance.apis import blocking_class

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path for path in ROOT.glob("libs/*/src/**/*.py"))
CORE = ROOT / "libs" / "core" / "src" / "threadmark"

LAYERS = (
    "errors",
    "program",
    "runtime",
    "ids",
    "names",
    "model",
    "config",
    "metadata",
    "serde",
    "format",
    "keyring_file",
    "sealing",
    "store",
    "saver",
    "memory",
    "retention",
    "urls",
    "bounded_sqlite",  # this and the next are for rooms and packages; core itself does not use them
    "around",
    "types",
    "backends",
)
"""The parts of core; each may import those before it."""

ROOMS = (
    *("leases", "travel", "operating", "encryption", "interfaces", "replication", "caching", "persistent", "arrays"),
    *("transactions", "effects"),
)
"""The folders above core, each of which can be deleted (`tests/test_rooms.py`). None imports another one."""

SURFACE = ("__init__.py", "types.py", "backends.py", "saver/saver.py", "saver/protocol.py", "memory/saver.py")
"""The modules of core that name rooms, a line for each: they put together the public interface."""

OPEN = (
    *(
        "errors",
        "ids",
        "names",
        "model",
        "config",
        "metadata",
        "runtime",
        "program",
        "retention",
        "urls",
        "bounded_sqlite",
    ),
    *(
        "store.contract",
        "store.threads",
        "store.replica",
        "store.forwarding",
        "sealing",
        "format.incarnations",
    ),
    *("serde", "bounded_sqlite", "memory.driver", "memory.tables", "saver", "saver.kit", "around"),
)
"""The modules of core that rooms may import: of `saver` the package itself, not its other modules."""

Check = Callable[[Path], None]

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("libs/*/*.md")]
LONGEST_LINE = 120
UNBREAKABLE = r"\||#|\s*(?:[*-] |\d+\. )?\S+$"
"""How lines of Markdown begin that cannot be broken: rows of tables, headings, and those of a single word or link."""

LONGEST = 600
"""Lines of a module that reads in one go."""

ANY_LENGTH = {
    "saver/saver.py": "every method, in both APIs",
    "saver/protocol.py": "every signature; a tool writes it",
}
"""Modules that may be as long as their content, and the reasons."""

STATEMENTS = (
    r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|BEGIN|SAVEPOINT|RELEASE|WITH|LOCK|SET|LISTEN)\s+[A-Z\d\"*_]",
    r"\s*(PRAGMA|DROP \w+|ALTER \w+|SAVEPOINT|RELEASE)\s+\w",
    r"\s*(BEGIN|COMMIT|ROLLBACK)\s*;?\s*$",
    r"(?s).*\b(SELECT\b.*\bFROM|INSERT\b.*\bINTO|DELETE FROM|UPDATE\b.*\bSET|CREATE (UNIQUE )?(TABLE|INDEX))\b",
)
SQL_MODULES = {"sql.py", "migrations.py"}
SQL_OF_TABLES = {"sqlite.py", "postgres.py"}
"""Modules of threadmark-store for one database: its statements, and the programs that use them."""
SQL_PACKAGE = "sql"
"""The places of a backend's statements."""

PACKAGE_OF = {"core": "threadmark", **{name: f"threadmark_{name}" for name in ("sqlite", "postgres", "redis")}}
BACKENDS = {package for package in PACKAGE_OF.values() if package != "threadmark"}
SUITE = "threadmark_conformance"
OUTSIDE = {"threadmark.bounded_sqlite": "it imports sqlite3, which backends for other databases need not load"}
"""The modules of core that backends import besides `threadmark.backends`, and why it is not there."""

OF_SHAPES = {
    "Beginning": "Change.beginning",
    "Cache": "the protocol of a cache",
    "Follows": "Change.follows",
    "Refusal": "Added.refused",
    "mark_of": "RowMarks, where no statement makes the marks",
}
"""Names that authors of backends need and ours do not import, with the shape that it belongs to."""

METHODS = {name: member for each in Saver.__mro__[:-1] for name, member in vars(each).items()}
ASYNC_METHODS = sorted(name for name in METHODS if name.startswith("a") and hasattr(Saver, name[1:]))
ONLY_SYNC = {"for_owner", "get_next_version", "lease", "transaction", "with_serde", "within", "without_classes"}
"""Public methods that do no I/O, and so need no asyncio version."""


def _on_each(paths: Iterable[Path]) -> Callable[[Check], Callable[[str], None]]:
    """Make a test for each package of a check for each of its files. A test of its own takes longer than a check."""
    packages: dict[str, list[Path]] = {}
    for path in sorted(paths):
        packages.setdefault("/".join(path.relative_to(ROOT).parts[:2]), []).append(path)

    def tests_of(check: Check) -> Callable[[str], None]:
        @pytest.mark.parametrize("package", packages)
        def test(package: str) -> None:
            for path in packages[package]:
                check(path)

        return test

    return tests_of


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{_name(path)} imports relatively: write the whole name"
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _modules_imported(path: Path) -> set[str]:
    """The modules that a file names in imports, without the names that it takes from them."""
    nodes = list(ast.walk(_tree(path)))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return named | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def _part(module: str) -> str | None:
    """The part of core that a module belongs to."""
    first, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    return part if first == "threadmark" and part in {*LAYERS, *ROOMS} else None


def _texts(path: Path) -> Iterator[str]:
    """String constants, docstrings left out; of f-strings the constant beginning."""
    tree = _tree(path)
    docstrings = {
        id(node.value)
        for body in (getattr(each, "body", None) for each in ast.walk(tree))
        if isinstance(body, list)
        for node in body
        if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_every_part_of_core_has_a_layer() -> None:
    parts = {path.stem if path.is_file() else path.name for path in CORE.iterdir() if path.suffix in {".py", ""}}
    assert parts - {"__init__", "__pycache__"} == {*LAYERS, *ROOMS}


@_on_each(sorted(CORE.rglob("*.py")))
def test_imports_go_one_way(path: Path) -> None:
    place = path.relative_to(CORE)
    own = place.parts[0].removesuffix(".py")
    for module in _imports(path):
        assert module != "threadmark", f"{_name(path)} imports the whole package, which imports it"
        is_compiled = module.startswith("threadmark_speed")  # counterparts of core's own modules
        assert is_compiled or not module.startswith("threadmark_"), (
            f"{_name(path)}: core knows no backend, but imports {module}"
        )
        part = _part(module)
        if part in (None, own) or str(place) == "__init__.py":
            continue
        if own in ROOMS:
            assert part not in ROOMS, f"{_name(path)}: {own} must not import {module}, so that each can be deleted"
            assert _is_open(module), f"{_name(path)} imports {module}: what rooms need of core is in saver/kit.py"
        elif part in ROOMS:
            assert str(place) in SURFACE, f"{_name(path)} imports {module}: core imports no room"
        else:
            assert LAYERS.index(part) < LAYERS.index(own), f"{_name(path)}: {own} must not import {module}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {_dotted(path): path for path in MODULES}
    _expect_no_circle({name: _imports(path) for name, path in known.items()}, known)


def test_the_search_for_circles_finds_them() -> None:
    known = {_dotted(path): path for path in MODULES}
    imports = {
        "threadmark.errors": ["threadmark.saver.Saver"],
        "threadmark.saver.saver": ["threadmark.errors.ConfigError"],
    }
    with pytest.raises(AssertionError, match=r"threadmark\.errors.*threadmark\.saver\.saver"):
        _expect_no_circle(imports, known)


def _expect_no_circle(imports: Mapping[str, Iterable[str]], known: Mapping[str, Path]) -> None:
    """Check imports anywhere in a file, also those for type checkers only. Faces of packages only hand names on."""
    graph = {
        name: {_defining(each, known) for each in imported} - {None, name}
        for name, imported in imports.items()
        if known[name].name != "__init__.py"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " <- ".join(error.args[1])
        raise AssertionError(f"these modules import each other, so none can be read first: {circle}") from None


def _defining(imported: str, known: Mapping[str, Path]) -> str | None:
    """The module that an imported name belongs to, also if its package hands it on. None for other packages."""
    package, _, name = imported.rpartition(".")
    if imported in known and known[imported].name != "__init__.py":
        return imported
    if package not in known:
        return None
    if known[package].name != "__init__.py":
        return package
    for node in ast.walk(_tree(known[package])):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return _defining(f"{node.module}.{name}", known)
    return None


def _dotted(path: Path) -> str:
    """The name by which a module is imported."""
    _, _, _, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _is_open(module: str) -> bool:
    """Whether rooms may import a module of core, or a name that a module has."""
    name = module.removeprefix("threadmark.")
    if name.startswith("saver"):
        place = CORE.joinpath(*name.split("."))
        is_module = place.is_dir() or place.with_suffix(".py").is_file()
        return name in OPEN or (not is_module and name.rpartition(".")[0] in OPEN)
    return any(name == each or name.startswith(f"{each}.") for each in OPEN)


def test_the_module_for_backends_has_only_what_they_use() -> None:
    folders = [ROOT / "libs" / name / "src" for name in ("sqlite", "postgres", "redis")]
    imports = {module for folder in folders for path in folder.rglob("*.py") for module in _imports(path)}
    unused = {name for name in backends.__all__ if f"threadmark.backends.{name}" not in imports}
    assert unused == set(OF_SHAPES)


def test_the_kit_has_only_what_rooms_use() -> None:
    imports = {module for room in ROOMS for path in (CORE / room).rglob("*.py") for module in _imports(path)}
    assert {name for name in kit.__all__ if f"threadmark.saver.kit.{name}" not in imports} == set()


@_on_each([path for path in MODULES if CORE not in path.parents])
def test_backends_know_core_and_not_each_other(path: Path) -> None:
    own = path.relative_to(ROOT).parts[3]
    if own in BACKENDS:
        of_core = {module for module in _modules_imported(path) if module.partition(".")[0] == "threadmark"}
        assert of_core <= {"threadmark.backends", *OUTSIDE}, (
            f"{_name(path)}: what backends need of core is in backends.py"
        )
    for module in _imports(path):
        package = module.partition(".")[0]
        assert not (package in BACKENDS and package != own and own in BACKENDS), f"{_name(path)} imports {module}"
        assert package != SUITE or own == SUITE, f"{_name(path)} imports the suite, which needs pytest"
        assert not (own == SUITE and package in BACKENDS), f"{_name(path)}: the suite is any backend's: {module}"


@_on_each(MODULES)
def test_sql_stands_where_sql_is_read(path: Path) -> None:
    is_of_table = "threadmark_store" in path.parts and path.name in SQL_OF_TABLES
    if path.name not in SQL_MODULES and path.parent.name != SQL_PACKAGE and not is_of_table:
        found = [text for text in _texts(path) if _is_sql(text)]
        places = " or ".join([*sorted(SQL_MODULES), f"{SQL_PACKAGE}/"])
        assert found == [], f"{_name(path)} has SQL; it belongs in {places}"


def _is_sql(text: str) -> bool:
    return any(re.match(statement, text) for statement in STATEMENTS)


def test_the_search_for_sql_finds_it() -> None:
    statements = "SELECT 1|PRAGMA user_version|COMMIT|\n  INSERT OR IGNORE INTO x|DELETE FROM x|BEGIN IMMEDIATE|begin"
    assert [_is_sql(text) for text in statements.split("|")] == [True] * 6 + [False]
    assert not any(map(_is_sql, ("Select a backend", "SET", "with it", "an UPDATE that is not ours", "CREATE")))
    assert any(_is_sql(text) for path in MODULES if path.parent.name == SQL_PACKAGE for text in _texts(path))


@_on_each(MODULES)
def test_modules_can_be_read_at_once_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text()
    is_long = len(text.splitlines()) > LONGEST and not _name(path).endswith(tuple(ANY_LENGTH))
    assert not is_long, f"{_name(path)} is too long to be read at once"
    assert ast.get_docstring(_tree(path)), f"{_name(path)} does not say what it is for"


def _too_long(text: str) -> list[str]:
    """The lines of a page of Markdown that are longer than they need be. Code blocks are left out."""
    prose = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in prose.splitlines() if len(line) > LONGEST_LINE and not re.match(UNBREAKABLE, line)]


@_on_each(sorted(PAGES))
def test_lines_of_pages_are_as_short_as_those_of_code(path: Path) -> None:
    assert _too_long(path.read_text(encoding="utf-8")) == [], _name(path)


def test_the_search_for_long_lines_finds_them() -> None:
    prose, word = "words " * 30, "x" * 130
    fine = f"# {prose}\n| {prose} |\n```\n{prose}\n```\n* [{word}]({word})\n{word}\n"
    assert _too_long(f"{prose}\n{fine}* {prose}\n  ```sh\n  {prose}\n  ```\n{prose}") == [prose, f"* {prose}", prose]


@pytest.mark.parametrize("name", ["utils", "util", "common", "helpers", "helper", "misc"])
def test_names_come_from_the_domain(name: str) -> None:
    assert [_name(path) for path in MODULES if path.stem.strip("_") == name] == []


def test_every_public_method_has_an_asyncio_version() -> None:
    public = {name for name, member in METHODS.items() if inspect.isfunction(member) and not name.startswith("_")}
    async_methods = set(ASYNC_METHODS)
    assert public - async_methods - {name[1:] for name in async_methods} == ONLY_SYNC
    contract = "get get_tuple list put put_writes delete_thread delete_for_runs copy_thread prune"
    assert {f"a{name}" for name in [*contract.split(), "get_delta_channel_history", "close"]} <= async_methods


@pytest.mark.parametrize("name", ASYNC_METHODS)
def test_both_versions_of_a_method_have_one_signature(name: str) -> None:
    blocking, asyncio = (inspect.signature(getattr(Saver, each)) for each in (name[1:], name))
    # Parameters compare by name, kind, default and annotation.
    assert list(asyncio.parameters.values()) == list(blocking.parameters.values())
    returns = str(blocking.return_annotation)
    expected = returns.replace("Iterator", "AsyncIterator") if name == "alist" else returns
    assert str(asyncio.return_annotation) == expected


@pytest.mark.parametrize("name", ASYNC_METHODS)
def test_an_asyncio_method_refers_to_the_blocking_one(name: str) -> None:
    found = inspect.getdoc(getattr(Saver, name)) or ""
    assert found.startswith(f"Like `{name[1:]}`, for asyncio.")


def test_the_suite_adapts_every_async_method_to_the_blocking_api() -> None:
    adapted = sorted(name for name in vars(blocking_class(Saver)) if not name.startswith("_"))
    assert adapted == [*ASYNC_METHODS, "lease"]  # whose block is entered with either API


def test_every_error_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    exported = {name for name in threadmark.__all__ if _is_error(getattr(threadmark, name))}
    table = text.partition("| error | cause | remedy | retry |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", table, re.MULTILINE)
    assert sorted(row[0] for row in rows) == sorted(exported)
    for name, cause, remedy, _ in rows:
        assert cause.endswith("."), f"{name}: give the cause"
        assert remedy.endswith("."), f"{name}: give the remedy"
    sections = re.findall(r"^## `(\w+)`$", text, re.MULTILINE)
    assert sections == [name for name, *_ in rows if name in sections], "sections stand in the order of the table"


def test_every_error_is_exported_and_has_one_base() -> None:
    for name, member in vars(errors).items():
        if _is_error(member) and member.__module__ == errors.__name__ and name != "LocatedError":
            assert name in threadmark.__all__
    assert issubclass(errors.ConfigError, ValueError)


def _is_error(member: object) -> bool:
    return isinstance(member, type) and issubclass(member, ThreadmarkError)
