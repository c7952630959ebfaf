"""The words of a replicated saver's items. They are not copied: `Store.reindex` finds them again on the other side."""

from threadmark_store.pairs.tables import PairTable


def rows_over(rows: object) -> PairTable:
    """Return the words of a pair."""
    return PairTable("words")
