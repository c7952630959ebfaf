"""The vectors of items: the contract of `contract.VectorStore` on each backend, on the saver's own driver."""

from threadmark.saver import Saver
from threadmark_store.backends import module_of
from threadmark_store.vectors.contract import VectorStore


def vectors_of(saver: Saver) -> VectorStore:
    """Return the vectors of a saver's database. Raises ConfigError if this backend has none."""
    module, rows = module_of(saver, "vectors")
    made: VectorStore = module.vectors_over(rows)
    return made
