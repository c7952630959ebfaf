"""The index of threads: listings are right if it is a little behind, and it can be rebuilt."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from postgres.steps import play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.processes import RedisProcess
from threadmark.program import Program
from threadmark_redis import RedisSaver
from threadmark_redis.index import STALE, unindex
from threadmark_redis.keys import SHARDS, index_keys, shard_of, thread_keys


def _ids(saver: RedisSaver, sort: str, limit: int = 100) -> list[str]:
    """The ids of all threads, a page at a time."""
    found, cursor = [], None
    while True:
        page = saver.list_threads(sort=sort, limit=limit, cursor=cursor)  # type: ignore[arg-type]  # one of the sorts
        found += [each.id for each in page.threads]
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_threads_are_listed_by_their_real_update_however_stale_their_places(saver: RedisSaver, limit: int) -> None:
    names = [f"thread {number:02}" for number in range(30)]
    configs = {name: play(saver, name, 1) for name in names}
    order = names[::3] + names[1::3] + names[2::3]
    for name in order:
        saver.put(configs[name], *step(1))
    assert _ids(saver, "-updated", limit) == order[::-1]
    assert _ids(saver, "updated", limit) == order
    assert _ids(saver, "created", limit) == names
    assert _ids(saver, "-id", limit) == names[::-1]


def test_a_put_moves_a_thread_in_the_index_when_its_place_is_old(
    server: RedisProcess, prefix: str, saver: RedisSaver
) -> None:
    config = play(saver, "one", 1)
    places = index_keys(prefix.encode(), shard_of("one")).updated
    first = server.client.zscore(places, "one")
    config = saver.put(config, *step(1))
    assert server.client.zscore(places, "one") == first
    head = thread_keys(prefix.encode(), "one").head
    server.client.hset(head, "y", int(first or 0) - STALE)
    saver.put(config, *step(2))
    assert (server.client.zscore(places, "one") or 0) > (first or 0)


@pytest.mark.parametrize("number", range(5))
def test_a_thread_that_the_index_lacks_is_named_and_listed_again(
    server: RedisProcess, prefix: str, saver: RedisSaver, number: int
) -> None:
    for name in ("one", "two"):
        play(saver, name, 2)
        saver.update_thread(name, owner="ada", title=name, expires_at=timedelta(days=1))
    server.client.delete(*(index_keys(prefix.encode(), shard)[number] for shard in range(SHARDS)))
    (problem,) = saver.verify().problems
    assert "2 threads" in problem.problem
    assert "repair=True" in problem.problem
    verified = saver.verify(repair=True)
    assert (verified.threads, verified.problems) == (2, [])
    for sort in ("updated", "-created", "id"):
        assert sorted(_ids(saver, sort)) == ["one", "two"]
    assert {each.id for each in saver.list_threads(owner="ada").threads} == {"one", "two"}
    assert saver.count_threads(owner="ada") == 2
    assert all(server.client.exists(index_keys(prefix.encode(), shard_of(name))[number]) for name in ("one", "two"))


def test_an_entry_that_was_left_behind_shows_nothing_and_is_taken_out(
    server: RedisProcess, prefix: str, saver: RedisSaver
) -> None:
    for name in ("one", "gone"):
        play(saver, name, 1)
        saver.update_thread(name, owner="ada")
    server.client.delete(*thread_keys(prefix.encode(), "gone"))
    assert _ids(saver, "-updated") == ["one"]
    assert [each.id for each in saver.list_threads(owner="ada").threads] == ["one"]
    assert [found.config["configurable"]["thread_id"] for found in saver.list(None)] == ["one"]
    assert saver.verify().problems == []
    saver.verify(repair=True)
    entries: Any = [server.client.zrange(key, 0, -1) for key in index_keys(prefix.encode(), shard_of("gone"))]
    assert not any(member.endswith(b"gone") for members in entries for member in members)
    play(saver, "gone", 1)
    assert _ids(saver, "id") == ["gone", "one"]


def test_many_threads_of_one_moment_are_all_listed(server: RedisProcess, prefix: str, saver: RedisSaver) -> None:
    names = [f"thread {number:03}" for number in range(120)]
    for name in names:
        saver.create_thread(name)
        keys = index_keys(prefix.encode(), shard_of(name))
        server.client.hset(thread_keys(prefix.encode(), name).head, mapping={"a": 5, "u": 5, "y": 5})
        server.client.zadd(keys.created, {name: 5})
        server.client.zadd(keys.updated, {name: 5})
    assert _ids(saver, "created", 11) == names
    assert _ids(saver, "-updated", 11) == names[::-1]


def test_a_thread_that_was_deleted_leaves_the_index_and_a_tombstone_that_expires(
    server: RedisProcess, prefix: str, saver: RedisSaver
) -> None:
    play(saver, "one", 2)
    saver.delete_thread("one")
    assert saver.list_threads().threads == []
    assert saver.count_threads() == 0
    keys = thread_keys(prefix.encode(), "one")
    assert [server.client.exists(key) for key in keys] == [1, 0, 0, 0, 0]
    assert 0 < server.client.pttl(keys.head) <= 86_400_000
    assert not any(server.client.exists(key) for shard in range(SHARDS) for key in index_keys(prefix.encode(), shard))
    play(saver, "one", 1)
    assert server.client.pttl(keys.head) == -1
    assert saver.get_tuple(thread("one")) is not None


def test_a_thread_that_begins_anew_before_its_deletion_reaches_the_index_stays_there(
    server: RedisProcess, prefix: str, saver: RedisSaver
) -> None:
    play(saver, "one", 1)

    def unindex_late(*args: Any) -> Program[None]:
        with RedisSaver(server.url, prefix=prefix, **OPTIONS) as other:
            play(other, "one", 1)
        return unindex(*args)

    with patch("threadmark_redis.thread_store.unindex", unindex_late):
        assert saver.delete_thread("one")
    assert _ids(saver, "id") == _ids(saver, "updated") == ["one"]
    assert saver.verify().problems == []


def test_verify_names_a_thread_of_which_a_key_is_gone_and_goes_on(
    server: RedisProcess, prefix: str, saver: RedisSaver
) -> None:
    for name in ("one", "two"):
        play(saver, name, 2)
    server.client.delete(thread_keys(prefix.encode(), "one").writes)
    verified = saver.verify()
    assert (verified.threads, verified.checkpoints) == (2, 2)
    (problem,) = verified.problems
    assert problem.location == "thread 'one'"
    assert "evicted" in problem.problem
