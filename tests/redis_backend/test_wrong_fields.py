"""Every bit of every key's fields: names and values. A read is right, or an error names the thread."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import redis

from damage import Expected, answers, describe, fill, is_named
from going_on import over_all_threads, refused, with_one_thread
from length import times
from redis_backend.processes import RedisProcess
from threadmark import Saver
from threadmark_redis import RedisSaver
from threadmark_redis.keys import thread_keys

ROUNDS = times(20, at_length=2000)


class Place(NamedTuple):
    """A field of a hash."""

    key: bytes
    name: bytes
    value: bytes


@pytest.fixture
def client(server: RedisProcess) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
def saver(server: RedisProcess, prefix: str) -> Iterator[Saver]:
    with RedisSaver(server.url, prefix=prefix, durability="memory", cache_bytes=0) as saver:
        yield saver


@pytest.fixture
def expected(saver: Saver) -> Expected:
    found = fill(saver)
    describe(saver)
    return found


def places(client: Any, prefix: str, hashes: str) -> list[Place]:
    """The fields of the thread "two" in some of its hashes."""
    keys = thread_keys(prefix.encode(), "two")
    named = {"head": keys.head, "checkpoints": keys.checkpoints, "writes": keys.writes, "segments": keys.segments}
    return [Place(named[hashes], *each) for each in sorted(client.hgetall(named[hashes]).items())]


def flipped(chance: random.Random, data: bytes) -> bytes:
    """Bytes with one bit changed."""
    changed = bytearray(data)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def damages(client: Any, prefix: str, hashes: str, *, of_names: bool, seed: int) -> Iterator[str]:
    """Change a bit of a random name, or value, and put it back."""
    chance = random.Random(seed)
    found = [place for place in places(client, prefix, hashes) if place.name if of_names or place.value]
    for _ in range(ROUNDS):
        key, name, value = chance.choice(found)
        other = flipped(chance, name) if of_names else name
        if of_names and other in (each.name for each in found):
            continue
        if of_names:
            client.hdel(key, name)
        client.hset(key, other, value if of_names else flipped(chance, value))
        yield f"{hashes}: {name!r} is {other!r}, {client.hget(key, other)!r}"
        if of_names:
            client.hdel(key, other)
        client.hset(key, name, value)


@pytest.mark.parametrize("of_names", [True, False], ids=["names", "values"])
@pytest.mark.parametrize("hashes", ["head", "checkpoints", "writes", "segments"])
def test_what_is_read_is_right_or_refused(
    client: Any, saver: Saver, expected: Expected, prefix: str, hashes: str, *, of_names: bool
) -> None:
    refusals = 0
    for damage in damages(client, prefix, hashes, of_names=of_names, seed=1):
        kinds = {answer.kind for answer in answers(saver, expected)}
        assert kinds <= {"right", "refused"}, damage
        if "refused" in kinds:
            refusals += 1
            assert is_named(saver), damage
        elif hashes == "writes" and of_names:
            pytest.fail(f"nobody notices {damage}")
    assert refusals or hashes == "head"
    assert {answer.kind for answer in answers(saver, expected)} == {"right"}


@pytest.mark.parametrize("of_names", [True, False], ids=["names", "values"])
@pytest.mark.parametrize("hashes", ["head", "checkpoints", "writes", "segments"])
def test_what_goes_over_all_threads_goes_on(
    client: Any, saver: Saver, expected: Expected, prefix: str, hashes: str, *, of_names: bool
) -> None:
    assert expected
    whole = {key: client.dump(key) for key in client.keys(f"{prefix}*")}
    for damage in damages(client, prefix, hashes, of_names=of_names, seed=2):
        for name, operation in over_all_threads(saver):
            _, problems = operation()
            assert all("'one'" not in problem.location for problem in problems), (name, damage)
        for name, one in with_one_thread(saver, "two"):
            error = refused(one, may_be_gone=True)
            assert error is None or "two" in f"{error.location} {error.problem}", (name, damage)
        assert saver.get_tuple({"configurable": {"thread_id": "one"}}) is not None, damage
        client.delete(*client.keys(f"{prefix}*"))
        for key, dumped in whole.items():
            client.restore(key, 0, dumped)
