"""LangGraph's own types, which checkpoints may hold under every policy of the serializer."""

from typing import Any

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy

from threadmark.serde import register


def _fields(send: Send) -> list[Any]:
    timeout = getattr(send, "timeout", None)  # releases before 1.2 have none
    return [send.node, send.arg, timeout] if timeout else [send.node, send.arg]


def _send(fields: list[Any]) -> Send:
    node, arg, *timeout = fields
    return Send(node, arg, timeout=timeout[0]) if timeout else Send(node, arg)


register(Send, "langgraph:Send", encode=_fields, decode=_send)
for each in (Command, Interrupt, Overwrite, TimeoutPolicy, _DeltaSnapshot):
    register(each)
