"""A filter of threads is described everywhere: the behaviour of each is a case of the conformance suite."""

import re
from pathlib import Path

import pytest

from threadmark.model import ThreadFilter
from threadmark.store.threads import ThreadScope
from threadmark_cli.commands.threads import threads

DOCS = Path(__file__).parents[2] / "docs"
FILTERS = sorted(ThreadFilter.__annotations__)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_is_in_the_scope_the_command_and_the_docs(name: str) -> None:
    assert {"metadata": "fragments"}.get(name, name) in ThreadScope._fields
    options = {each.name for each in threads.params} | {"owner"}  # which every command has
    assert name in options, "`threadmark threads` has no option for it"
    page = (DOCS / "how-to/threads.md").read_text()
    assert re.search(rf"`{name}`", page), "docs/how-to/threads.md does not name it"
    option = name.replace("_", "-")
    assert f"`--{option}`" in (DOCS / "reference/command.md").read_text(), "docs/reference/command.md does not name it"
