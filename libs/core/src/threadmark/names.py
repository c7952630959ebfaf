"""Names of threads, namespaces, checkpoints, tasks and channels. A name may be any text up to a limit of length.

An instance of a subclass of `str` is taken as its plain text, and comes back as that.
"""

from threadmark.errors import ConfigError, shown
from threadmark.text import to_column

# Together these limit the longest key of a row. The key of a pending write has a thread, a namespace and two ids; that
# of a checkpoint has a rank, which may be as long as two ids. Postgres can index 2,704 bytes.
THREAD_ID_BYTES = 512
NAMESPACE_BYTES = 1536
ID_BYTES = 256

MESSAGES_NS = "__messages__"
"""The namespace of a conversation's messages, each a checkpoint of its own (`interfaces/`).

It is reserved: a message shares no bytes with anything else, so that it can be removed without looking at anything
else. No engine has a namespace of this name, as those of subgraphs are named after nodes, and a node's name with two
underscores on either side is one of LangGraph's own.
"""

MOST_BYTES = 6
"""The most bytes that one character takes in a row: a lone surrogate is stored as two other characters."""


def as_text(name: object, what: str) -> str:
    """Return a name as a plain `str`. Raises ConfigError if it is not a string."""
    if type(name) is str:
        return name
    if isinstance(name, str):
        return str.__str__(name)  # `str(name)` of a subclass, such as an enum, may be another text
    raise ConfigError(f"{what} must be a string, not {type(name).__name__}")


def check_length(name: str, limit: int, what: str) -> None:
    """Raise ConfigError if a name is too long to be part of a row's key, in bytes of UTF-8 as the row holds it."""
    if len(name) * MOST_BYTES > limit:
        size = len(to_column(name).encode())
        if size > limit:
            raise ConfigError(
                f"{what} {shown(name)} has {size} bytes, and at most {limit} are allowed: "
                "give a shorter one, such as a digest of it"
            )
