"""The rope twice, in Python and compiled, and values for both that are made to be hard to compare."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from rope_limits import check_limits
from threadmark.format import rope as ropes
from threadmark.format.digests import segment_key
from threadmark.format.rope import Deduplicated, Manifest, Slice, Source, pack
from threadmark.runtime.compiled import only_references
from threadmark_speed import manifests, rope

LONGEST = 30_000


class Rope(NamedTuple):
    """The functions of one of the two."""

    deduplicate: Callable[..., Deduplicated]
    patch: Callable[..., Deduplicated]
    layout: Callable[..., Any]
    keys_in: Callable[..., tuple[bytes, ...]]
    join: Callable[..., bytes]


def _in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without anything compiled."""

    def called(*given: Any, **named: Any) -> Any:
        with only_references():
            return function(*given, **named)

    return called


STANDING: tuple[Callable[..., Any], ...] = (ropes.deduplicate, ropes.patch, ropes.layout, ropes.keys_in, ropes.join)
PYTHON = Rope(*map(_in_python, STANDING))
COMPILED = Rope(rope.deduplicate, rope.patch, manifests.layout, manifests.keys_in, manifests.join)


def in_turns(chance: random.Random) -> Rope:
    """Both, as if some of the processes that share a database had the one and some the other."""

    def patch(data: bytes, source: Source | None) -> Deduplicated:
        return chance.choice([PYTHON, COMPILED]).patch(data, source)

    def deduplicate(data: bytes, sources: Sequence[Source], *, beside: Collection[bytes]) -> Deduplicated:
        # By the length, so that equal arguments are for the same one.
        return (PYTHON, COMPILED)[len(data) % 2].deduplicate(data, sources, beside=beside)

    return PYTHON._replace(deduplicate=deduplicate, patch=patch)


def outcome(call: Callable[..., Any], *given: object) -> object:
    """The result of a call, or the class and the text of its error."""
    try:
        returned = call(*given)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other one must raise it, too
        return type(error), str(error)
    return returned


def read(of: Rope, packed: bytes) -> tuple[object, ...]:
    """All that reading a packed manifest tells."""

    def fields(packed: bytes) -> object:
        found = of.layout(packed)
        return found.keys, found.sizes, found.parts, found.packed, found.length, found.literals()

    return outcome(fields, packed), outcome(of.keys_in, packed)


def manifest(chance: random.Random) -> Manifest:
    """A manifest of a few segments, short and very long ones."""
    sizes = [chance.choice([1, 5, 130, 1000, 1 << 40]) for _ in range(chance.randint(0, 10))]
    parts: list[Slice | bytes] = []
    for _ in range(chance.randint(0, 30)):
        if sizes and chance.random() < 0.8:
            number = chance.randrange(len(sizes))
            size = sizes[number]
            start = chance.choice([0, chance.randrange(size)])
            length = chance.choice([size - start, chance.randint(1, size - start)])
            parts.append(Slice(segment_key(b"%d" % number), size, start, length))
        else:
            parts.append(chance.randbytes(chance.randint(1, 200)))
    return tuple(parts)


def damaged(packed: bytes, chance: random.Random) -> bytes:
    """A manifest in which some bytes were replaced, and which may have lost its end or have too much there."""
    bytes_ = bytearray(packed)
    for _ in range(chance.randint(1, 4)):
        bytes_[chance.randrange(len(bytes_))] = chance.choice([0, 127, 128, 255, chance.randrange(256)])
    if chance.random() < 0.3:
        del bytes_[chance.randrange(len(bytes_)) :]
    if chance.random() < 0.3:
        bytes_ += chance.randbytes(chance.randint(1, 9))
    return bytes(bytes_)


