"""Several processes with one cache, forks, clusters, and a database that is another one from one moment to the next."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from announced import announced
from caching.held import PATIENCE, OnRedis, chat, expected, put, state
from children import child, finished, line_from, send_line
from redis_backend import cluster, processes, sentinel
from threadmark import ConfigError, MemoryCache, MemorySaver, Saver, cached
from threadmark import open as open_saver
from threadmark.caching import Cache, CacheRequest, Filling
from threadmark.types import CachedSaver
from threadmark_cli.opening import path_or_url
from threadmark_redis import RedisCache
from threadmark_sqlite import SqliteSaver

_OTHER = """
import sys
sys.path.insert(0, sys.argv[4])
from datetime import timedelta
from caching.held import PATIENCE, chat, expected, state
from threadmark import cached
from threadmark_redis import RedisCache

with cached("sqlite:///" + sys.argv[1], RedisCache(sys.argv[2], prefix=sys.argv[3]), wait=PATIENCE) as saver:
    for line in sys.stdin:
        if line.strip() == "read":
            print("same" if state(saver, "thread") == expected() else "another", flush=True)
        else:
            print(saver.delete_thread("thread"), flush=True)
"""


def test_what_one_process_has_read_others_find_and_what_one_deletes_is_gone_for_all(tmp_path: Path) -> None:
    path, held = tmp_path / "threads.db", OnRedis(processes.shared(), "two:")
    with closing(held.cache), cached(f"sqlite:///{path}", held.cache, wait=PATIENCE) as saver:
        chat(saver, "thread")
        tests = Path(__file__).parents[1]
        other = child(_OTHER, path, processes.shared().url, "two:", tests)
        send_line(other.stdin, "read")
        assert line_from(other.stdout) == "same"
        assert len(held.entries()) >= 3
        with cached(f"sqlite:///{path}", held.cache, wait=PATIENCE) as cold:
            assert state(cold, "thread") == expected()
            assert _transactions(cold, held.cache, "thread") == 1
        send_line(other.stdin, "delete")
        assert line_from(other.stdout) == "True"
        assert held.entries() == {}
        assert state(saver, "thread") is None
        assert other.stdin is not None
        other.stdin.close()
        other.stdin = None
        finished(other)


def _transactions(saver: CachedSaver, cache: Cache, thread: str) -> int:
    """How many transactions a get takes, of a saver on the same database that remembers nothing."""
    same, count = saver.uncached, 0
    run = same._driver.run

    class Counting:
        def __str__(self) -> str:
            return str(same._driver)

        def run(self, transaction: Any) -> Any:
            nonlocal count
            count += 1
            return run(transaction)

    driver: Any = Counting()
    state(cached(Saver(same._store, driver, cache_bytes=0), cache, wait=PATIENCE), thread)
    return count


_FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what later Pythons say about a fork beside threads
sys.path.insert(0, sys.argv[3])
from caching.held import PATIENCE, chat, expected, state
from threadmark import MemoryCache, MemorySaver, Saver, cached
from threadmark_redis import RedisCache

for cache in (MemoryCache(), RedisCache(sys.argv[1], prefix=sys.argv[2])):
    base = MemorySaver()
    chat(base, "thread")
    def check():
        cold = Saver(base._store, base._driver, cache_bytes=0)
        for _ in range(3):
            assert state(cached(cold, cache, wait=PATIENCE), "thread") == expected()
    check()
    if (child := os.fork()) == 0:
        check()
        assert cached(base, cache, wait=PATIENCE).delete_thread("thread")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    check()
    cache.close()
print("done")
"""


def test_a_forked_child_has_a_way_of_its_own_to_the_cache() -> None:
    tests = Path(__file__).parents[1]
    assert finished(child(_FORKED, processes.shared().url, "forked:", tests)) == "done\n"


_NEVER_CLOSED = """
import sys
sys.path.insert(0, sys.argv[2])
from caching.held import PATIENCE, chat, state
from threadmark import MemorySaver, cached
from threadmark_redis import RedisCache

base = MemorySaver()
chat(base, "thread")
saver = cached(base, RedisCache(sys.argv[1]), wait=PATIENCE)
state(saver, "thread")
"""


def test_a_program_that_closes_nothing_ends_in_silence() -> None:
    ended = child(_NEVER_CLOSED, processes.shared().url, Path(__file__).parents[1])
    out, err = ended.communicate(timeout=120)
    assert (ended.returncode, out, err) == (0, "", "")


def test_a_cluster_has_each_thread_where_its_slot_is() -> None:
    with closing(RedisCache(cluster.shared().url, prefix="places:")) as cache:
        places = [bytes([number]) * 16 for number in range(40)]
        requests = {place: CacheRequest(1, [b"key"]) for place in places}
        tokens = {place: got.token for place, got in cache.get(requests, 100.0, PATIENCE).items()}
        cache.set({place: Filling(tokens[place], {b"key": place}) for place in places}, PATIENCE)
        assert {place: got.entries for place, got in cache.get(requests, 100.0, PATIENCE).items()} == {
            place: {b"key": place} for place in places
        }
        with cluster.shared().client() as client:
            keys = client.keys("places:*", target_nodes=client.PRIMARIES)
            assert all(0 < client.pttl(key) <= 100_000 for key in keys)
            assert len({cluster.shared().master_of(key).port for key in keys}) == 3
        cache.forget(places, PATIENCE)
        assert {each.token for each in cache.get(requests, 100.0, PATIENCE).values()}.isdisjoint(tokens.values())


