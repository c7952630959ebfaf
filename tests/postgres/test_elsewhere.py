"""docs/explanation/postgres.md lists the SQL that other servers refuse; the list is compared with our SQL."""

import re
from pathlib import Path

import pytest

import threadmark_postgres
from threadmark_postgres import ddl

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "postgres.md").read_text(encoding="utf-8").partition("\n## Other servers\n")[2]
USED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
UNUSED = re.findall(r"`([^`]+)`", PAGE.partition("uses none of these")[2].partition("\n\n")[0])


def _sql() -> str:
    package = Path(threadmark_postgres.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in sorted(package.glob("sql/*.py"))]
    return "\n".join([ddl(), ddl(partitions=4), ddl(distribute="citus"), *sources])


SQL = re.sub(r"(--|#).*", "", _sql())
"""Every statement, without comments."""


@pytest.mark.parametrize("construct", USED)
def test_what_the_page_says_is_used(construct: str) -> None:
    assert construct in SQL


@pytest.mark.parametrize("construct", UNUSED)
def test_what_the_page_says_is_not_used(construct: str) -> None:
    assert not re.search(rf"\b{construct}\b", SQL)


def test_the_page_names_something() -> None:
    assert len(USED) > 8
    assert len(UNUSED) > 8
