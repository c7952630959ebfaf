"""Which packer writes values: the compiled one if it is in use, or msgpack."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from threadmark.runtime.compiled import IN_USE, only_references

PACKERS = [*(["compiled"] if IN_USE else []), "msgpack"]


class _Switch:
    """The switch of compiled functions, as an attribute that can be patched."""

    @property
    def is_on(self) -> bool:
        from threadmark_speed.seam import switch

        switch(before := switch(True))
        return before

    @is_on.setter
    def is_on(self, value: bool) -> None:
        from threadmark_speed.seam import switch

        switch(value)


_SWITCH = _Switch()


def use(packer: str, patch: pytest.MonkeyPatch) -> None:
    """Let serializers that are made from now on use this one."""
    if packer != "compiled" and IN_USE:
        patch.setattr(_SWITCH, "is_on", False)


@contextmanager
def in_python() -> Iterator[None]:
    """Do without the compiled modules. A serializer keeps its readers, so it must be used here or there only."""
    with only_references():
        yield
