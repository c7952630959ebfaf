"""Channel versions: the next one, in the kind that a thread already uses."""

import random

from threadmark.errors import ConfigError

Version = int | float | str

_FRACTION_LIMIT = 10**16


def next_version(current: Version | None) -> Version:
    """A version greater than `current`: integers from 1 for a new channel, else the kind it is given.

    Strings are LangGraph's: 32 digits that count, a dot, and a random fraction that tells forks apart. What counts
    is the part before the dot; a string that does not start with digits is refused.
    """
    if current is None:
        return 1
    if isinstance(current, str):
        count, _, _ = current.partition(".")
        if not (count.isascii() and count.isdigit()):
            raise ConfigError(
                f"channel version {current!r} is not one that can be continued: "
                "give an int, a float, or digits before a dot"
            )
        return f"{int(count) + 1:032d}.{random.randrange(_FRACTION_LIMIT):016d}"  # noqa: S311 - not a secret
    if isinstance(current, float):
        return float(int(current) + 1)
    return current + 1
