"""Every backend's store answers like the memory store, whatever is done to threads, owners and leases."""

from pathlib import Path

import pytest

from backends import BACKENDS
from length import times
from thread_stores import check_agreement, check_tokens_of_a_deletion

ROUNDS = times(400, at_length=4000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("backend", [name for name in BACKENDS if "sealed" not in name])
def test_a_store_agrees_with_the_memory_store(backend: str, seed: int, tmp_path: Path) -> None:
    check_agreement(BACKENDS[backend], tmp_path, seed, ROUNDS)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if "sealed" not in name])
def test_the_token_of_a_deletion_comes_from_the_stores_clock(backend: str, tmp_path: Path) -> None:
    check_tokens_of_a_deletion(BACKENDS[backend], tmp_path)
