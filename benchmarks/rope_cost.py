"""The stored bytes and the cost of the rope, without a database: python benchmarks/rope_cost.py [--long].

Each workload stores the values of one thread step by step. A step costs the bytes that a database would see: the
bytes of new segments (once as they are, once in their stored form), 60 bytes for each row that they need, the
packed manifests, and 30 bytes for the row of each value. Times are of the last value, best of several, in
multiples of the time that msgpack takes to encode it. `--long` adds a chat of 10,000 messages.
"""

import argparse
import base64
import random
import timeit
from collections.abc import Callable, Sequence

import msgpack

from threadmark.format.rope import Source, deduplicate, join, keys_in, layout, unpack
from threadmark.format.rope.match import Budget, Gap, matches
from threadmark.format.stored import shrink

SEGMENT_ROW = 60
VALUE_ROW = 30


class Thread:
    """The segments of one thread, and the cost of storing and reading them."""

    def __init__(self) -> None:
        self.segments: dict[bytes, bytes] = {}
        self.plain = self.compressed = self.manifests = self.whole = 0
        self.most_segments = self.most_parts = 0
        self.last: tuple[object, bytes, list[Source]] = (None, b"", [])

    def put(self, value: object, sources: Sequence[Source | None]) -> Source:
        """Store a value of the thread; the answer is a source for those to come."""
        data: bytes = msgpack.packb(value)
        self.last = value, data, [source for source in sources if source]
        deduplicated = deduplicate(data, self.last[2])
        packed = deduplicated.packed
        for key, segment in deduplicated.fresh.items():
            if key not in self.segments:
                self.segments[key] = segment
                self.plain += len(segment) + SEGMENT_ROW
                self.compressed += len(shrink(segment)) + SEGMENT_ROW
        self.manifests += len(packed) + VALUE_ROW
        self.whole += len(data) + VALUE_ROW
        self.most_segments = max(self.most_segments, len(keys_in(packed)))
        self.most_parts = max(self.most_parts, len(unpack(packed)))
        if join(layout(packed), self.segments) != data:
            raise SystemExit("what was stored is not what was put")
        return Source(data, packed)

    def times(self) -> tuple[float, float]:
        """Comparing and storing the last value again, as multiples of encoding it."""
        value, data, sources = self.last
        whole, first = Gap(0, len(data)), sources[0].data
        encoding = best_of(lambda: msgpack.packb(value))
        comparing = best_of(lambda: matches(data, whole, first, Budget(1 << 30)))
        storing = best_of(lambda: deduplicate(data, sources))
        return comparing / encoding, storing / encoding

    def start_counting(self) -> None:
        """Forget the costs so far: of a first value, which nothing can save."""
        self.plain = self.compressed = self.manifests = self.whole = 0


Workload = Callable[[Thread, random.Random, int], None]


def best_of(action: Callable[[], object]) -> float:
    """Seconds, of the fastest of several runs."""
    return min(timeit.repeat(action, number=10, repeat=7))


