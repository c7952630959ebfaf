"""Sizes at which one command, one reply or Lua's stack would not do."""

from functools import partial
from typing import Any

import pytest

from postgres.steps import play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.processes import RedisProcess
from threadmark import new_id
from threadmark.program import Transaction
from threadmark_redis import RedisSaver, listing
from threadmark_redis import store as store_module

MANY = 9_000
"""More than Lua's `unpack` takes."""


def test_a_task_may_have_thousands_of_writes(saver: RedisSaver) -> None:
    config = play(saver, "one", 1)
    writes = [(f"channel {number}", number) for number in range(MANY)]
    saver.put_writes(config, writes, "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert [write[1:] for write in found.pending_writes or [] if write[0] == "task"] == writes
    assert saver.copy_thread("one", "copy")
    copied = saver.get_tuple(thread("copy"))
    assert copied is not None
    assert copied.pending_writes == found.pending_writes


def test_a_thread_with_thousands_of_writing_tasks_is_copied_pruned_and_deleted(saver: RedisSaver) -> None:
    config = play(saver, "one", 2)
    number = 600
    for task in range(number):
        saver.put_writes(config, [("messages", [task, "x" * 150])], f"task {task}")
    found = saver.get_tuple(thread("one"))
    assert found is not None
    assert len(found.pending_writes or []) == number + 1
    assert saver.copy_thread("one", "copy")
    assert saver.prune(["copy"]).checkpoints == 1
    assert len((saver.get_tuple(thread("copy")) or found).pending_writes or []) == number + 1
    saver.delete_checkpoint((saver.get_tuple(thread("copy")) or found).config)
    assert saver.verify(decode=True).problems == []
    assert saver.delete_thread("one")


def test_a_thread_too_large_for_one_script_counts_the_same(saver: RedisSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    config = play(saver, "one", 5, 50)
    saver.put_writes(config, [("__interrupt__", "x" * 2000), ("messages", "x" * 2000)], "task")
    saver.put_writes(config, [("__error__", "x" * 2000)], "another task")
    in_script = saver.list_threads().threads
    assert in_script[0].status == "error"
    monkeypatch.setattr(listing, "_MOST_FIELDS", 3)
    assert saver.list_threads().threads == in_script


def test_a_state_too_large_for_one_reply_is_read_in_several(
    saver: RedisSaver, prefix: str, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(saver, "one", 6, 100)
    expected = saver.get_tuple(thread("one"))
    monkeypatch.setattr(store_module, "_SEGMENT_BYTES", 500)
    monkeypatch.setattr(store_module, "_CHAIN_BYTES", 100)
    with RedisSaver(server.url, prefix=prefix, **OPTIONS, cache_bytes=0) as cold:
        assert cold.get_tuple(thread("one")) == expected
        chain = partial(cold._context.store.chain, "one", "", None, 100)
        rows = cold._driver.run(Transaction(chain, writes=False))
        assert [row.outline.id for row in rows] == [each.checkpoint["id"] for each in cold.list(thread("one"))]


def test_a_prune_of_thousands_of_checkpoints_is_one_script(saver: RedisSaver) -> None:
    config = thread("one")
    versions = {"count": 1}
    for number in range(1200):
        made = {"id": new_id(), "channel_values": {"count": number}, "channel_versions": versions}
        checkpoint: Any = {**step(0)[0], **made}
        config = saver.put(config, checkpoint, {"step": number}, versions)
    assert saver.prune(["one"], keep_last=2).checkpoints == 1198
    assert [found.metadata["step"] for found in saver.list(thread("one"))] == [1199, 1198]
    assert saver.verify(decode=True).problems == []
