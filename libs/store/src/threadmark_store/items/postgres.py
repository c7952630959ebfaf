"""Items in a table of the saver's schema. Most questions are one statement, and so one round trip.

JSON is in a column that keeps its text as it came, everything else in one of bytes. A namespace sorts by code points,
so the ones below it are a range of the index. A statement that changes several items takes them in the order of their
keys, so that two batches wait for each other at most.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from inspect import cleandoc
from typing import Any

import orjson

from threadmark.backends import ConfigError, Program, StoreError, from_column, short_repr, to_column
from threadmark_postgres.arrays import Blobs, Numbers, Texts
from threadmark_postgres.columns import from_optional, optional
from threadmark_postgres.schema import in_schema, quoted
from threadmark_postgres.sql.connections import LOCK_SETUP
from threadmark_postgres.steps import Query, Rows, execute
from threadmark_store.columns.postgres import exists, script_of
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import Condition, ItemKey, ItemRow, Place, Scope

_LONGEST_KEY = 2600
"""In bytes, with its namespace. The server indexes hardly more."""
_MOST_BYTES = 4
"""The most bytes of one character in a column."""

_MAY_CREATE = "SELECT coalesce(has_schema_privilege(coalesce($1::text, current_schema()), 'CREATE'), false)"

# Columns of one width come first, so that no bytes are lost between them.
_TABLES = (
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
)

_COLUMNS = """
item.namespace, item.key, item.json::text, item.data, item.checksum,
item.created_at, item.updated_at, item.owner, item.expires_at, item.ttl
""".strip()

_ITEM = f"""
SELECT {_COLUMNS}
FROM tm.store_item AS item
WHERE item.namespace = $1::text AND item.key = $2::text
"""

_ITEMS = f"""
SELECT {_COLUMNS}
FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
JOIN tm.store_item AS item ON item.namespace = asked.namespace AND item.key = asked.key
"""

# Returns the items that were stored.
_PUT = """
INSERT INTO tm.store_item AS item (
    namespace, key, json, data, checksum, created_at, updated_at, owner, expires_at, ttl
)
SELECT n.namespace, n.key, n.json::json, n.data, n.checksum, n.created_at, n.updated_at, n.owner, n.expires_at, n.ttl
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[],
    $6::bigint[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]
) AS n (namespace, key, json, data, checksum, created_at, updated_at, owner, expires_at, ttl)
ON CONFLICT (namespace, key) DO UPDATE
SET json = excluded.json,
    data = excluded.data,
    checksum = excluded.checksum,
    updated_at = excluded.updated_at,
    expires_at = excluded.expires_at,
    ttl = excluded.ttl
WHERE excluded.owner IS NULL OR item.owner = excluded.owner
RETURNING item.namespace, item.key
"""

# Rows are locked in the order of their keys.
_HELD = """
WITH held AS (
    SELECT item.namespace, item.key
    FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
    JOIN tm.store_item AS item ON item.namespace = asked.namespace AND item.key = asked.key
    ORDER BY item.namespace, item.key
    FOR UPDATE OF item
)
""".strip()
_DELETE = f"""
{_HELD}
DELETE FROM tm.store_item AS item
USING held
WHERE item.namespace = held.namespace AND item.key = held.key AND ($3::text IS NULL OR item.owner = $3::text)
"""
_REFRESH = f"""
{_HELD}
UPDATE tm.store_item AS item
SET expires_at = $3::bigint + item.ttl
FROM held
WHERE item.namespace = held.namespace AND item.key = held.key AND item.ttl IS NOT NULL
"""

_SEARCH = f"""
SELECT {_COLUMNS}
FROM tm.store_item AS item{{parts}}
WHERE {{clauses}}
ORDER BY {{order}} DESC, item.namespace, item.key
LIMIT $1::bigint OFFSET $2::bigint
"""
# All items are read in the order of their index. The server would also choose it for a large namespace, and read
# everything that is newer if that has not changed for long: an expression keeps it from that.
_NEWEST_OF_ALL, _NEWEST = "item.updated_at", "(item.updated_at + 0)"

_IN_KEY_ORDER = f"""
SELECT {_COLUMNS}
FROM tm.store_item AS item{{parts}}
WHERE {{clauses}}
ORDER BY item.namespace, item.key
LIMIT $1::bigint
"""

_NAMESPACES = "SELECT DISTINCT item.namespace FROM tm.store_item AS item{parts} WHERE {clauses}"

_COUNT = """
SELECT
    count(*),
    coalesce(sum(
        octet_length(item.namespace) + octet_length(item.key)
        + coalesce(octet_length(item.json::text), octet_length(item.data), 0)
    ), 0)::bigint
