"""The words of items, for a search by text: the contract of `contract.WordStore` on each backend."""

from importlib import import_module

from threadmark.saver import Saver
from threadmark_store.items import backend_of
from threadmark_store.words.contract import WordStore


def words_of(saver: Saver) -> WordStore | None:
    """Return the words of a saver's database, None if this backend has none."""
    backend = backend_of(saver)
    if backend == "redis":
        return None
    module = import_module(f"threadmark_store.words.{backend}")
    made: WordStore = module.words_over(saver._store)  # noqa: SLF001 - the backend's rows
    return made
