"""Words in dictionaries of the memory saver."""

from collections.abc import Sequence

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.shapes import Scope
from threadmark_store.tables.memory import MemoryRowsOfItems
from threadmark_store.words.contract import WordRow, WordTotals


def rows_over(rows: object) -> "MemoryWords":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the words in a saver's database."""
    return MemoryWords()


class MemoryWords(MemoryRowsOfItems[WordRow]):
    """The rows of each item in a dictionary."""

    table = "word"

    def find(self, scope: Scope, words: Sequence[str]) -> Program[list[WordRow]]:
        def call(tables: Tables) -> list[WordRow]:
            return [rows[word] for rows in self._in(tables, scope) for word in words if word in rows]

        return with_tables(call)

    def totals(self, scope: Scope) -> Program[WordTotals]:
        def call(tables: Tables) -> WordTotals:
            lengths = [next(iter(rows.values())).length for rows in self._in(tables, scope)]
            return WordTotals(len(lengths), sum(lengths))

        return with_tables(call)
