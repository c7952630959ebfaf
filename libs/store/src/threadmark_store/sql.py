"""The statements on the tables of LangGraph's stores, which a move reads and corrects."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

# Items behind a key. `content` is the value as it is stored.
_ITEMS = """
SELECT *, {value} AS content
FROM store
WHERE (prefix, key) > ({mark}, {mark})
ORDER BY prefix, key
LIMIT {mark}
"""

# The vectors of items behind a key, up to another one.
_VECTORS = """
SELECT prefix, key, field_name, {embedding} AS embedding
FROM store_vectors
WHERE (prefix, key) > ({mark}, {mark}) AND (prefix, key) <= ({mark}, {mark})
"""

# The times of an item that was just put.
_SET_TIMES = """
UPDATE store
SET created_at = {mark},
    updated_at = {mark},
    expires_at = {mark}
WHERE prefix = {mark} AND key = {mark}
"""

# Whether a database has the table of LangGraph's stores.
SQLITE_HAS_ITEMS = "SELECT 1 FROM pragma_table_info('store') WHERE name = 'prefix'"
POSTGRES_HAS_ITEMS = """
SELECT 1
FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = 'store' AND column_name = 'prefix'
"""


class Statements(NamedTuple):
    """The statements in the words of one database."""

    items: str
    vectors: str
    set_times: str
    time: Callable[[datetime | None], Any]
    """Returns a time as the table has it."""


def _as_text(time: datetime | None) -> str | None:
    """Return a time like SQLite's CURRENT_TIMESTAMP, with which it is compared as text."""
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}"


SQLITE = Statements(
    _ITEMS.format(value="value", mark="?"),
    _VECTORS.format(embedding="embedding", mark="?"),
    _SET_TIMES.format(mark="?"),
    _as_text,
)

POSTGRES = Statements(
    _ITEMS.format(value="value::text", mark="%s"),
    _VECTORS.format(embedding="embedding::text", mark="%s"),
    _SET_TIMES.format(mark="%s"),
    lambda time: time,
)
