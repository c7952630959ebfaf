"""Which packer writes values: the compiled one where it is in use, ormsgpack, or msgpack where neither is there."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from threadmark.serde import compiled, wire

PACKERS = [*(["compiled"] if compiled.in_use else []), "ormsgpack", "msgpack"]


def use(packer: str, patch: pytest.MonkeyPatch) -> None:
    """Let serializers that are made from now on use this one."""
    patch.setattr(wire, "HAS_FAST", packer != "msgpack")
    if packer != "compiled":
        patch.setattr(compiled, "in_use", False)


@contextmanager
def in_python() -> Iterator[None]:
    """Do without the compiled modules. A serializer keeps what it has made, so it must be used here or there only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "in_use", False)
        yield
