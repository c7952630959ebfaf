"""Postgres' store answers like the memory store, whatever is done to threads, owners and leases."""

from pathlib import Path

import pytest

from length import times
from postgres.backends import BACKENDS
from thread_stores import check_agreement, check_tokens_of_a_deletion

ROUNDS = times(150, at_length=1500)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("backend", ["url", "partitioned", "pgbouncer"])
def test_a_store_agrees_with_the_memory_store(backend: str, seed: int, tmp_path: Path) -> None:
    check_agreement(BACKENDS[backend], tmp_path, seed, ROUNDS)


@pytest.mark.parametrize("backend", ["url", "partitioned", "pgbouncer"])
def test_the_token_of_a_deletion_comes_from_the_stores_clock(backend: str, tmp_path: Path) -> None:
    check_tokens_of_a_deletion(BACKENDS[backend], tmp_path)
