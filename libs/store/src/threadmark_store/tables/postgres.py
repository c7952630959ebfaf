"""The tables of a store in the saver's schema on Postgres, and statements as Postgres wants them.

Statements lock rows in the order of their keys, or leave out those that others have locked: so none waits in a circle.
Columns of one width come first in their table, so that no bytes are lost between them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from inspect import cleandoc
from typing import Any

from threadmark.backends import ConfigError, Program, StoreError, short_repr
from threadmark_postgres.arrays import Blobs, Numbers, Texts
from threadmark_postgres.schema import in_schema, quoted
from threadmark_postgres.sql.connections import LOCK_SETUP
from threadmark_postgres.steps import Rows, execute
from threadmark_store.shapes import ItemKey
from threadmark_store.tables.sql import Columns, Keys, Kind, key_in, packed

# The column of pgvector's type, if the database has the extension, and an index of the rows without a value in it.
EMBEDDING = """
DO $do$
DECLARE
    pgvector text;
BEGIN
    SELECT n.nspname
    INTO pgvector
    FROM pg_catalog.pg_extension AS e
    JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector';
    IF FOUND THEN
        EXECUTE format($alter$
            ALTER TABLE tm.store_vector
                ADD COLUMN IF NOT EXISTS embedding %I.vector,
                ALTER COLUMN embedding SET STORAGE EXTERNAL
        $alter$, pgvector);
        CREATE INDEX IF NOT EXISTS threadmark_store_vector_plain
        ON tm.store_vector (model, namespace, key, field, place)
        WHERE embedding IS NULL;
    END IF;
END
$do$
"""

_TABLES = {
    "item": (
        """
        CREATE TABLE tm.store_item (
            created_at bigint NOT NULL,
            updated_at bigint NOT NULL,
            expires_at bigint,
            ttl bigint,
            checksum bigint NOT NULL,
            namespace text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            owner text COLLATE "C",
            json json,
            data bytea,
            PRIMARY KEY (namespace, key)
        )
        """,
        "CREATE INDEX threadmark_store_item_newest ON tm.store_item (updated_at)",
        "CREATE INDEX threadmark_store_item_expiry ON tm.store_item (expires_at) WHERE expires_at IS NOT NULL",
    ),
    "vector": (
        """
        CREATE TABLE tm.store_vector (
            checksum bigint NOT NULL,
            place bigint NOT NULL,
            namespace text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            field text COLLATE "C" NOT NULL,
            model text COLLATE "C" NOT NULL,
            owner text COLLATE "C",
            vector bytea NOT NULL,
            PRIMARY KEY (namespace, key, field, place)
        )
        WITH (toast_tuple_target = 8160)
        """,
        # Floats do not become smaller by compression, so long vectors are stored without the attempt, and within their
        # row if a page has room for it: a search then takes a third of the time.
        "ALTER TABLE tm.store_vector ALTER COLUMN vector SET STORAGE EXTERNAL",
        EMBEDDING,
    ),
    "word": (
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
    ),
    "cached": (
        """
        CREATE TABLE tm.store_cached (
            key bytea PRIMARY KEY,
            namespace bytea NOT NULL,
            owner text COLLATE "C" NOT NULL,
            value bytea NOT NULL,
            checksum bigint NOT NULL,
            size bigint NOT NULL,
            used_at bigint NOT NULL,
            expires_at bigint
        )
        """,
        "CREATE INDEX threadmark_store_cached_used ON tm.store_cached (owner, used_at) INCLUDE (size)",
        "CREATE INDEX threadmark_store_cached_namespace ON tm.store_cached (namespace)",
        "CREATE INDEX threadmark_store_cached_expiry ON tm.store_cached (expires_at) WHERE expires_at IS NOT NULL",
    ),
}

_INDEXED = {
    "item": ("namespace", "key"),
    "vector": ("namespace", "key", "field", "model"),
    "word": ("namespace", "key", "word"),
}
"""The texts of the longest index of a table."""
_INDEXED_BYTES = 2600
"""An index holds hardly more bytes of a row."""
_MOST_BYTES = 4
"""The most bytes of one character in a column."""

# This reads the tables of the catalogue, as its answers after a wait for a lock may come from a cache otherwise.
_EXISTS = """
SELECT
    EXISTS (
        SELECT
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = $1::text
            AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
    ),
    to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL
