"""The serializer: values to bytes and back, exactly, safely and fast."""

from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, StoredClass, exactly, only
from threadmark.serde.registry import Registry, register
from threadmark.serde.serializer import Serde, Serializer

__all__ = [
    "Deconstruct",
    "Definer",
    "Family",
    "Reconstruct",
    "Registry",
    "Serde",
    "Serializer",
    "StoredClass",
    "exactly",
    "only",
    "register",
]
