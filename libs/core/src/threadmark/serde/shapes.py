"""Remembering the shapes of a class's instances: there are few in any program, and each is worked out once."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from threadmark.serde.kinds_api import Shape

_Key = TypeVar("_Key", bound=Hashable)
_MOST_SHAPES = 1000
"""How many shapes of one class are remembered."""


class Shapes(dict[_Key, Shape]):
    """Shapes by what determines them. If they become too many, all are forgotten."""

    def __init__(self, make: Callable[[_Key], Shape]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> Shape:
        shape = self._make(key)
        shape.key = key
        if len(self) >= _MOST_SHAPES:
            self.clear()
        self[key] = shape
        return shape
