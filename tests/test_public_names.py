"""`dir` of a package lists its public names, and all of them are there after `import`."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import threadmark
from threadmark import Keyring, MemoryCache, MemorySaver, backends
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisCache, RedisSaver
from threadmark_sqlite import SqliteSaver

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("libs/*/src/*/__init__.py"))


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_shows_the_public_names(name: str) -> None:
    package = import_module(name)
    assert set(package.__all__) <= set(dir(package))
    assert all(hasattr(package, each) for each in dir(package))


def test_the_page_for_authors_of_backends_describes_every_name_of_the_module() -> None:
    text = (ROOT / "docs" / "reference" / "backend-contract.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text[text.index("## Names") :].splitlines() if line.startswith("| `")]
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(described) == sorted(backends.__all__)


def test_dir_shows_no_module_that_is_not_public() -> None:
    modules = {name for name in dir(threadmark) if isinstance(getattr(threadmark, name), type(threadmark))}
    assert modules == {"errors", "serde", "types"}


def test_a_url_is_opened_by_a_function() -> None:
    classes = (MemorySaver, SqliteSaver, PostgresSaver, RedisSaver, MemoryCache, RedisCache)
    assert [each.__name__ for each in classes if "from_url" in dir(each)] == []


def test_a_keyring_shows_how_to_make_it_and_where_its_keys_are() -> None:
    assert {name for name in dir(Keyring) if not name.startswith("_")} == {"from_env", "from_file", "source"}


def test_importing_the_package_makes_its_modules_reachable() -> None:
    done = _run("import threadmark; print(threadmark.serde.Serde is threadmark.Serde)")
    assert done.stdout == "True\n"


def test_what_is_needed_rarely_is_not_imported_with_the_package() -> None:
    done = _run("import sys, threadmark; print({'cryptography', 'sqlite3', 'asyncio', 'psycopg'} & sys.modules.keys())")
    assert done.stdout == "set()\n"


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
