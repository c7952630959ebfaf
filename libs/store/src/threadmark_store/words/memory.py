"""Words in dictionaries of the memory saver."""

from collections.abc import Sequence

from threadmark.memory.tables import Tables
from threadmark_store.shapes import ItemKey, Scope
from threadmark_store.tables.memory import MemoryRowsOfItems, program
from threadmark_store.words.contract import HEAD, WordRow, WordTotals


class MemoryWords(MemoryRowsOfItems[WordRow]):
    """The rows of each item in a dictionary."""

    table = "word"

    @program
    def rows(self, tables: Tables, keys: Sequence[ItemKey]) -> list[WordRow]:
        return [row for row in self._rows_of(tables, keys) if row.word.startswith(HEAD)]

    @program
    def find(self, tables: Tables, scope: Scope, words: Sequence[str]) -> list[WordRow]:
        return [rows[word] for rows in self._in(tables, scope) for word in words if word in rows]

    @program
    def totals(self, tables: Tables, scope: Scope) -> WordTotals:
        lengths = [next(iter(rows.values())).length for rows in self._in(tables, scope)]
        return WordTotals(len(lengths), sum(lengths))


rows_over = MemoryWords
