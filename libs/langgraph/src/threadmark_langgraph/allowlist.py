"""Serializers that may load more classes, which LangGraph asks for when it compiles a graph in strict mode."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from threadmark import Serde

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol


def extended(serde: "SerializerProtocol", classes: Collection[tuple[str, ...]]) -> "SerializerProtocol | None":
    """Return a serializer that allows these classes too, or the same one if it already does; None for a foreign one.

    LangGraph names a class by its module and its name, and perhaps a method, which is not called here.
    """
    if isinstance(serde, Serde):
        return serde.allowing(f"{module}:{name}" for module, name, *_ in classes)
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    if isinstance(serde, EncryptedSerializer) and isinstance(serde.serde, Serde):
        inner = extended(serde.serde, classes)
        return serde if inner is serde.serde or inner is None else EncryptedSerializer(serde.cipher, inner)
    return None
