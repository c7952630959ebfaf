"""A dictionary that is kept in a file.

`PersistentDict` is a dict with a file behind it. The file is a `Storage`: its keys and values are read whole when it is
opened, and the differences are stored in one transaction. A `MemorySaver` with a file has one, too.
"""

from threadmark.persistent.dictionary import PersistentDict

__all__ = ["PersistentDict"]