def edited(data: bytes, chance: random.Random) -> bytes:
    """The value after a change: a usual one, or one that only an attacker makes."""
    at, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    few = min(end, at + chance.randint(0, 80))
    size = chance.choice([8, 50, 300, 2000])
    new = chance.choice([chance.randbytes(size), bytes(size), b"ab" * size, bytes(chance.choices(b"ab", k=size))])
    made = {
        0: lambda: data[:at] + new + data[few:],
        1: lambda: data[:at] + new[: few - at] + data[few:],
        2: lambda: data + new,
        3: lambda: new[:3] + data,
        4: lambda: data[end:] + data[at:end] + data[:at],
        5: lambda: data[:at] + data[at:end][::-1] + data[end:],
        6: lambda: data[:at] + data[at:end] * chance.randint(0, 6) + data[end:],
        7: lambda: b"".join(shuffled([data[start : start + size] for start in range(0, len(data), size)], chance)),
        8: lambda: bytes(byte ^ (start % size == 0) for start, byte in enumerate(data)),
        9: lambda: data[at:end],
        10: lambda: b"".join(data[start : start + size] + new[:2] for start in range(0, len(data), size)),
    }
    # The first four are usual.
    return (made[chance.choice([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, *range(4, 11)])]() or new)[:LONGEST]


def shuffled(pieces: list[bytes], chance: random.Random) -> list[bytes]:
    """The pieces in another order."""
    return chance.sample(pieces, len(pieces))


class Thread:
    """The segments of a thread and the cost of its values, each of which is checked."""

    def __init__(self) -> None:
        self.segments: dict[bytes, bytes] = {}
        self.stored = 0

    def keep(self, data: bytes, deduplicated: Deduplicated, beside: frozenset[bytes] = frozenset()) -> Source:
        """Store a value; the answer is a source for those to come."""
        for key, segment in deduplicated.fresh.items():
            self.stored += 0 if key in self.segments else len(segment) + 60
            self.segments[key] = segment
        self.stored += len(deduplicated.packed)
        check_limits(data, deduplicated, self.segments, beside)
        for of in (PYTHON, COMPILED):
            assert of.join(of.layout(deduplicated.packed), self.segments) == data
        # As if it had been read: without the manifest that Python has at hand.
        return Source(data, deduplicated.packed)


def history(chance: random.Random, steps: int, *ropes: Rope) -> list[int]:
    """Store one history of edits with each of the ropes. Returns the bytes that each has stored."""
    threads = [Thread() for _ in ropes]
    kept: list[list[Source]] = []  # of each value, its source in each thread
    for data, numbers, is_patch, some in values(chance, steps):
        stored = []
        for place, (of, thread) in enumerate(zip(ropes, threads, strict=True)):
            sources = [kept[number][place] for number in numbers]
            if is_patch:
                stored.append(thread.keep(data, of.patch(data, sources[0] if sources else None)))
                continue
            beside = frozenset(key for key in thread.segments if some and key[0] < some)
            deduplicated = of.deduplicate(data, sources, beside=beside)
            assert of.deduplicate(bytes(bytearray(data)), tuple(sources), beside=[*beside]) == deduplicated
            stored.append(thread.keep(data, deduplicated, beside))
        kept.append(stored)
    return [thread.stored for thread in threads]


def values(chance: random.Random, steps: int) -> Iterator[tuple[bytes, list[int], bool, int]]:
    """Yield a value, the numbers of those to compare with, whether to patch it, and the bytes read with it."""
    patches = chance.random() < 0.3
    data = chance.randbytes(chance.choice([100, 700, 1500, 6000] if patches else [50, 500, 5000, 20_000]))
    longest = 2500 if len(data) < 6000 else 12_000
    made = [data]
    yield data, [], patches, 0
    for step in range(1, steps):
        base = step - 1 - (chance.randrange(min(step, 5)) if chance.random() < 0.2 else 0)
        data = edited(made[base], chance)
        if patches:
            data = data[:longest]
        others = [chance.randrange(step) for _ in range(chance.choice([0, 0, 0, 1, 3]))]
        made.append(data)
        yield data, [base, *others], patches, chance.choice([0, 0, 128])


def packed_manifest(chance: random.Random) -> bytes:
    """The packed form of some manifest."""
    return pack(manifest(chance))