"""

_IS_WORKER = "SELECT groupid <> 0 FROM pg_catalog.pg_dist_local_group"

_MAY_CREATE = "SELECT coalesce(has_schema_privilege(coalesce($1::text, current_schema()), 'CREATE'), false)"

# In the order of their keys, as puts lock them.
_HOLD = """
SELECT
FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
JOIN tm.store_item AS item ON item.namespace = asked.namespace AND item.key = asked.key
ORDER BY item.namespace, item.key
FOR UPDATE OF item
"""

_LOCK = "LOCK TABLE tm.store_{table} IN SHARE ROW EXCLUSIVE MODE"

_PARAMETER = re.compile(r"\?([a-z]+)")

_ARRAYS: dict[Kind, Callable[[Iterable[Any]], Any]] = {"text": Texts, "bigint": Numbers, "bytea": Blobs}


def ddl(table: str, schema: str | None = None) -> str:
    """Return the SQL script that creates a table of the store, if the saver's role may not.

    The saver's own tables come first.
    """
    return "".join(f"{in_schema(cleandoc(statement), schema)};\n" for statement in _TABLES[table])


class Database:
    """The tables of a store in one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None) -> None:
        self._schema = schema

    def any_of(self, query: str) -> str:
        return f"= ANY (ARRAY({query}))"

    def free(self, query: str) -> str:
        return f"= ANY (ARRAY({query} FOR UPDATE SKIP LOCKED))"

    def exists(self, table: str, *, last: bool = True) -> Program[bool]:
        """Raises ConfigError for a worker of Citus: its tables would be other ones than the coordinator's."""
        names = f"threadmark_store_{table}", self._schema
        ((found, has_citus),) = yield from execute(_EXISTS, names, likely_last=last)
        if not found and has_citus and (yield from execute(_IS_WORKER))[0][0]:
            raise ConfigError(
                "this server is a worker of a Citus cluster, and stores and caches are on the coordinator: give their "
                "saver the coordinator's URL"
            )
        return bool(found)

    def create(self, table: str) -> Program[None]:
        """Waits for others that set up tables. Raises StoreError if the role may not create any."""
        yield from self.select(LOCK_SETUP)
        if (yield from self.exists(table, last=False)):
            return
        ((may_create,),) = yield from self.select(_MAY_CREATE, self._schema)
        if not may_create:
            place = "the first schema of its search path" if self._schema is None else quoted(self._schema)
            arguments = repr(table) if self._schema is None else f"{table!r}, {self._schema!r}"
            raise StoreError(
                f"there is no table threadmark_store_{table}, and this role may create none in {place}: let another "
                f"role run the script that threadmark_store.tables.postgres.ddl({arguments}) returns, and grant this "
                "one SELECT, INSERT, UPDATE and DELETE on the table"
            )
        for statement in _TABLES[table]:
            yield from self.select(statement)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        yield from self.select(_HOLD, *arrays(["text", "text"], map(packed, keys)))

    def lock(self, table: str) -> Program[None]:
        yield from self.select(_LOCK.format(table=table))

    def select(self, statement: str, *params: Any, last: bool = False) -> Program[Rows]:
        return execute(self.written(statement), params, likely_last=last)

    def among(
        self, statement: str, keys: Keys, *params: Any, before: Sequence[Any] = (), last: bool = False
    ) -> Program[Rows]:
        """One statement, whatever the number of keys."""
        if not keys:
            return []
        kinds: list[Kind] = ["text" if isinstance(each, str) else "bytea" for each in keys[0]]
        asked = ", ".join(f"?{kind}[]" for kind in kinds)
        among = f"= ANY ({asked})" if len(kinds) == 1 else f"IN (SELECT * FROM unnest({asked}))"
        params = *before, *arrays(kinds, map(packed, keys)), *params
        return (yield from self.select(statement.format(among=among), *params, last=last))

    def add(
        self, table: str, columns: Columns, rows: Sequence[Sequence[Any]], conflict: str = "", *, last: bool = False
    ) -> Program[None]:
        """One statement, whatever the number of rows."""
        if rows:
            rows = list(map(packed, rows))
            expect_indexable(table, columns, rows)
            kinds = list(columns.values())
            names, added = ", ".join(columns), ", ".join(f"?{kind}[]" for kind in kinds)
            statement = f"INSERT INTO tm.store_{table} ({names}) SELECT * FROM unnest({added}) {conflict}"
            yield from self.select(statement, *arrays(kinds, rows), last=last)

    def written(self, statement: str) -> str:
        """Return a statement for the server."""
        return in_schema(_numbered(statement), self._schema)


def database_over(rows: Any) -> Database:
    """Return the database of a saver's rows: both have their tables in one schema."""
    return Database(rows._schema)  # noqa: SLF001 - see above


def expect_indexable(table: str, columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> None:
    """Raise ConfigError if rows of a table have more text than an index holds. The server's error names no item."""
    place_of = {column: place for place, column in enumerate(columns)}
    places = [place_of[column] for column in _INDEXED.get(table, ())]
    if _MOST_BYTES * sum(max(len(row[place]) for row in rows) for place in places) > _INDEXED_BYTES:
        for row in rows:
            _expect_indexable(_INDEXED[table], [row[place] for place in places])


def _expect_indexable(columns: Sequence[str], texts: Sequence[str]) -> None:
    size = sum(len(text.encode()) for text in texts)
    if size > _INDEXED_BYTES:
        namespace, key = key_in(*texts[:2])
        others = "".join(f" and {column}" for column in columns[2:])
        raise ConfigError(
            f"item {short_repr(key)} of namespace {short_repr(namespace)} has a key of {size} bytes with its namespace"
            f"{others}, and Postgres indexes at most {_INDEXED_BYTES}: give a shorter one, such as a digest"
            f"{', or fewer or shorter fields' if others else ''}"
        )


def arrays(kinds: Sequence[Kind], rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Return one array for each column of rows, of which there is at least one."""
    return [_ARRAYS[kind](column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]


@lru_cache(512)
def _numbered(statement: str) -> str:
    """Return a statement whose parameters have numbers, in the order in which they stand there."""
    parts = _PARAMETER.split(statement.replace("rowid", "ctid"))
    numbered = (
        f"${number}::{kind}{rest}" for number, (kind, rest) in enumerate(zip(parts[1::2], parts[2::2], strict=True), 1)
    )
    return parts[0] + "".join(numbered)
