"""Compares the compiled serializer with the one in Python: bytes, values, refusals, results for damaged bytes.

Run it: `PYTHONPATH=libs/core/src:tests python benchmarks/serde_both.py [values] [seed]`; a hundred thousand by
default. With `scripts/with-sanitizer` in front of `python` it runs under AddressSanitizer. It ends with the counts,
or at the first difference.
"""

import collections
import random
import sys
import warnings
from itertools import cycle

from serde.hierarchies import Maker
from serde_exact import nested
from serde_fuzz import damaged
from speed.both import Both
from threadmark.runtime.compiled import IN_USE

_ROUND = 1000
"""How many values are stored by the same two serializers."""

_KEPT = 500
"""How many encodings lend parts of themselves to damaged ones."""


def main(values: int = 100_000, seed: int = 1) -> None:
    """Let both store and read that many values, and read damaged encodings of them."""
    if not IN_USE:
        sys.exit("the compiled parts are not in use here")
    warnings.simplefilter("ignore")
    rng, outcomes = random.Random(seed), collections.Counter[str]()
    makers = cycle([Maker(seed).values(), nested(rng)])
    kept: collections.deque[bytes] = collections.deque(maxlen=_KEPT)
    both = Both()
    for number in range(values):
        if number % _ROUND == 0:
            both = Both()
        value = next(next(makers))
        both.agree([value, {"k": value}])
        stored = both.encoding(value)
        if isinstance(stored, Exception):
            outcomes["refused by both"] += 1
            continue
        tag, encoded = stored
        kept.append(encoded)
        found = both.value((rng.choice([tag, "t"]), damaged(encoded, list(kept), rng)))
        outcomes["damaged, and an error of both" if isinstance(found, Exception) else "damaged, and read by both"] += 1
    print(f"{values:,} values on Python {sys.version.split()[0]}: {dict(outcomes)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
