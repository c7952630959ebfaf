"""The dictionary backend: everything in this process, gone when the saver is.

It keeps the rows that a database would keep, so that it answers for the same semantics; a transaction undoes what
it did when its program fails.
"""

from threadmark.memory.saver import MemorySaver

__all__ = ["MemorySaver"]
