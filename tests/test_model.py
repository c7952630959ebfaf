"""Savers used at random hold what plain dictionaries hold."""

import pytest

from backends import BACKENDS
from threadmark_conformance import FACES, check_model

# A database in memory costs little, so it is used at length; the file shows that nothing depends on memory.
EXAMPLES = {"memory": 60, "sqlite file": 15, "sqlite memory": 30}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_use(backend: str, face: str) -> None:
    check_model(BACKENDS[backend], face, examples=EXAMPLES.get(backend, 15))
