"""Why a write is refused that was only to note a read, such as that what was read lives on.

The result of the read is worth more than the note, which the next reader can make.
"""

from threadmark.errors import ConfigError, ReplicationError, StoreError


class ReadOnlyError(StoreError):
    """The saver only reads, or its file cannot be written to. Nothing was stored."""


class InsideError(ConfigError):
    """A call in the block of a transaction does not belong to it, and would wait for its end."""


REFUSALS = (ReadOnlyError, InsideError, ReplicationError)
"""With the last one a pair has lost a side, so it is only read, or the sides are not equal yet."""
