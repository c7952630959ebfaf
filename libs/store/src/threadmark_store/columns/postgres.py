"""Keys and scopes as columns of Postgres, and whether a table exists."""

from collections.abc import Iterable, Sequence
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_postgres.arrays import Texts
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql.connections import LOCK_SETUP
from threadmark_postgres.steps import Rows, execute
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import ItemKey, Scope

# This reads the tables of the catalogue, as its answers after a wait for a lock may come from a cache otherwise.
_EXISTS = """
SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = $1::text
        AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
)
"""


# In the order of their keys, as puts lock them.
_HOLD = """
SELECT
FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
JOIN tm.store_item AS item ON item.namespace = asked.namespace AND item.key = asked.key
ORDER BY item.namespace, item.key
FOR UPDATE OF item
"""


class Table:
    """A table in one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None, name: str, statements: Iterable[str]) -> None:
        self._schema = schema
        self._name = name
        self._statements = tuple(statements)

    def exists(self) -> Program[bool]:
        """Return whether it exists."""
        return exists(self._name, self._schema)

    def create(self) -> Program[None]:
        """Create it if it is missing. Waits for others that set up tables."""
        yield from self.execute(LOCK_SETUP)
        if not (yield from self.exists()):
            for statement in self._statements:
                yield from self.execute(statement)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        """Lock items until the end of the transaction."""
        yield from self.execute(_HOLD, *arrays_of(keys))

    def execute(self, statement: str, *params: Any) -> Program[Rows]:
        """Execute a statement in the schema. Returns its rows."""
        return execute(in_schema(statement, self._schema), params)


def exists(table: str, schema: str | None, *, likely_last: bool = False) -> Program[bool]:
    """Return whether a table exists."""
    ((found,),) = yield from execute(_EXISTS, (table, schema), likely_last=likely_last)
    return bool(found)


def script_of(statements: Iterable[str], schema: str | None) -> str:
    """Return the SQL script of statements."""
    return "".join(f"{in_schema(statement, schema).strip()};\n" for statement in statements)


def key_in(namespace: str, key: str) -> ItemKey:
    """Return the key of columns."""
    return ItemKey(from_column(namespace), from_column(key))


def arrays_of(keys: Iterable[ItemKey]) -> tuple[Texts, Texts]:
    """Return the namespaces and the keys of items as arrays."""
    keys = list(keys)
    return Texts(to_column(key.namespace) for key in keys), Texts(to_column(key.key) for key in keys)


def clauses_of(scope: Scope, first: int) -> tuple[str, list[Any]]:
    """Return the condition of a scope's namespaces and owner, and its parameters, numbered from `first` on."""
    clauses, params = ["true"], list[Any]()
    if scope.prefix:
        prefix = to_column(scope.prefix)
        params += [prefix, *bounds_below(prefix)]
        itself, least, beyond = (f"${number}::text" for number in range(first, first + len(params)))
        within = f"(namespace = {itself} OR namespace >= {least})"
        clauses.append(f"namespace >= {itself} AND namespace < {beyond} AND {within}")
    if scope.owner is not None:
        clauses.append(f"owner = ${first + len(params)}::text")
        params.append(to_column(scope.owner))
    return " AND ".join(clauses), params