FROM tm.store_item AS item{parts}
WHERE {clauses}
"""

# Several sweepers share the work, and an item that a read is just refreshing stays.
_SWEEP = """
DELETE FROM tm.store_item
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM tm.store_item
    WHERE expires_at <= $1::bigint
    ORDER BY expires_at
    LIMIT $2::bigint
    FOR UPDATE SKIP LOCKED
))
RETURNING namespace, key
"""

_ALL = "true"
_WITHIN = """
item.namespace >= {0}::text AND item.namespace < {2}::text
AND (item.namespace = {0}::text OR item.namespace >= {1}::text)
""".strip()
_OF_OWNER = "item.owner = {0}::text"
_ALIVE = "(item.expires_at IS NULL OR item.expires_at > {0}::bigint)"
_BEHIND_PLACE = """
(item.updated_at < {0}::bigint
OR (item.updated_at = {0}::bigint AND (item.namespace, item.key) > ({1}::text, {2}::text)))
""".strip()
_BEHIND_KEY = "(item.namespace, item.key) > ({0}::text, {1}::text)"
_WITH_FRAGMENT = "(item.json IS NULL OR strpos(item.json::text, {0}::text) > 0)"
_WITH_TEXT = """(item.json IS NULL OR ({part}) COLLATE "C" {sign} {0}::text)"""

# The JSON at a path, read once. Step by step takes half the time of `#>`.
_PART = """
CROSS JOIN LATERAL (SELECT ({part})::text COLLATE "C" AS json OFFSET 0) AS {name}
""".rstrip()
# Only the JSON of a number begins with a sign or a digit. A number that could be too large for the server's type comes
# along, as do all that have an exponent.
_WITH_NUMBER = """
(item.json IS NULL OR CASE
    WHEN {name}.json < '-' OR {name}.json >= ':' THEN false
    WHEN length({name}.json) > 400 OR strpos({name}.json, 'e') > 0 OR strpos({name}.json, 'E') > 0 THEN true
    ELSE {name}.json::numeric {sign} {0}::text::numeric
END)
""".strip()

_Clause = tuple[str, list[Any]]


def items_over(rows: Any) -> "PostgresItems":
    """Return the items in a saver's database."""
    return PostgresItems(rows._schema)  # noqa: SLF001 - both have their tables in one schema


def ddl(schema: str | None = None) -> str:
    """Return the SQL script that creates the tables, if the saver's role may not. The saver's own come first."""
    return script_of(map(cleandoc, _TABLES), schema)