def test_sentinels_name_the_server() -> None:
    base = MemorySaver()
    chat(base, "thread")
    with closing(RedisCache(sentinel.shared().url, prefix="named:")) as cache:
        for _ in range(2):
            saver = cached(Saver(base._store, base._driver, cache_bytes=0), cache, wait=PATIENCE)
            assert state(saver, "thread") == expected()
        assert len(sentinel.shared().master.client.keys("named:*")) == 1


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_a_database_file_that_is_replaced_is_read_as_it_is(kind: str, tmp_path: Path) -> None:
    cache: Cache = MemoryCache() if kind == "memory" else RedisCache(processes.shared().url, prefix="replaced:")
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    with SqliteSaver(other) as saver:
        chat(saver, "thread", 5)
    with cached(f"sqlite:///{one}", cache, wait=PATIENCE, cache_bytes=0) as saver:
        chat(saver, "thread", 3)
        assert [state(saver, "thread") for _ in range(2)] == [expected(3)] * 2
        shutil.move(other, one)
        assert [state(saver, "thread") for _ in range(2)] == [expected(5)] * 2
        put(saver, "thread", 5)
        assert state(saver, "thread") == expected(6)
        assert saver.verify().problems == []
    cache.close()


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced(tmp_path, monkeypatch)


def test_a_url_names_both(tmp_path: Path) -> None:
    inner = quote(f"sqlite:///{tmp_path / 'threads.db'}", safe="")
    cache = quote(processes.shared().url, safe="")
    url = f"cached:?saver={inner}&cache={cache}&ttl=3600&wait={PATIENCE}&name=urls"
    with open_saver(url, cache_bytes=0) as saver:
        assert isinstance(saver, CachedSaver)
        assert isinstance(saver.uncached, SqliteSaver)
        chat(saver, "thread")
        assert [state(saver, "thread") for _ in range(2)] == [expected()] * 2
        assert "cached in Redis 127.0.0.1" in repr(saver)
    assert path_or_url(url) == url  # not the name of a file
    with open_saver(f"cached:?saver={inner}&cache=memory:") as saver:
        assert isinstance(saver, CachedSaver)
        assert state(saver, "thread") == expected()


@pytest.mark.parametrize(
    "url",
    [
        "cached:",
        "cached:?saver=memory:",
        "cached:?cache=memory:",
        "cached:?saver=memory:&cache=memory:&saver=memory:",
        "cached:?saver=memory:&cache=memory:&password=secret",
        "cached:?saver=memory:&cache=memory:&ttl=secret",
        "cached:?saver=memory:&cache=memory:&ttl=1e300",
        "cached:?saver=memory:&cache=memory:&ttl=nan",
        "cached:?saver=memory:&cache=memory:&ttl=0",
        "cached:?saver=memory:&cache=memory:&wait=-1",
        "cached:?saver=memory:&cache=memory:%3Fsecret=1",
        "cached:?saver=memory:&cache=nowhere:secret",
        "cached:?saver=memory:&cache=redis://user:secret@host/secret",
    ],
)
def test_a_url_that_says_something_else_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_saver(url)
    assert "secret" not in str(refused.value)


def test_arguments_that_mean_nothing_are_refused() -> None:
    saver, view = MemorySaver(), MemorySaver().for_owner("me")
    attempts: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("ttl", (saver, "memory:"), {"ttl": "3600"}),
        ("wait", (saver, "memory:"), {"wait": None}),
        ("name", (saver, "memory:"), {"name": 5}),
        ("URL of a cache", (saver, object()), {}),
        ("threadmark.Saver", (object(), "memory:"), {}),
        ("cache_bytes", (saver, "memory:"), {"cache_bytes": 0}),
        ("only the threads of 'me'", (view, "memory:"), {}),
        ("max_bytes", ("memory:", "memory:?max_bytes=x"), {}),
    ]
    for words, given, options in attempts:
        with pytest.raises(ConfigError, match=words):
            cached(*given, **options)
    with pytest.raises(ConfigError, match="max_bytes"):
        MemoryCache(max_bytes=0)
    with pytest.raises(ConfigError, match="braces"):
        RedisCache("redis://localhost", prefix="{x}")
    with pytest.raises(ConfigError, match="pool_size"):
        RedisCache("redis://localhost", pool_size=0)


def test_what_was_given_as_a_url_is_closed_and_a_cache_that_was_given_is_not() -> None:
    base, cache = MemorySaver(), MemoryCache()
    chat(base, "thread")
    with cached(base, cache) as saver:
        state(saver, "thread")
    assert cache.size > 1000
    ours = OnRedis(processes.shared(), "closing:")
    with cached(MemorySaver(), ours.cache, wait=PATIENCE) as saver:
        chat(saver, "thread")
    assert ours.cache.get({b"p" * 16: CacheRequest(1, [])}, 10.0, PATIENCE)
    ours.cache.close()
    with pytest.raises(Exception, match="closed"):
        ours.cache.get({b"p" * 16: CacheRequest(1, [])}, 10.0, PATIENCE)
