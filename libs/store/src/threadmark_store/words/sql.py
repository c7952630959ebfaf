"""Words in a table of SQLite or Postgres, where a word's rows are a range of the index."""

from collections.abc import Sequence
from typing import Any, ClassVar

from threadmark.backends import Program
from threadmark_store.shapes import ItemKey, Scope
from threadmark_store.tables.sql import Columns, TableOfRows, clauses_of, from_optional, key_in, number_in, text_in
from threadmark_store.words.contract import BEHIND_HEADS, HEAD, WordRow, WordTotals

_IS_HEAD = f"word >= '{HEAD}' AND word < '{BEHIND_HEADS}'"

_SELECT = """
SELECT namespace, key, word, count, length, checksum, owner
FROM tm.store_word
""".strip()

_HEADS = f"{_SELECT} WHERE (namespace, key) {{among}} AND {_IS_HEAD}"

_FIND = f"{_SELECT} WHERE word {{among}} AND {{clauses}}"

_TOTALS = f"""
SELECT count(*), CAST(coalesce(sum(length), 0) AS bigint)
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
        return WordTotals(*rows[0])


rows_over = TableWords


def _row(columns: Sequence[Any]) -> WordRow:
    namespace, key, word, count, length, check, owner = columns
    name, word = key_in(namespace, key), text_in(word)
    return WordRow(name, word, number_in(count), number_in(length), number_in(check), from_optional(owner))
