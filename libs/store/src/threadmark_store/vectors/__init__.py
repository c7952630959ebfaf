"""The vectors of items: the contract of `contract.VectorStore` on each backend, on the saver's own driver."""

from importlib import import_module

from threadmark.saver import Saver
from threadmark_store.items import backend_of
from threadmark_store.vectors.contract import VectorStore


def vectors_of(saver: Saver) -> VectorStore:
    """Return the vectors of a saver's database. Raises ConfigError if this backend has none."""
    module = import_module(f"threadmark_store.vectors.{backend_of(saver)}")
    made: VectorStore = module.vectors_over(saver._store)  # noqa: SLF001 - the backend's rows
    return made
