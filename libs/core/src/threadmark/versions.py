"""Channel versions: the next one, in the kind that a thread already uses."""

import math
import random

from threadmark.errors import ConfigError, shown

Version = int | float | str

_FRACTION_LIMIT = 10**16
_MOST_DIGITS = 600
"""Every Python reads so many digits as a number, whatever it was told to allow."""


def next_version(current: Version | None) -> Version:
    """A version greater than `current`: integers from 1 for a new channel, else the kind it is given.

    Strings are LangGraph's: 32 digits that count, a dot, and a random fraction that tells forks apart. What counts
    is the part before the dot; a string that does not start with digits is refused, and so is what is no version.
    """
    if current is None:
        return 1
    if isinstance(current, str):
        count, _, _ = current.partition(".")
        if count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS:
            return f"{int(count) + 1:032d}.{random.randrange(_FRACTION_LIMIT):016d}"  # noqa: S311 - not a secret
    elif isinstance(current, float):
        if math.isfinite(current):
            # Where floats are further apart than 1, the next one counts.
            return max(float(int(current) + 1), math.nextafter(current, math.inf))
    elif isinstance(current, int) and not isinstance(current, bool):
        return current + 1
    raise ConfigError(
        f"channel version {shown(current)} is not one that can be continued: "
        "give an int, a finite float, or digits before a dot"
    )
