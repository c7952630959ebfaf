"""Savers used at random hold what plain dictionaries hold."""

import pytest

from backends import BACKENDS
from threadmark_conformance import APIS, check_model

# A database in memory costs little, so it is used at length; the file shows that nothing depends on memory.
EXAMPLES = {"memory": 60, "sqlite file": 15, "sqlite memory": 30}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_use(backend: str, api: str) -> None:
    check_model(BACKENDS[backend], api, examples=EXAMPLES.get(backend, 15))
