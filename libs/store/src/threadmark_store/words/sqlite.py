"""Words in a table of the saver's SQLite file, which accepts no virtual ones: a word's rows are a range of it."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_sqlite.placeholders import chunks, with_pairs, with_placeholders
from threadmark_sqlite.steps import Rows, execute, execute_alone, executemany
from threadmark_store.columns.sqlite import clauses_of, columns_of, from_optional, key_in, optional
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.words.contract import BEHIND_HEADS, HEAD, WordRow, WordTotals

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'threadmark_store_word'"

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS threadmark_store_word (
        word TEXT NOT NULL,
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        count INTEGER NOT NULL,
        length INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        owner TEXT,
        PRIMARY KEY (word, namespace, key)
    )
    WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS threadmark_store_word_item ON threadmark_store_word (namespace, key)",
)

_COLUMNS = "namespace, key, word, count, length, checksum, owner"

_IS_HEAD = f"word >= '{HEAD}' AND word < '{BEHIND_HEADS}'"

_HEADS = f"""
SELECT {_COLUMNS}
FROM threadmark_store_word
WHERE (namespace, key) IN (VALUES {{placeholders}}) AND {_IS_HEAD}
"""

_ADD = f"INSERT INTO threadmark_store_word ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"

_DELETE = "DELETE FROM threadmark_store_word WHERE namespace = ? AND key = ? AND (? IS NULL OR owner = ?)"

_FIND = f"SELECT {_COLUMNS} FROM threadmark_store_word WHERE word IN ({{{{placeholders}}}}) AND {{clauses}}"

_TOTALS = f"""
SELECT count(*), coalesce(sum(length), 0)
FROM threadmark_store_word
WHERE {_IS_HEAD} AND {{clauses}}
"""

_KEYS = f"""
SELECT namespace, key, word
FROM threadmark_store_word
WHERE {_IS_HEAD} AND (word, namespace, key) > (?, ?, ?)
ORDER BY word, namespace, key
LIMIT ?
"""

_KEYS_AT_ONCE = 256


def words_over(rows: object) -> "SqliteWords":  # noqa: ARG001 - a file has one set of tables
    """Return the words in the database of a saver's rows."""
    return SqliteWords()


class SqliteWords:
    """Words in a table."""

    def exists(self) -> Program[bool]:
        return bool((yield from execute_alone(_EXISTS)))

    def create(self) -> Program[None]:
        for statement in _TABLES:
            yield from execute(statement)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:  # noqa: ARG002 - there is one writer
        yield from ()

    def heads(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        found: Rows = []
        for some in chunks([columns_of(key) for key in keys]):
            found += yield from execute(with_pairs(_HEADS, some), tuple(chain.from_iterable(some)))
        return list(map(_row, found))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[WordRow]) -> Program[None]:
        yield from self.delete(keys, None)
        yield from executemany(_ADD, [_params(row) for row in rows])

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        owned = optional(owner)
        yield from executemany(_DELETE, [(*columns_of(key), owned, owned) for key in keys])

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        clauses, params = clauses_of(scope)
        statement = _FIND.format(clauses=clauses)
        found: Rows = []
        for start in range(0, len(words), _KEYS_AT_ONCE):
            some = [to_column(word) for word in words[start : start + _KEYS_AT_ONCE]]
            found += yield from execute(with_placeholders(statement, some), (*some, *params))
        return list(map(_row, found))

    def totals(self, scope: Scope) -> Program[WordTotals]:
        clauses, params = clauses_of(scope)
        ((items, words),) = yield from execute(_TOTALS.format(clauses=clauses), params)
        return WordTotals(items, words)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        rows = yield from execute(_KEYS, (*(cursor or ("", "", "")), _KEYS_AT_ONCE))
        end = (rows[-1][2], *rows[-1][:2]) if len(rows) == _KEYS_AT_ONCE else None
        return [key_in(namespace, key) for namespace, key, _ in rows], end


def _params(row: WordRow) -> tuple[Any, ...]:
    return *columns_of(row.key), to_column(row.word), row.times, row.length, row.check, optional(row.owner)


def _row(columns: Sequence[Any]) -> WordRow:
    namespace, key, word, count, length, check, owner = columns
    return WordRow(key_in(namespace, key), from_column(word), count, length, check, from_optional(owner))
