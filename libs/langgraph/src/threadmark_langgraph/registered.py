"""The types that LangGraph itself puts into checkpoints, and LangChain's messages, allowed under every policy.

Registering also imports them, so that a process which only reads, without a graph, can read everything.
"""

from typing import Any

from langchain_core import messages
from langchain_core.documents import Document
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy

from threadmark.serde import register


def _fields(send: Send) -> list[Any]:
    timeout = getattr(send, "timeout", None)  # releases before 1.2 have none
    return [send.node, send.arg, timeout] if timeout else [send.node, send.arg]


def _send(fields: list[Any]) -> Send:
    node, arg, *timeout = fields
    return Send(node, arg, timeout=timeout[0]) if timeout else Send(node, arg)


def _message_classes() -> list[type[messages.BaseMessage]]:
    found = (getattr(messages, name) for name in messages.__all__)
    return [each for each in found if isinstance(each, type) and issubclass(each, messages.BaseMessage)]


register(Send, "langgraph:Send", encode=_fields, decode=_send)
for each in (Command, Interrupt, Overwrite, TimeoutPolicy, _DeltaSnapshot, Document, *_message_classes()):
    register(each)
