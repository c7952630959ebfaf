"""A slow transaction of a cached saver is named by its operation, not by its player."""

import logging
from pathlib import Path

import pytest

from caching.held import chat, state
from threadmark import MemoryCache, cached
from threadmark_sqlite import SqliteSaver


def test_a_slow_transaction_is_named_by_its_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "threadmark")
    saver = SqliteSaver(tmp_path / "threads.db", slow=0.0, cache_bytes=0)
    with cached(saver, MemoryCache()) as slow:
        chat(slow, "thread")
        state(slow, "thread")
        slow.delete_thread("thread")
    lines = [record.getMessage() for record in caplog.records]
    assert any("reads (load)" in line for line in lines)
    assert any("writes (_delete)" in line for line in lines)
    assert not any("until_segments" in line or "_resolve" in line for line in lines)
