"""Messages as users pass them: dictionaries, dataclasses, LangChain's, or any object with an `id`.

Your objects are never changed: a message without an id gets one in a copy. This module names no message class, so
nothing of LangChain is imported.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, short_repr
from threadmark.ids import new_id
from threadmark.names import ID_BYTES, as_text, check_length
from threadmark.saver.kit import checked_count

_NO_LISTS = (str, bytes, bytearray, memoryview, Mapping)


class NewMessage(NamedTuple):
    """A message with its id."""

    id: str
    message: Any


def checked_messages(messages: Iterable[Any]) -> list[NewMessage]:
    """Check the messages for `put_messages`. Returns each with its id, in a copy if it had none."""
    if isinstance(messages, _NO_LISTS) or not isinstance(messages, Iterable):
        raise ConfigError(f"messages must be a list of messages, not {type(messages).__name__}")
    return [_checked_message(message) for message in messages]


def checked_message_id(message_id: object) -> str:
    """Check the id of a message."""
    name = as_text(message_id, "a message's id")
    if not name:
        raise ConfigError("a message's id must not be empty: leave it out to get a new one")
    check_length(name, ID_BYTES, "a message's id")
    return name


class MessagePage(NamedTuple):
    """The arguments that select messages."""

    search: str | None
    offset: int
    limit: int
    before: str | None


def checked_page(search: object, offset: object, limit: object, before: object) -> MessagePage:
    """Check the arguments that select messages."""
    return MessagePage(
        None if search is None else as_text(search, "search"),
        checked_count(offset, "offset"),
        checked_count(limit, "limit"),
        None if before is None else checked_message_id(before),
    )


def has_text(message: Any, folded: str) -> bool:
    """Return whether a message's text contains this text, ignoring case. `folded` is casefolded already."""
    return not folded or any(folded in text.casefold() for text in _texts(message))


def _checked_message(message: Any) -> NewMessage:
    if isinstance(message, dict):
        found = message.get("id")
    elif hasattr(message, "id"):
        found = message.id
    else:
        raise ConfigError(
            f"a message must be a dictionary or have an attribute `id`, and a {type(message).__name__} is and has not: "
            "give {'content': ...}, a dataclass, or a message of LangChain"
        )
    if found is not None:
        return NewMessage(checked_message_id(found), message)
    made = new_id()
    return NewMessage(made, _with_id(message, made))


def _with_id(message: Any, made: str) -> Any:
    """Return a copy of a message with an id."""
    if type(message) is dict:
        return {"id": made, **{key: value for key, value in message.items() if key != "id"}}
    try:
        if dataclasses.is_dataclass(message) and not isinstance(message, type | dict):
            return dataclasses.replace(message, id=made)
        if callable(getattr(message, "model_copy", None)):
            return message.model_copy(update={"id": made})
        return _put_into(copy.copy(message), message, made)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{short_repr(message)} has no id, and cannot be given one ({error}): give it one") from error


def _put_into(other: Any, message: Any, made: str) -> Any:
    """Put an id into a copy of a message of any class, and return it."""
    if other is message:  # a class, say
        raise TypeError("it is no other when it is copied")
    if isinstance(other, dict):
        other["id"] = made
    else:
        setattr(other, "id", made)  # noqa: B010 - of a class that is not known here
    return other


def _texts(message: Any) -> Iterator[str]:
    """Return the text of a message: its content, which may be a list of blocks, and its `text`."""
    for name in ("content", "text"):
        found = message.get(name) if isinstance(message, dict) else getattr(message, name, None)
        # LangChain's `text` is made of its content.
        yield from _texts_in(found if isinstance(found, (str, list, tuple)) else None)


def _texts_in(content: Any) -> Iterator[str]:
    blocks = [content] if isinstance(content, str) else content or ()
    for block in blocks:
        if isinstance(block, str):
            yield str.__str__(block)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]