def text(chance: random.Random, length: int) -> str:
    """Text without repetition: base64 of random bytes."""
    return base64.b64encode(chance.randbytes(length * 3 // 4)).decode()


def words(chance: random.Random, length: int) -> str:
    """Text of a vocabulary's words."""
    return " ".join(chance.choices(VOCABULARY, k=length // 3))[:length]


def message(chance: random.Random, number: int, length: int = 600) -> dict[str, object]:
    """One message of a conversation."""
    kind = "human" if number % 2 else "ai"
    return {"type": kind, "id": f"{chance.getrandbits(64):016x}", "content": text(chance, length)}


def chat(thread: Thread, chance: random.Random, steps: int) -> None:
    """A list of messages; each is written by a task before it stands in the channel."""
    messages = []
    channel = None
    for number in range(steps):
        messages.append(message(chance, number))
        write = thread.put(messages[-1], [channel])
        channel = thread.put(messages, [channel, write])


def nested(thread: Thread, chance: random.Random, steps: int) -> None:
    """The same list inside a state that has other members before and after it."""
    messages = []
    channel = None
    notes = {f"note {number}": text(chance, 30) for number in range(5)}
    for number in range(steps):
        messages.append(message(chance, number))
        write = thread.put(messages[-1], [channel])
        channel = thread.put({"messages": messages, "turn": number, "notes": notes}, [channel, write])


def window(thread: Thread, chance: random.Random, steps: int) -> None:
    """A list of messages of mixed lengths, of which the newest fifty are kept."""
    messages = []
    channel = None
    for number in range(steps):
        messages.append(message(chance, number, chance.choice([100, 400, 1600])))
        write = thread.put(messages[-1], [channel])
        channel = thread.put(messages[-50:], [channel, write])


def doc(thread: Thread, chance: random.Random, steps: int) -> None:
    """Thirty files of 10 KB each, and one edit of 10 to 60 bytes a step."""
    files = {f"src/file_{number}.txt": words(chance, 10_000) for number in range(30)}
    channel = thread.put(files, [])
    thread.start_counting()
    for _ in range(steps):
        name = chance.choice(list(files))
        at, added = chance.randrange(len(files[name]) - 60), chance.randint(10, 60)
        removed = chance.choice([0, added, chance.randint(10, 60)])
        files[name] = files[name][:at] + words(chance, added) + files[name][at + removed :]
        channel = thread.put(files, [channel])


def fanout(thread: Thread, chance: random.Random, steps: int) -> None:
    """Sixteen packets a step that repeat one prompt of 20 KB."""
    prompt = words(chance, 20_000)
    packets: list[Source] = []
    for step in range(steps):
        before = packets[:1]
        packets = []
        for number in range(16):
            topic, seed = text(chance, 12), chance.getrandbits(32)
            packet = {"prompt": prompt, "index": number, "step": step, "seed": seed, "topic": topic}
            packets.append(thread.put(packet, [*before, *packets]))


def wide(thread: Thread, chance: random.Random, steps: int) -> None:
    """A header of 120 channels, of which two change a step."""
    names = [f"channel_{number:03d}" for number in range(120)]
    channels = {name: [1, chance.randbytes(70)] for name in names}
    seen = dict.fromkeys(names, 1)
    header = None
    for step in range(steps + 1):
        stamp = f"2025-01-01T00:{step // 60:02d}:{step % 60:02d}.{chance.randrange(10**6):06d}+00:00"
        header = thread.put({"v": 4, "ts": stamp, "channels": channels, "versions_seen": seen}, [header])
        if not step:
            thread.start_counting()
        for name in chance.sample(names, 2):
            channels[name] = [step + 2, chance.randbytes(70)]
            seen[name] = step + 2


def narrow(thread: Thread, chance: random.Random, steps: int) -> None:
    """A header of eight channels with long version strings, of which two change a step."""

    def version(step: int) -> str:
        return f"{step:032}.{chance.random():.16f}"

    names = ["messages", "__start__", "branch:to:agent", "branch:to:tools", "docs", "plan", "left", "user"]
    channels: dict[str, list[str | bytes]] = {name: [version(1), chance.randbytes(20)] for name in names}
    seen = {"__start__": {"__start__": version(1)}, "agent": {}, "tools": {}}
    header = None
    for step in range(steps):
        stamp = f"2025-01-01T00:{step // 60:02d}:{step % 60:02d}.{chance.randrange(10**6):06d}+00:00"
        header = thread.put({"v": 4, "ts": stamp, "channels": channels, "versions_seen": seen}, [header])
        node = chance.choice(["agent", "tools"])
        seen[node] = {f"branch:to:{node}": version(step)}
        for name in ("messages", f"branch:to:{node}"):
            channels[name] = [version(step + 2), chance.randbytes(20)]


WORKLOADS: list[tuple[str, Workload, int, int]] = [
    ("chat", chat, 500, 1250),
    ("nested", nested, 500, 1300),
    ("doc", doc, 150, 800),
    ("fanout", fanout, 150, 16 * 120),
    ("wide", wide, 150, 900),
    ("narrow", narrow, 300, 0),
    ("window", window, 300, 0),
    ("chat", chat, 100, 0),
    ("chat", chat, 1000, 0),
]
LONG: list[tuple[str, Workload, int, int]] = [("chat", chat, 10_000, 0)]
VOCABULARY = [text(random.Random(seed), 12)[: 2 + seed % 9].lower() for seed in range(3000)]


def main() -> None:
    """Print one line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also the workload that takes minutes")
    workloads = WORKLOADS + LONG * parser.parse_args().long
    print("                 |           bytes a step           |      | most in one value | times encoding")
    print("workload   steps |   aim  plain   zstd (manifests)  | less | segments    parts | compare  store")
    for name, workload, steps, aim in workloads:
        thread = Thread()
        workload(thread, random.Random(7), steps)
        plain, compressed = thread.plain + thread.manifests, thread.compressed + thread.manifests
        comparing, storing = thread.times()
        print(
            f"{name:8s} {steps:7d} | {aim or '-':>5} {plain / steps:6.0f} {compressed / steps:6.0f} "
            f"{thread.manifests / steps:12.0f}  | {thread.whole / compressed:3.0f}x | "
            f"{thread.most_segments:8d} {thread.most_parts:8d} | {comparing:7.2f} {storing:6.2f}"
        )


if __name__ == "__main__":
    main()
