"""Words in a table of the saver's schema: a word's rows are a range of its index. Each question is one statement."""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_postgres.arrays import Numbers, Texts
from threadmark_postgres.columns import from_optional, optional
from threadmark_store.columns.postgres import Table, arrays_of, clauses_of, key_in, script_of
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.words.contract import BEHIND_HEADS, HEAD, WordRow, WordTotals

_TABLES = (
    """
    CREATE TABLE tm.store_word (
        checksum bigint NOT NULL,
        count bigint NOT NULL,
        length bigint NOT NULL,
        word text COLLATE "C" NOT NULL,
        namespace text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        owner text COLLATE "C",
        PRIMARY KEY (word, namespace, key)
    )
    """,
    "CREATE INDEX threadmark_store_word_item ON tm.store_word (namespace, key)",
)

_COLUMNS = "w.namespace, w.key, w.word, w.count, w.length, w.checksum, w.owner"

_IS_HEAD = f"w.word >= '{HEAD}' AND w.word < '{BEHIND_HEADS}'"

_HEADS = f"""
SELECT {_COLUMNS}
FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
JOIN tm.store_word AS w ON w.namespace = asked.namespace AND w.key = asked.key
WHERE {_IS_HEAD}
"""

# Its items were put by the same transaction, so no other one adds the same rows.
_ADD = """
INSERT INTO tm.store_word (namespace, key, word, count, length, checksum, owner)
SELECT n.namespace, n.key, n.word, n.count, n.length, n.checksum, n.owner
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[]
) AS n (namespace, key, word, count, length, checksum, owner)
"""

_DELETE = """
DELETE FROM tm.store_word AS w
USING unnest($1::text[], $2::text[]) AS asked (namespace, key)
WHERE w.namespace = asked.namespace AND w.key = asked.key AND ($3::text IS NULL OR w.owner = $3::text)
"""

_FIND = f"SELECT {_COLUMNS} FROM tm.store_word AS w WHERE w.word = ANY ($1::text[]) AND {{clauses}}"

_TOTALS = f"""
SELECT count(*), coalesce(sum(w.length), 0)::bigint
FROM tm.store_word AS w
WHERE {_IS_HEAD} AND {{clauses}}
"""

_KEYS = f"""
SELECT w.namespace, w.key, w.word
FROM tm.store_word AS w
WHERE {_IS_HEAD} AND (w.word, w.namespace, w.key) > ($1::text, $2::text, $3::text)
ORDER BY w.word, w.namespace, w.key
LIMIT $4::bigint
"""

_KEYS_AT_ONCE = 256


def words_over(rows: Any) -> "PostgresWords":
    """Return the words in the database of a saver's rows."""
    return PostgresWords(rows._schema)  # noqa: SLF001 - both have their tables in one schema


def ddl(schema: str | None = None) -> str:
    """Return the SQL script that creates the table, if the saver's role may not. The saver's own tables come first."""
    return script_of(_TABLES, schema)


class PostgresWords:
    """Words in a table of one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None) -> None:
        self._table = Table(schema, "threadmark_store_word", _TABLES)

    def exists(self) -> Program[bool]:
        return self._table.exists()

    def create(self) -> Program[None]:
        return self._table.create()

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self._table.hold(keys)

    def heads(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        return list(map(_row, (yield from self._table.execute(_HEADS, *arrays_of(keys)))))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[WordRow]) -> Program[None]:
        yield from self.delete(keys, None)
        if rows:
            yield from self._table.execute(
                _ADD,
                *arrays_of([row.key for row in rows]),
                Texts(to_column(row.word) for row in rows),
                Numbers(row.times for row in rows),
                Numbers(row.length for row in rows),
                Numbers(row.check for row in rows),
                Texts(optional(row.owner) for row in rows),
            )

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        yield from self._table.execute(_DELETE, *arrays_of(keys), optional(owner))

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        clauses, params = clauses_of(scope, 2)
        rows = yield from self._table.execute(_FIND.format(clauses=clauses), Texts(map(to_column, words)), *params)
        return list(map(_row, rows))

    def totals(self, scope: Scope) -> Program[WordTotals]:
        clauses, params = clauses_of(scope, 1)
        ((items, words),) = yield from self._table.execute(_TOTALS.format(clauses=clauses), *params)
        return WordTotals(items, words)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        rows = yield from self._table.execute(_KEYS, *(cursor or ("", "", "")), _KEYS_AT_ONCE)
        end = (rows[-1][2], *rows[-1][:2]) if len(rows) == _KEYS_AT_ONCE else None
        return [key_in(namespace, key) for namespace, key, _ in rows], end


def _row(columns: Sequence[Any]) -> WordRow:
    namespace, key, word, count, length, check, owner = columns
    return WordRow(key_in(namespace, key), from_column(word), count, length, check, from_optional(owner))