class PostgresItems:
    """Items in a table of one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None) -> None:
        self._schema = schema

    def exists(self) -> Program[bool]:
        """One statement."""
        return self._exists(likely_last=True)

    def create(self) -> Program[None]:
        """Waits for others that set up tables. Raises StoreError if the role may not create any."""
        yield from self._execute(LOCK_SETUP)
        if (yield from self._exists()):
            return
        ((may_create,),) = yield from self._execute(_MAY_CREATE, self._schema)
        if not may_create:
            place = "the first schema of its search path" if self._schema is None else quoted(self._schema)
            argument = "" if self._schema is None else repr(self._schema)
            raise StoreError(
                f"there is no table of items, and this role may create none in {place}: let another role run the "
                f"script that threadmark_store.items.postgres.ddl({argument}) returns, and grant this one SELECT, "
                "INSERT, UPDATE and DELETE on the table threadmark_store_item"
            )
        for statement in _TABLES:
            yield from self._execute(statement)

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        """One statement, whatever their number."""
        if len(keys) == 1:
            rows = yield from self._execute(_ITEM, *_columns_of(keys[0]), likely_last=True)
            return {key: _row(columns) for key, columns in zip(keys, rows, strict=False)}
        rows = yield from self._execute(_ITEMS, *_arrays(map(_columns_of, keys)), likely_last=True)
        return {row.key: row for row in map(_row, rows)}

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """One statement. One item travels with the changes of other callers.

        If some of several items may be refused, it is part of a transaction: the caller undoes it.
        """
        sent = {_checked_columns_of(row.key): row for row in rows}
        keys = sorted(sent)
        params = (*_arrays(keys), *_values([sent[key] for key in keys]))
        ends = last and (len(rows) == 1 or all(row.owner is None for row in rows))
        turn = (*keys[0], "item") if ends and len(rows) == 1 else ()
        stored: Rows = yield Query(in_schema(_PUT, self._schema), params, ends, turn)
        if len(stored) == len(rows):
            return []
        refused = sent.keys() - set(stored)
        return [row.key for key, row in sent.items() if key in refused]

    def delete(self, keys: Sequence[ItemKey], owner: str | None, *, last: bool = False) -> Program[None]:
        """One statement."""
        params = (*_arrays(map(_columns_of, keys)), optional(owner))
        yield from self._execute(_DELETE, *params, likely_last=last)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        """One statement."""
        yield from self._execute(_REFRESH, *_arrays(map(_columns_of, keys)), now, likely_last=True)

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        """One statement."""
        behind = [] if after is None else [(_BEHIND_PLACE, [after.updated_at, *_columns_of(after.key)])]
        statement = _SEARCH.replace("{order}", _NEWEST if scope.prefix else _NEWEST_OF_ALL)
        rows = yield from self._of_scope(statement, scope, behind, limit, offset)
        return list(map(_row, rows))

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        """One statement."""
        behind = [] if after is None else [(_BEHIND_KEY, [*_columns_of(after)])]
        rows = yield from self._of_scope(_IN_KEY_ORDER, scope, behind, limit)
        return list(map(_row, rows))

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        """One statement."""
        rows = yield from self._of_scope(_NAMESPACES, scope)
        return [from_column(namespace) for (namespace,) in rows]

    def sweep(self, now: int, limit: int, *, last: bool = False) -> Program[list[ItemKey]]:
        """One statement. It leaves out items that others are changing."""
        rows = yield from self._execute(_SWEEP, now, limit, likely_last=last)
        return [ItemKey(from_column(namespace), from_column(key)) for namespace, key in rows]

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        """One statement."""
        ((found, size),) = yield from self._of_scope(_COUNT, scope)
        return found, size

    def _exists(self, *, likely_last: bool = False) -> Program[bool]:
        return exists("threadmark_store_item", self._schema, likely_last=likely_last)

    def _of_scope(self, statement: str, scope: Scope, behind: Sequence[_Clause] = (), *params: Any) -> Program[Rows]:
        """Execute a statement with the clauses of a scope, whose parameters are numbered after the others."""
        asked = _Asked(params)
        for clause, values in (*_clauses(scope), *behind):
            asked.add(clause, *values)
        for condition in scope.conditions:
            asked.compare(condition)
        statement = statement.format(parts="".join(asked.parts), clauses=" AND ".join(asked.clauses))
        return self._execute(statement, *asked.params, likely_last=True)

    def _execute(self, statement: str, *params: Any, likely_last: bool = False) -> Program[Rows]:
        return execute(in_schema(statement, self._schema), params, likely_last=likely_last)


class _Asked:
    """The clauses of a statement, whose parameters are numbered after the existing ones."""

    def __init__(self, params: Sequence[Any]) -> None:
        self.params = list(params)
        self.clauses = [_ALL]
        self.parts: list[str] = []
        """Joins with the read parts of the JSON of each item."""

    def add(self, clause: str, *values: Any, **words: str) -> None:
        """Add a clause with its parameters."""
        self.clauses.append(self._written(clause, values, **words))

    def compare(self, condition: Condition) -> None:
        """Add clauses that leave out rows which do not meet a condition, unless no JSON can have its texts.

        Stored JSON has no spaces, so a value that equals another one begins as a fragment of the text. To find that
        takes less than reading the JSON, which is left for numbers: that fragment of a 5 is in a 50, too.
        """
        path, sign, value = condition
        texts = (*path, value) if isinstance(value, str) else path
        if not all(map(_is_in_json, texts)):
            return
        if sign == "=" and (isinstance(value, bool) or value != 0):  # a zero may have a sign
            self.add(_WITH_FRAGMENT, orjson.dumps({path[-1]: value}).decode()[1:-1])
        if isinstance(value, str):
            if sign != "=":
                part = self._written("item.json" + " -> {}::text" * (len(path) - 1) + " ->> {}::text", path)
                self.add(_WITH_TEXT, value, part=part, sign=sign)
        elif not isinstance(value, bool):
            name = f"part_{len(self.parts)}"
            part = self._written("item.json" + " -> {}::text" * len(path), path)
            self.parts.append(_PART.format(part=part, name=name))
            self.add(_WITH_NUMBER, repr(value), name=name, sign=sign)

    def _written(self, clause: str, values: Sequence[Any], **words: str) -> str:
        first = len(self.params) + 1
        self.params += values
        return clause.format(*(f"${number}" for number in range(first, first + len(values))), **words)


def _clauses(scope: Scope) -> Iterator[_Clause]:
    if scope.prefix:
        prefix = to_column(scope.prefix)
        yield _WITHIN, [prefix, *bounds_below(prefix)]
    if scope.owner is not None:
        yield _OF_OWNER, [to_column(scope.owner)]
    if scope.alive_at is not None:
        yield _ALIVE, [scope.alive_at]


def _is_in_json(text: str) -> bool:
    """Return whether stored JSON can have a text: it has no NUL, and UTF-8 no lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _columns_of(key: ItemKey) -> tuple[str, str]:
    return to_column(key.namespace), to_column(key.key)


