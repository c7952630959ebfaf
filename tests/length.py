"""How long the suite is: `THREADMARK_TESTS=all` runs what a change to many parts, or a release, is worth."""

import os

ALL = os.environ.get("THREADMARK_TESTS") == "all"


def times(usual: int, *, at_length: int) -> int:
    """How often something is tried."""
    return at_length if ALL else usual
