"""Damage to stored rows, for every backend that keeps rows: the changes, and a saver's permitted answers.

Every answer must be right and complete, or a CorruptDataError with the location. If an answer is an error,
`verify` names the damage.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from threadmark import CheckpointTuple, CorruptDataError, Saver
from threadmark.types import Stats


class Field(NamedTuple):
    """One field of one stored row."""

    table: str
    column: str
    row: Any
    """The key of the row in its table."""
    thread_id: str
    value: bytes | int
    """Text is in its bytes."""


class Damage(NamedTuple):
    """The change, and the changed row."""

    kind: str
    field: Field
    value: bytes | int


Key = tuple[str, str, str]
Expected = dict[Key, CheckpointTuple]


LONG_NAME = "a node whose name makes a header too long for a literal " * 10


def fill(saver: Saver, second_node: str = "model") -> Expected:
    """Two threads with two namespaces each, values of all sizes, pending writes; and the results of reading them."""
    chance = random.Random(7)
    for thread_id in ("one", "two"):
        node = "model" if thread_id == "one" else second_node
        for ns in ("", "child:1"):
            config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}
            messages: list[dict[str, Any]] = []
            for step in range(6):
                messages.append({"role": "user", "content": chance.randbytes(300).hex()})
                values = {"messages": list(messages), "turn": step, "note": f"{thread_id} {ns} {step}"}
                versions = dict.fromkeys(values, step + 1)
                checkpoint: Any = {
                    "v": 4,
                    "id": f"1f1e501f-9a39-6dfa-aadb-{chance.randrange(16**11) + step * 16**11:012x}",
                    "ts": f"2026-11-20T00:00:{step:02d}+00:00",
                    "channel_values": values,
                    "channel_versions": versions,
                    "versions_seen": {node: versions},
                    "updated_channels": list(values),
                }
                config = saver.put(config, checkpoint, {"source": "loop", "step": step}, versions)
                saver.put_writes(config, [("messages", [messages[-1]]), ("turn", step)], f"task-{step}", "path")
    return {_key(found): found for found in saver.list(None)}


ABOUT: dict[str, Any] = {
    "title": "Straße",
    "metadata": {"k": "v"},
    "owner": "ada",
    "expires_at": datetime(2096, 1, 1, tzinfo=UTC),
}
"""The fields of a thread that `describe` sets."""


def describe(saver: Saver) -> None:
    """Set all that can be set of the thread "two"."""
    saver.update_thread("two", **ABOUT)


def check_threads(saver: Saver, damage: Damage) -> bool:
    """A listing returns the threads as they were set, or it is refused and `verify` names the damage."""
    threads = {thread.id: thread for thread in saver.list_threads().threads}
    assert damage.field.column == "thread_id" or "one" in threads or damage.field.thread_id == "one", damage
    if any(thread.problems for thread in threads.values()):
        assert is_named(saver), damage
        return False
    if "two" in threads:
        assert {name: getattr(threads["two"], name) for name in ABOUT} == ABOUT, damage
    elif damage.field.column != "thread_id":
        assert is_named(saver), damage
    return True


def damages(fields: Sequence[Field], rounds: int, seed: int) -> Iterator[Damage]:
    """Random damages, each to one of the fields."""
    chance = random.Random(seed)
    for _ in range(rounds):
        field = chance.choice(fields)
        kind = chance.choice(sorted(_KINDS))
        value = _KINDS[kind](chance, field, fields)
        if value != field.value:
            yield Damage(kind, field, value)


def flips(fields: Sequence[Field], rounds: int, seed: int) -> Iterator[Damage]:
    """Damages of a single bit, each to one of the fields; `rounds` of them."""
    chance = random.Random(seed)
    for _ in range(rounds):
        field = chance.choice(fields)
        yield Damage("flip", field, _flip(chance, field, fields))


class Answer(NamedTuple):
    """The result of a way of reading after a damage: "right", "refused", "short" (something is missing) or "wrong"."""

    kind: str
    asked: tuple[str, ...]


def answers(saver: Saver, expected: Expected) -> Iterator[Answer]:
    """Read everything in every way: each checkpoint by its id, the newest of each namespace, each thread's listing."""
    for key, whole in expected.items():
        yield _answer(partial(saver.get_tuple, _config(*key)), whole, key)
    for thread_id in dict.fromkeys(key[0] for key in expected):
        checkpoints = {key: whole for key, whole in expected.items() if key[0] == thread_id}
        for ns, newest in {key[1]: whole for key, whole in sorted(checkpoints.items())}.items():
            yield _answer(partial(saver.get_tuple, _config(thread_id, ns)), newest, (thread_id, ns))
        listing = partial(saver.list, {"configurable": {"thread_id": thread_id}})
        yield _answer(lambda: {_key(each): each for each in listing()}, checkpoints, (thread_id,))  # noqa: B023 - used at once


