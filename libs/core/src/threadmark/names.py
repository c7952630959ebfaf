"""Names: of threads, namespaces, checkpoints, tasks and channels. Any text is one; here is how long it may be.

A name that is an instance of a subclass of `str` stands for its plain text, and comes back as that.
"""

from threadmark.errors import ConfigError, shown
from threadmark.text import to_column

# Together they fill the longest key of a row: that of a pending write has all four, that of a checkpoint its rank,
# which may be as long as two ids. An index of Postgres takes 2,704 bytes, and other databases less.
THREAD_ID_BYTES = 512
NAMESPACE_BYTES = 1536
ID_BYTES = 256

MOST_BYTES = 6
"""What one letter may take in a row: a lone surrogate is stored as two others."""


def as_text(name: object, what: str) -> str:
    """Return a name as a plain `str`. Raises ConfigError if it is not a string."""
    if type(name) is str:
        return name
    if isinstance(name, str):
        return str.__str__(name)  # a class of its own, such as an enum, may show itself as something else
    raise ConfigError(f"{what} must be a string, not {type(name).__name__}")


def check_length(name: str, limit: int, what: str) -> None:
    """ConfigError where a name is too long to be part of a row's key, in bytes of UTF-8 as the row holds it."""
    if len(name) * MOST_BYTES > limit:
        size = len(to_column(name).encode())
        if size > limit:
            raise ConfigError(
                f"{what} {shown(name)} has {size} bytes, and {limit} is the most: "
                "give a shorter one, such as a digest of it"
            )
