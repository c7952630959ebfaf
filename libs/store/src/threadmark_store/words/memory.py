"""Words in dictionaries of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Sequence

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.words.contract import HEAD, WordRow, WordTotals


def words_over(rows: object) -> "MemoryWords":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the words in the database of a saver's rows."""
    return MemoryWords()


class MemoryWords:
    """The rows of each item in a dictionary."""

    def exists(self) -> Program[bool]:
        return with_tables(lambda _: True)

    def create(self) -> Program[None]:
        return with_tables(lambda _: None)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:  # noqa: ARG002 - there is one writer
        return with_tables(lambda _: None)

    def heads(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        def call(tables: Tables) -> list[WordRow]:
            rows = [row for key in keys for row in _rows(tables).get(key, {}).values()]
            return [row for row in rows if row.word.startswith(HEAD)]

        return with_tables(call)

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[WordRow]) -> Program[None]:
        def call(tables: Tables) -> None:
            added: dict[ItemKey, dict[str, WordRow]] = {key: {} for key in keys}
            for row in rows:
                added[row.key][row.word] = row
            for key, some in added.items():
                if some:
                    tables.set(_rows(tables), key, some)
                else:
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        def call(tables: Tables) -> None:
            for key in keys:
                if all(owner in (None, row.owner) for row in _rows(tables).get(key, {}).values()):
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        def call(tables: Tables) -> list[WordRow]:
            return [rows[word] for rows in _in(tables, scope) for word in words if word in rows]

        return with_tables(call)

    def totals(self, scope: Scope) -> Program[WordTotals]:
        def call(tables: Tables) -> WordTotals:
            lengths = [next(iter(rows.values())).length for rows in _in(tables, scope)]
            return WordTotals(len(lengths), sum(lengths))

        return with_tables(call)

    def keys(
        self,
        cursor: Cursor | None,  # noqa: ARG002 - there is one page
    ) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return with_tables(lambda tables: (list(_rows(tables)), None))


def _rows(tables: Tables) -> dict[ItemKey, dict[str, WordRow]]:
    found: dict[ItemKey, dict[str, WordRow]] = tables.others.setdefault("word", {})
    return found


def _in(tables: Tables, scope: Scope) -> list[dict[str, WordRow]]:
    """Return the rows of each item of a scope."""
    return [
        rows
        for key, rows in _rows(tables).items()
        if is_within(key.namespace, scope.prefix) and all(scope.owner in (None, row.owner) for row in rows.values())
    ]
