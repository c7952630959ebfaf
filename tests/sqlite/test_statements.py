"""Statements that every supported Python executes without a warning."""

import re
from types import ModuleType

import pytest

from threadmark_sqlite import replica_sql, sql, thread_sql


@pytest.mark.parametrize("module", [sql, thread_sql, replica_sql])
def test_no_parameter_is_numbered(module: ModuleType) -> None:
    """Up to Python 3.12.3 sqlite3 takes `?1` for a name, which it warns of where a sequence is given."""
    texts = {name: text for name, text in vars(module).items() if isinstance(text, str) and name.isupper()}
    assert len(texts) > 10
    assert [name for name, text in texts.items() if re.search(r"\?\d", text)] == []
