"""Converting any Python string to text that every database can hold, in the same order.

Databases refuse what Python allows: Postgres has no NUL in text, and UTF-8 has no lone surrogates. `to_column` maps any
string to one that both accept. Ordinary text maps to itself, so that stored names stay readable. The mapping keeps the
order of code points, because ids are compared in SQL.
"""

# NUL and U+0001 become pairs that begin with U+0001. Surrogates become pairs that begin with U+D7FF, which is the code
# point just below them and not assigned to a character.
_LOW, _HIGH = "\x01", "\ud7ff"
_ESCAPED = {0: _LOW + "\x01", 1: _LOW + "\x02", 0xD7FF: _HIGH + "\x01"}
_ESCAPED |= {code: _HIGH + chr(2 + code - 0xD800) for code in range(0xD800, 0xE000)}

ESCAPES = _LOW, _HIGH
"""What an escaped character begins with: a column with neither is the text itself."""


def to_column(text: str) -> str:
    """Return text without NUL and lone surrogates, from which `from_column` restores the original."""
    if text.isascii():  # known at once, while `isprintable` looks at each character
        if "\0" not in text and _LOW not in text:
            return text
    elif text.isprintable() and _HIGH not in text:
        return text
    return text.translate(_ESCAPED)


def from_column(column: str) -> str:
    """Return the string that `to_column` was given. A damaged column gives another string, which no check accepts."""
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
