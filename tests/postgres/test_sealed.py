"""Sealed rows on Postgres: SQL cannot read which segments they need, and keys are changed while others read."""

import pytest

from postgres.steps import count, play, step, thread
from threadmark import ConfigError, ThreadmarkError
from threadmark.sealing import Keyring
from threadmark_postgres import PostgresSaver

_KEYS = {"old": bytes(range(32)), "new": bytes(range(32, 64))}


def ring(*names: str) -> Keyring:
    """A keyring with these keys, the last of them the newest."""
    return Keyring({name: _KEYS[name] for name in names}, names[-1], digest_secret=bytes(32))


def test_rows_are_sealed_anew_and_read_as_before(url: str) -> None:
    with PostgresSaver(url, keyring=ring("old")) as saver:
        config = play(saver, "one", 5, 100)
        saver.put_writes(config, [("messages", "a large write " * 1000)], "task")
        saver.copy_thread("one", "two")
        before = list(saver.list(None))
    with PostgresSaver(url, keyring=ring("old", "new")) as saver:
        assert list(saver.list(None)) == before
        assert saver.reencrypt() > 0
        assert saver.reencrypt() == 0
    with PostgresSaver(url, keyring=ring("new")) as saver:
        assert list(saver.list(None)) == before
        saver.put(config, *step(5))
        assert count(saver, "one") == 5
        found = saver.get_tuple(thread("two"))
        assert found
        assert found.pending_writes == before[0].pending_writes


@pytest.mark.parametrize("seal_metadata", [True, False])
def test_runs_are_found_after_rows_were_sealed_anew(url: str, *, seal_metadata: bool) -> None:
    with PostgresSaver(url, keyring=ring("old"), seal_metadata=seal_metadata) as saver:
        checkpoint, metadata, versions = step(0)
        saver.put(thread("one"), checkpoint, {**metadata, "run_id": "r"}, versions)
    with PostgresSaver(url, keyring=ring("old", "new"), seal_metadata=seal_metadata) as saver:
        assert saver.reencrypt() > 0
        saver.delete_for_runs(["r"])
        assert saver.get(thread("one")) is None


def test_a_saver_without_the_keyring_says_so(url: str) -> None:
    with PostgresSaver(url, keyring=ring("old")) as saver:
        play(saver, "one", 1, 100)
    with PostgresSaver(url) as saver:
        for name in ("one", "new"):
            with pytest.raises(ThreadmarkError, match="sealed: give keyring="):
                saver.get(thread(name))
        with pytest.raises(ConfigError, match="sealed: give keyring="):
            saver.put(thread("new"), *step(0))
