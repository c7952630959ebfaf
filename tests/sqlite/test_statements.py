"""Statements that every supported Python executes without a warning."""

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

from threadmark_sqlite import sql


@pytest.mark.parametrize("name", sorted(module.name for module in iter_modules(sql.__path__)))
def test_no_parameter_is_numbered(name: str) -> None:
    """Up to Python 3.12.3 sqlite3 takes `?1` for a name, which it warns of for a sequence."""
    members = vars(import_module(f"{sql.__name__}.{name}"))
    texts = {each: text for each, text in members.items() if isinstance(text, str) and each.strip("_").isupper()}
    assert len(texts) > 5
    assert [each for each, text in texts.items() if re.search(r"\?\d", text)] == []
