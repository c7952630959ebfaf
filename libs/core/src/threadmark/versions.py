"""Channel versions: computing the next one, of the type that a thread already uses."""

import math
import random

from threadmark.errors import ConfigError, shown

Version = int | float | str

_FRACTION_LIMIT = 10**16
"""Random fractions are below this number: 16 digits."""

_MOST_DIGITS = 600
"""The longest text that every Python converts to an int, whatever limit it was given."""


def next_version(current: Version | None) -> Version:
    """Return a version greater than `current`, of the same type: 1 for a new channel.

    Strings are LangGraph's: a number of 32 digits, a dot, and a random fraction that tells forks apart. Only the number
    grows. A string that does not begin with digits is refused, and so is anything that is not a version.
    """
    if current is None:
        return 1
    if isinstance(current, str):
        count, _, _ = current.partition(".")
        if count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS:
            return f"{int(count) + 1:032d}.{random.randrange(_FRACTION_LIMIT):016d}"  # noqa: S311 - not a secret
    elif isinstance(current, float):
        if math.isfinite(current):
            # Large floats are further apart than 1.
            return max(float(int(current) + 1), math.nextafter(current, math.inf))
    elif isinstance(current, int) and not isinstance(current, bool):
        return current + 1
    raise ConfigError(
        f"channel version {shown(current)} is not one that can be continued: "
        "give an int, a finite float, or digits before a dot"
    )
