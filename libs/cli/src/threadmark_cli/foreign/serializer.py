"""Storing views of objects so that they read as the objects."""

from typing import Any

from threadmark import Serde
from threadmark.serde import Deconstruct
from threadmark.serde.classes import Classes
from threadmark.serde.dispatch import Dispatch
from threadmark.serde.kinds_api import Definer, Shape, Shapes
from threadmark.serde.registry import Registry
from threadmark.types import ObjectView

_RECORD = "D"
"""The code of the family whose values are stored by their fields' names: dataclasses."""


class ViewSerde(Serde):
    """Writes an `ObjectView` as the record that it shows. A saver's `without_classes()` reads it back as it was."""

    def __init__(self) -> None:
        registry = Registry()
        super().__init__(registry=registry)
        self._dispatch = _ViewDispatch(registry, Classes(registry))


class _ViewDispatch(Dispatch):
    def __init__(self, registry: Registry, classes: Classes) -> None:
        super().__init__(registry, classes)
        self._shapes = Shapes[tuple[str, tuple[str, ...]]](_shape)

    def writer(self, cls: type) -> Deconstruct:
        """Return the function that takes values of exactly this class apart."""
        return self._deconstruct if cls is ObjectView else super().writer(cls)

    def _deconstruct(self, value: Any) -> list[Any]:
        name, fields = value
        return [self._shapes[name, tuple(fields)], *fields.values()]


def _shape(key: tuple[str, tuple[str, ...]]) -> Shape:
    name, fields = key
    return Definer(ObjectView, _RECORD + name).shape(list(fields))
