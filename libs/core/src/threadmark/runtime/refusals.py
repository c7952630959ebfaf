"""Refusals of a write that only follows a read, such as one that extends the life of a thread or an item.

The caller gets the result of the read all the same: the next reader can make that write.
"""

from threadmark.errors import ConfigError, ReplicationError, StoreError


class ReadOnlyError(StoreError):
    """The saver only reads, or its file cannot be written to. Nothing was stored."""


class InsideError(ConfigError):
    """A call in the block of a transaction does not belong to it, and would wait for its end."""


REFUSALS = (ReadOnlyError, InsideError, ReplicationError)
"""With the last one a pair has lost a side, so it is only read, or the sides are not equal yet."""
