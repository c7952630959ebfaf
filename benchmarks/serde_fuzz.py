"""Damages encoded values at random and reads them: every result must be a value or one of our errors.

Run it: `PYTHONPATH=libs/core/src:tests python benchmarks/serde_fuzz.py [inputs] [seed]`; a million by
default. It starts from the encodings of every kind in the tests' catalogue, limits the memory of its own
process, and ends with the outcomes of the inputs, the longest single one, and the memory it took.
"""

import collections
import random
import resource
import sys
import time
import warnings

from serde.catalogue import EXACT
from serde.specimens import Model, Point
from threadmark.errors import CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Serde

MEMORY_LIMIT = 2 << 30
OURS = (CorruptDataError, ForbiddenTypeError, SerializationError)
# Bytes that mean something: headers of long things, marks, and lengths at their limits.
TELLING = [
    b"\xdd\xff\xff\xff\xff",
    b"\xdc\xff\xff",
    b"\xdf\x7f\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xd4T",
]
TELLING += [
    b"\xc1",
    b"\xc0",
    b"\x90",
    b"\x80",
    b"\xa0",
    b"\xc7\x00T",
    b"\xd5T",
    b"\xcf" + b"\xff" * 8,
    b"\xcb\x7f\xf8",
]


def starting_points(serde: Serde) -> list[bytes]:
    """Encodings of every kind, and of some together."""
    values = [make() for kinds in EXACT.values() for make in kinds.values()]
    values += [{"a": [Point(value), Model(x=value)]} for value in values]
    return [serde.dumps_typed(value)[1] for value in values]


def damaged(encoded: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to four damages, one after the other."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        start = rng.randrange(len(encoded) + 1)
        end = min(len(encoded), start + rng.choice([0, 1, 1, 2, 8]))
        other = rng.choice(others)
        cut = rng.randrange(len(other) + 1)
        middle = rng.choice([b"", rng.randbytes(1), rng.randbytes(3), rng.choice(TELLING), other[cut : cut + 30]])
        encoded = encoded[:start] + middle + encoded[end:]
    return encoded


def main(inputs: int = 1_000_000, seed: int = 1) -> None:
    """Read that many inputs; an error that is not ours ends it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    warnings.simplefilter("ignore")
    serde, rng = Serde(), random.Random(seed)
    points = starting_points(serde)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: collections.Counter[str] = collections.Counter()
    longest = 0.0
    for _ in range(inputs):
        encoded = damaged(rng.choice(points), points, rng)
        tag = rng.choice("ttttm")
        start = time.perf_counter()
        try:
            serde.loads_typed((tag, encoded))
            outcomes["a value"] += 1
        except OURS as error:
            outcomes[type(error).__name__] += 1
        except BaseException:
            print(f"not one of our errors, from {(tag, encoded)!r}")
            raise
        longest = max(longest, time.perf_counter() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{inputs:,} inputs: {dict(outcomes)}")
    print(f"the longest took {longest * 1000:.1f} ms; memory grew by {grown / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
