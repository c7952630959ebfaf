"""LangGraph's `Send`, which is no record of a kind that the serializer knows by itself."""

from typing import Any

from langgraph.types import Send

from threadmark.serde import register


def _fields(send: Send) -> list[Any]:
    timeout = getattr(send, "timeout", None)  # releases before 1.2 have none
    return [send.node, send.arg, timeout] if timeout else [send.node, send.arg]


def _send(fields: list[Any]) -> Send:
    node, arg, *timeout = fields
    return Send(node, arg, timeout=timeout[0]) if timeout else Send(node, arg)


register(Send, "langgraph:Send", encode=_fields, decode=_send)
