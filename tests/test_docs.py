"""The documentation is run: every Python block of these pages works alone as it is, again and again, and is typed."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from postgres import cluster
from redis_backend.processes import DURABLE, RedisProcess
from threadmark import keyring_file
from threadmark.types import HistoryEntry, ThreadInfo

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.md"
"""Its blocks are files that are run one after the other, by tests/test_tutorial.py."""
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
READMES = sorted(ROOT.glob("libs/*/README.md"))
"""Their examples are run by tests/test_packages.py, each with nothing but its package installed."""
API = ROOT / "docs" / "reference" / "api"
"""The text behind `print(...)  # ` is part of the output on these pages."""


class Block(NamedTuple):
    """A Python block of a page."""

    page: Path
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _blocks(pages: list[Path]) -> list[Block]:
    return [
        Block(page, text[: block.start(1)].count("\n"), block.group(1))
        for page in pages
        for text in [page.read_text(encoding="utf-8")]
        for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


BLOCKS = _blocks(PAGES)


@pytest.fixture
def _log_levels() -> Iterator[None]:
    """Restore the levels of loggers that an example may set."""
    yield
    for name in ("threadmark", "threadmark.sqlite", "threadmark.postgres", "threadmark.redis", "threadmark.langgraph"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def _redis() -> Iterator[str]:
    """The URL of a server with the settings that docs/how-to/redis.md asks for."""
    with RedisProcess(DURABLE) as server:
        yield server.start().url


@pytest.fixture(scope="session")
def _postgres() -> Iterator[str]:
    """The URL of a new database, on the server that tests share."""
    server = cluster.shared()
    yield server.database("docs")
    server.execute("DROP DATABASE docs WITH (FORCE)")


@pytest.mark.usefixtures("_log_levels")
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_an_example_runs_alone_and_once_more(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "POSTGRES_URL" in block.code:
        monkeypatch.setenv("POSTGRES_URL", request.getfixturevalue("_postgres"))
    if "REDIS_URL" in block.code:
        monkeypatch.setenv("REDIS_URL", request.getfixturevalue("_redis"))
    if "agents.keys" in block.code:
        keyring_file.make("agents.keys", "2026")  # as `threadmark keys new agents.keys` does
    code = compile("\n" * block.line + block.code, str(block.page), "exec")
    for _ in range(2):
        main = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)  # where the classes of an example are looked up
        exec(code, vars(main))  # noqa: S102 - running the page is the test
    if block.page.parent == API:
        printed = capsys.readouterr().out
        for comment in re.findall(r"^ *print\(.*\)  # (.+)$", block.code, re.MULTILINE):
            assert comment in printed


def test_the_examples_are_typed(tmp_path: Path) -> None:
    """One run of mypy for all of them; it keeps its cache of LangGraph for the next run."""
    blocks = [*BLOCKS, *_blocks(READMES)]
    assert len(blocks) > len(READMES)
    for number, block in enumerate(blocks):
        (tmp_path / f"example_{number}.py").write_text(f"# {block}\n{block.code}", encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path)]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(("page", "cls"), [("how-to/threads", ThreadInfo), ("reference/time-travel", HistoryEntry)])
def test_a_table_of_fields_has_the_names_of_the_class(page: str, cls: type) -> None:
    rows = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").partition("| field | meaning |\n")[2]
    fields = [row.split("|")[1] for row in rows.partition("\n\n")[0].splitlines()[1:]]
    assert sorted(re.findall(r"`(\w+)`", " ".join(fields))) == sorted(cls.__annotations__)


def test_the_index_leads_to_every_page() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    targets = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#]+)", text)}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"}
    assert {str(page.relative_to(ROOT)) for page in pages - targets} == {"docs/index.md"}
