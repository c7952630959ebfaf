"""Statements made of other statements by replacing text.

What is replaced must stand there: a text that no longer matches would leave out a guard, or a lock, without a word.
"""


def replaced(statement: str, *replacements: tuple[str, str]) -> str:
    """Return a statement with each first text, wherever it stands, replaced by the second."""
    for old, new in replacements:
        if old not in statement:
            raise ValueError(f"this was to be replaced by {new!r}, and is not in the statement: {old!r}")
        statement = statement.replace(old, new)
    return statement


def without(statement: str, *parts: str) -> str:
    """Return a statement without these parts of it."""
    return replaced(statement, *((part, "") for part in parts))
