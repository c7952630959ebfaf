"""The memory backend: everything in dictionaries of this process, gone with the saver.

It keeps the rows that a database would keep, so that it follows the same semantics; if a program fails, its transaction
is undone.
"""

from threadmark.memory.saver import MemorySaver

__all__ = ["MemorySaver"]
