"""Statements made of other statements by replacing text.

The text to replace must be present: if it no longer matched, a guard or a lock would be lost silently.
"""


def replaced(statement: str, *replacements: tuple[str, str]) -> str:
    """Return the statement with every occurrence of each old text replaced by the new one."""
    for old, new in replacements:
        if old not in statement:
            raise ValueError(f"this was to be replaced by {new!r}, and is not in the statement: {old!r}")
        statement = statement.replace(old, new)
    return statement
