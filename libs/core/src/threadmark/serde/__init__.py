"""The serializer: values to bytes and back, exactly, safely and fast."""

from threadmark.serde.registry import Registry, register
from threadmark.serde.serializer import Serde, Serializer

__all__ = ["Registry", "Serde", "Serializer", "register"]
