"""Which packer writes values: the compiled one where it is in use, ormsgpack, or msgpack where neither is there."""

import pytest

from threadmark.serde import compiled, wire

PACKERS = [*(["compiled"] if compiled.OBJECTS is not None else []), "ormsgpack", "msgpack"]


def use(packer: str, patch: pytest.MonkeyPatch) -> None:
    """Let serializers that are made from now on use this one."""
    patch.setattr(wire, "HAS_FAST", packer != "msgpack")
    if packer != "compiled":
        patch.setattr(compiled, "OBJECTS", None)
