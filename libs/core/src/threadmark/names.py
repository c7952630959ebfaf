"""Names of threads, namespaces, checkpoints, tasks and channels, and text that every database can hold.

A name may be any text up to a limit of length. Databases refuse some text that Python allows: Postgres has no NUL in
text, and UTF-8 has no lone surrogates. `to_column` maps any string to one that both accept. Ordinary text maps to
itself, so that stored names stay readable. The mapping keeps the order of code points, because ids are compared in SQL.
"""

from threadmark.errors import ConfigError, short_repr

# Together these limit the longest key of a row. The key of a pending write has a thread, a namespace and two ids; that
# of a checkpoint has a rank, which may be as long as two ids. Postgres can index 2,704 bytes.
THREAD_ID_BYTES = 512
NAMESPACE_BYTES = 1536
ID_BYTES = 256

MESSAGES_NS = "__messages__"
"""The namespace of a conversation's messages, each of which is a checkpoint (`interfaces/`).

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
                f"{what} {short_repr(name)} has {size} bytes, and at most {limit} are allowed: "
                "give a shorter one, such as a digest of it"
            )


# NUL and U+0001 become pairs that begin with U+0001. Surrogates become pairs that begin with U+D7FF, which is the code
# point just below them and not assigned to a character.
_LOW, _HIGH = "\x01", "\ud7ff"
_ESCAPED = {0: _LOW + "\x01", 1: _LOW + "\x02", 0xD7FF: _HIGH + "\x01"}
_ESCAPED |= {code: _HIGH + chr(2 + code - 0xD800) for code in range(0xD800, 0xE000)}

ESCAPES = _LOW, _HIGH
"""The beginning of an escaped character: a column with neither is the text itself."""


def to_column(text: str) -> str:
    """Return text without NUL and lone surrogates, from which `from_column` restores the original."""
    if text.isascii():  # known at once, while `isprintable` looks at each character
        if "\0" not in text and _LOW not in text:
            return text
    elif text.isprintable() and _HIGH not in text:
        return text
    return text.translate(_ESCAPED)


def from_column(column: str) -> str:
    """Return the argument of `to_column`. A damaged column gives another string, which no check accepts."""
    if _LOW not in column and _HIGH not in column:
        return column
    text: list[str] = []
    characters = iter(column)
    for character in characters:
        if character == _LOW:
            text.append(chr(max(ord(next(characters, _LOW)) - 1, 0)))
        elif character == _HIGH:
            code = ord(next(characters, _LOW))
            text.append(_HIGH if code == 1 else chr((code - 2 + 0xD800) % 0x110000))
        else:
            text.append(character)
    return "".join(text)
