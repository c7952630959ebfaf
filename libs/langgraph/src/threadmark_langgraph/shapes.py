"""Conversion between LangGraph's and Threadmark's configurations, metadata, checkpoints and writes."""

import json
import logging
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    CheckpointMetadata,
    CheckpointTuple,
)

from threadmark import CheckpointTuple as StoredTuple
from threadmark import SaverProtocol, SerializationError
from threadmark.config import NOT_METADATA
from threadmark.metadata import CheckedMetadata, checked
from threadmark.metadata import merged as merged_by_saver
from threadmark.runtime.compiled import counterpart
from threadmark.saver.arguments import checked_writes
from threadmark_langgraph.log import log

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

ERROR = "__error__"
"""LangGraph's channel of the error that ended a task."""

FIRST_VERSION = f"{1:032d}.{0:016d}"
"""The version of a thread's first channel, of the kind that LangGraph's own savers use.

The engine also asks for a first version in the middle of a thread's life, and compares it with the others.
"""


_COUNT_DIGITS = 32
_CHANNEL = itemgetter(0)


def following_version(current: str) -> str | None:
    """Return the version after one of LangGraph's strings; None for a string in another form.

    LangGraph draws the digits behind the dot at random each time, so that forks differ. Here a checkpoint names its
    values itself, and digits that stay the same are bytes that need not be stored again.
    """
    count, dot, fraction = current.partition(".")
    if not (dot and count.isascii() and count.isdigit() and len(count) <= _COUNT_DIGITS):
        return None
    return f"{int(count) + 1:0{_COUNT_DIGITS}d}.{fraction}"


@counterpart("arguments.plain_metadata", CheckedMetadata, NOT_METADATA, orjson.dumps)
def stored_metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    """Return a checkpoint's metadata as LangGraph merges and cleans it, and as JSON gives it back.

    The result is checked as far as possible, so that the saver need not check it again.
    """
    merged = merged_by_saver(config, metadata)
    for key, value in merged.items():
        if isinstance(value, str) and "\0" in value:
            merged[key] = value.replace("\0", "")
    try:
        return checked(merged)
    except SerializationError:
        return _as_json_gives_it_back(merged)


def _as_json_gives_it_back(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata of other types, as LangGraph's savers keep it: an enum's member as text, a number as a key as well."""
    try:
        plain = json.loads(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError):
        return metadata  # the saver says which key it is
    return dict(plain)


def stored_writes(saver: SaverProtocol, writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return a task's writes. The error that ended it becomes text if it cannot be stored as it is.

    The engine stores whatever a node raised; if that were refused, the error would be lost without a word.
    """
    writes = checked_writes(writes)
    if ERROR not in map(_CHANNEL, writes):
        return writes
    return [(channel, _storable(saver.serde, value) if channel == ERROR else value) for channel, value in writes]


def _storable(serde: "SerializerProtocol", error: Any) -> Any:
    try:
        serde.dumps_typed(error)
    except Exception:  # noqa: BLE001 - a serializer of the user's may raise anything
        if not isinstance(error, BaseException):
            return error
        name = type(error).__qualname__
        log.write(logging.DEBUG, "a task's error cannot be stored as it is (%s): its text is stored", name)
        return _error_text(error)
    return error


def _error_text(error: BaseException) -> str:
    """Return the text that LangGraph's own serializer keeps of an exception: its repr, or its class if that fails."""
    try:
        return repr(error)
    except Exception as failure:  # noqa: BLE001 - of the user's class, too
        return f"<{type(error).__qualname__}, whose repr raised {type(failure).__qualname__}>"


def engine_tuple(found: StoredTuple) -> CheckpointTuple:
    """Return a stored checkpoint as LangGraph's own class, which has the same fields."""
    return CheckpointTuple._make(found)
