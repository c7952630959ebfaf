"""Damaged fields of pending writes: what was put is read or an error is raised, and never anything else."""

import random

import redis

from damage import answers, fill
from length import times
from redis_backend.processes import RedisProcess
from threadmark import StoreError
from threadmark_redis import RedisSaver

ROUNDS = times(40, at_length=600)


def test_damaged_pending_writes_are_read_right_or_refused(server: RedisProcess, prefix: str) -> None:
    chance, refused = random.Random(3), 0
    with (
        RedisSaver(server.url, prefix=prefix, durability="memory", cache_bytes=0) as saver,
        redis.Redis.from_url(server.url) as client,
    ):
        expected = fill(saver)
        fields = [(key, name) for key in client.keys(f"{prefix}*w") for name in client.hkeys(key)]
        for _ in range(ROUNDS):
            key, name = chance.choice(fields)
            whole = client.hget(key, name)
            assert isinstance(whole, bytes)
            damaged = bytearray(whole)
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            client.hset(key, name, bytes(damaged))
            try:
                kinds = {answer.kind for answer in answers(saver, expected)}
                assert kinds <= {"right", "refused"}, (name, bytes(damaged))
                refused += "refused" in kinds
            except StoreError:  # a script cannot read the field at all
                refused += 1
            client.hset(key, name, whole)
        assert refused > 0
        assert {answer.kind for answer in answers(saver, expected)} == {"right"}
