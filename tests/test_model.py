"""Savers used at random hold the same as plain dictionaries."""

import pytest

from backends import BACKENDS
from length import ONCE_EACH, times
from threadmark_conformance import APIS, check_model

# A database in memory costs little, so it is used at length; the file shows that nothing depends on memory.
EXAMPLES = {"memory": 30, "sqlite file": 8, "sqlite memory": 12}


@pytest.mark.parametrize("api", ["blocking"] if ONCE_EACH else APIS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_use(backend: str, api: str) -> None:
    usual = EXAMPLES.get(backend, 8)
    check_model(BACKENDS[backend], api, examples=times(usual, at_length=10 * usual))
