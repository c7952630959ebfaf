"""Stores random histories with the rope in Python and the compiled one, and reads damaged manifests with both.

    PYTHONPATH=tests python benchmarks/rope_fuzz.py [histories] [seed]

A thousand histories by default; `scripts/with-sanitizer` in front of it finds wrong accesses to memory. An assertion
ends it if the two differ without reason, or a limit is not kept.
"""

import random
import sys

from speed.ropes import COMPILED, PYTHON, damaged, history, in_turns, packed_manifest, read

STEPS = 30
MANIFESTS = 300


def main(histories: int = 1000, first: int = 1) -> None:
    """Run them, each from another seed."""
    python = compiled = 0
    for seed in range(first, first + histories):
        chance = random.Random(seed)
        stored = history(chance, STEPS, PYTHON, COMPILED, in_turns(chance))
        python, compiled = python + stored[0], compiled + stored[1]
        for _ in range(MANIFESTS):
            packed = damaged(packed_manifest(chance), chance)
            if read(COMPILED, packed) != read(PYTHON, packed):
                raise AssertionError(f"{packed.hex()} is read in two ways")
    values = histories * STEPS
    print(f"{values:,} values and {histories * MANIFESTS:,} damaged manifests, the same in both")
    print(f"bytes stored: {python:,} by Python, {compiled:,} compiled ({compiled / python:.1%})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
