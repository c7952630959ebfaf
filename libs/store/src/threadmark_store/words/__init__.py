"""The words of items, for a search by text: the contract of `contract.WordStore` on each backend."""

from threadmark.saver import Saver
from threadmark_store.backends import backend_of, module_of
from threadmark_store.words.contract import WordStore


def words_of(saver: Saver) -> WordStore | None:
    """Return the words of a saver's database, None if this backend has none."""
    if backend_of(saver) == "redis":
        return None
    module, rows = module_of(saver, "words")
    made: WordStore = module.words_over(rows)
    return made