def _checked_columns_of(key: ItemKey) -> tuple[str, str]:
    """Return the columns of a key. Raises ConfigError if they are longer than an index holds."""
    columns = _columns_of(key)
    if _MOST_BYTES * sum(map(len, columns)) > _LONGEST_KEY:
        size = sum(len(column.encode()) for column in columns)
        if size > _LONGEST_KEY:
            raise ConfigError(
                f"item {short_repr(key.key)} of namespace {short_repr(key.namespace)} has a key of {size} bytes with "
                f"its namespace, and Postgres indexes at most {_LONGEST_KEY}: give a shorter one, such as a digest"
            )
    return columns


def _arrays(keys: Iterable[tuple[str, str]]) -> tuple[Texts, Texts]:
    pairs = list(keys)
    return Texts(namespace for namespace, _ in pairs), Texts(key for _, key in pairs)


def _values(rows: Sequence[ItemRow]) -> tuple[Texts | Blobs | Numbers, ...]:
    """Return one array for each column behind the keys."""
    return (
        Texts(row.value if isinstance(row.value, str) else None for row in rows),
        Blobs(None if isinstance(row.value, str) else row.value for row in rows),
        Numbers(row.check for row in rows),
        Numbers(row.created_at for row in rows),
        Numbers(row.updated_at for row in rows),
        Texts(optional(row.owner) for row in rows),
        Numbers(row.expires_at for row in rows),
        Numbers(row.ttl for row in rows),
    )


def _row(columns: Sequence[Any]) -> ItemRow:
    """Return a row. If it has lost its value, its check reports that."""
    namespace, key, json, data, check, created_at, updated_at, owner, expires_at, ttl = columns
    value = json if json is not None else bytes(data or b"")
    place = ItemKey(from_column(namespace), from_column(key))
    return ItemRow(place, value, check, created_at, updated_at, from_optional(owner), expires_at, ttl)
