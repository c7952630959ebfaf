"""Words in a table of SQLite or Postgres, where a word's rows are a range of the index."""

from collections.abc import Sequence
from typing import Any, ClassVar

from threadmark.backends import Program
from threadmark_store.shapes import ItemKey, Scope
from threadmark_store.tables.sql import Columns, TableOfRows, clauses_of, from_optional, key_in, text_in
from threadmark_store.words.contract import BEHIND_HEADS, HEAD, WordRow, WordTotals

_IS_HEAD = f"word >= '{HEAD}' AND word < '{BEHIND_HEADS}'"

_SELECT = """
SELECT namespace, key, word, count, length, checksum, owner
FROM tm.store_word
""".strip()

_WHOLE_ROWS = f"{_SELECT} WHERE (namespace, key) {{among}}"
_HEADS = f"{_WHOLE_ROWS} AND {_IS_HEAD}"

_FIND = f"{_SELECT} WHERE word {{among}} AND {{clauses}}"

_TOTALS = f"""
SELECT count(*), coalesce(sum(CAST(CAST(length AS bigint) AS double precision)), 0)
FROM tm.store_word
WHERE {_IS_HEAD} AND {{clauses}}
"""


class TableWords(TableOfRows):
    """Words in a table."""

    table = "word"
    columns: ClassVar[Columns] = {
        "namespace": "text",
        "key": "text",
        "word": "text",
        "count": "bigint",
        "length": "bigint",
        "checksum": "bigint",
        "owner": "text",
    }

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        return list(map(_row, (yield from self._database.among(_HEADS, keys))))

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        return list(map(_row, (yield from self._database.among(_WHOLE_ROWS, keys))))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[WordRow]) -> Program[None]:
        return self._replace(keys, [(*row.key, *row[1:]) for row in rows])

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        clauses, params = clauses_of(scope)
        statement = _FIND.format(clauses=clauses, among="{among}")
        rows = yield from self._database.among(statement, [[word] for word in words], *params)
        return list(map(_row, rows))

    def totals(self, scope: Scope) -> Program[WordTotals]:
        clauses, params = clauses_of(scope)
        rows = yield from self._database.select(_TOTALS.format(clauses=clauses), *params)
        ((items, length),) = rows
        return WordTotals(items, int(length))


rows_over = TableWords


def _row(columns: Sequence[Any]) -> WordRow:
    """Return the row of columns. One with a wrong type has a check that no item has."""
    namespace, key, word, *numbers, owner = columns
    count, length, check = numbers if set(map(type, numbers)) == {int} else (1, 1, 0)
    return WordRow(key_in(namespace, key), text_in(word), count, length, check, from_optional(owner))