def check(saver: Saver, expected: Expected, damage: Damage) -> int:
    """Every answer is right or a CorruptDataError, and `verify` names the damage then; how many were refused."""
    given = list(answers(saver, expected))
    assert [answer for answer in given if answer.kind in ("short", "wrong")] == [], damage
    refused = [answer for answer in given if answer.kind == "refused"]
    if refused:
        assert is_named(saver), damage
    return len(refused)


def is_named(saver: Saver) -> bool:
    """Whether `verify` says that something is damaged."""
    return any(problem.kind == "damaged" for problem in saver.verify().problems)


def _answer(read: Callable[[], object], right: object, asked: tuple[str, ...]) -> Answer:
    try:
        found = read()
    except CorruptDataError as error:
        # If another part of the key is damaged, or the file cannot be read, the error cannot say more.
        named = repr(asked[0]) in str(error) or "the file is damaged" in str(error)
        return Answer("refused" if named else "wrong", asked)
    if found == right:
        return Answer("right", asked)
    return Answer("short" if _is_short(found, right) else "wrong", asked)


def _is_short(found: object, right: object) -> bool:
    """Whether something is left out and nothing else is wrong."""
    if isinstance(found, dict) and isinstance(right, dict):
        return all(key in right and (each == right[key] or _is_short(each, right[key])) for key, each in found.items())
    if isinstance(found, CheckpointTuple) and isinstance(right, CheckpointTuple):
        same = found._replace(pending_writes=None) == right._replace(pending_writes=None)
        return same and all(write in (right.pending_writes or []) for write in found.pending_writes or [])
    return found is None


def _config(*location: str) -> dict[str, Any]:
    return {"configurable": dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), location, strict=False))}


def check_listing(saver: Saver, expected: Expected, damage: Damage) -> None:
    """`list(None)` gives nothing wrong, and everything of the threads that were not hit."""
    listed: Expected = {}
    try:
        for found in saver.list(None):
            listed[_key(found)] = found
    except CorruptDataError as error:
        assert error.location, damage
    for key, found in listed.items():
        assert found == expected.get(key), damage
    unhit = {key for key in expected if key[0] != damage.field.thread_id}
    assert unhit <= listed.keys(), damage


def check_counts(saver: Saver, sums: Stats) -> int:
    """`stats` counts the readable rows, of sums that were right, and names the rest. Returns how many it named."""
    counted = saver.stats()
    assert all(problem.kind == "damaged" and "thread" in problem.location for problem in counted.problems)
    for channel, figures in counted.channels.items():
        assert figures.values <= sums.channels[channel].values
        assert figures.bytes_whole <= sums.channels[channel].bytes_whole
    return len(counted.problems)


def _key(found: CheckpointTuple) -> Key:
    location = found.config["configurable"]
    return location["thread_id"], location["checkpoint_ns"], location["checkpoint_id"]


def _flip(chance: random.Random, field: Field, _: Sequence[Field]) -> bytes | int:
    if isinstance(field.value, int):
        return field.value ^ (1 << chance.randrange(40))
    data = bytearray(field.value or b"\0")
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _truncate(chance: random.Random, field: Field, _: Sequence[Field]) -> bytes | int:
    return field.value >> 1 if isinstance(field.value, int) else field.value[: chance.randrange(len(field.value) or 1)]


def _extend(chance: random.Random, field: Field, _: Sequence[Field]) -> bytes | int:
    return field.value + 1 if isinstance(field.value, int) else field.value + chance.choice((b"\0", b"x", field.value))


def _zero(_: random.Random, field: Field, __: Sequence[Field]) -> bytes | int:
    return 0 if isinstance(field.value, int) else bytes(len(field.value))


def _swap(chance: random.Random, field: Field, fields: Sequence[Field]) -> bytes | int:
    return chance.choice([other.value for other in fields if other[:2] == field[:2]])


_KINDS: dict[str, Callable[[random.Random, Field, Sequence[Field]], bytes | int]] = {
    "flip": _flip,
    "truncate": _truncate,
    "extend": _extend,
    "zero": _zero,
    "swap": _swap,
}
