"""A server that is killed under load has all acknowledged writes; benchmarks/redis_rounds.py kills it 100 times."""

from length import times
from redis_rounds import WRITERS, redis_rounds


def test_nothing_acknowledged_is_lost_or_torn_when_the_server_is_killed() -> None:
    result = redis_rounds(times(4, at_length=100), seed=1)
    assert result.lost_or_torn == []
    assert result.puts >= result.killed * WRITERS * 4
