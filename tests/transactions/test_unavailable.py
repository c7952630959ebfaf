"""Savers without transactions over several calls: the error says why, and what to use."""

import pytest

import threadmark
from threadmark import ConfigError, MemorySaver, Saver
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark_redis import RedisSaver


def test_redis_says_why_it_has_none() -> None:
    with RedisSaver("redis://127.0.0.1:1/0", durability="memory") as saver:
        for call in (saver.transaction, lambda: saver.within(object())):
            with pytest.raises(ConfigError, match=r"Redis cannot undo a command.*Use a saver on SQLite or Postgres"):
                call()


def test_a_pair_refers_to_a_saver_on_one_database() -> None:
    with threadmark.replicated(MemorySaver(), MemorySaver()) as pair:
        for call in (pair.transaction, lambda: pair.within(object())):
            with pytest.raises(ConfigError, match="two databases"):
                call()


def test_a_cached_saver_refers_to_the_one_behind_it() -> None:
    with threadmark.cached(MemorySaver(), "memory:") as cached:
        for call in (cached.transaction, lambda: cached.within(object())):
            with pytest.raises(ConfigError, match="`uncached`"):
                call()
        with cached.uncached.transaction() as tx:
            tx.saver.create_thread("trip")
        assert cached.get_thread("trip") is not None


def test_memory_has_blocks_and_no_connection() -> None:
    with MemorySaver() as saver, pytest.raises(ConfigError, match=r"use transaction\(\)"):
        saver.within(object())


def test_a_backend_of_yours_has_none_unless_it_says_so() -> None:
    with Saver(MemoryStore(), MemoryDriver()) as saver:
        for call in (saver.transaction, lambda: saver.within(object())):
            with pytest.raises(ConfigError, match="its backend does not offer them"):
                call()
