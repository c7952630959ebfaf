"""Values as they are stored: JSON as text if it gives the value back exactly, else our serializer's bytes.

Text is what databases can compare with a filter. Bytes begin with a mark of their form. With a keyring every value is
sealed, bound to the item's key, and databases compare nothing.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from threadmark.backends import ConfigError, CorruptDataError
from threadmark.saver.kit import HOW_TO_SEAL
from threadmark.sealing import Cipher
from threadmark.serde import Serializer
from threadmark_store.shapes import ItemKey, ItemRow

_TYPED, _SEALED_JSON, _SEALED_TYPED = b"\x01", b"\x02", b"\x03"
_TAG_END = b"\0"
_DEEPEST: Final = 100
_GREATEST: Final = 2**63
"""Integers from here on are left to the serializer: some databases would round them."""


class Values:
    """Encodes and decodes the values of items."""

    def __init__(self, serde: Serializer, cipher: Cipher | None) -> None:
        self._serde = serde
        self._cipher = cipher

    @property
    def comparable(self) -> bool:
        """Whether a database can compare JSON that is stored now."""
        return self._cipher is None

    def encoded(self, key: ItemKey, value: Mapping[str, Any]) -> str | bytes:
        """Return the stored form. Raises SerializationError for a value that cannot be stored."""
        text = _json(value)
        if text is not None and self._cipher is None:
            return text.decode()
        form, body = _SEALED_JSON, text
        if body is None:
            tag, data = self._serde.dumps_typed(dict(value) if not isinstance(value, dict) else value)
            form, body = _SEALED_TYPED, tag.encode() + _TAG_END + data
        return form + self._cipher.seal(body, _location(key)) if self._cipher else _TYPED + body

    def decoded(self, row: ItemRow) -> dict[str, Any]:
        """Return the value of a row. Raises CorruptDataError if it is not what was stored."""
        if check_of(row.key, row.value) != row.check:
            raise CorruptDataError(f"{_named(row.key)} is damaged: its value and its check do not belong together")
        try:
            value = self._loaded(row)
        except CorruptDataError as error:
            raise CorruptDataError(f"{_named(row.key)}: {error}") from error
        if not isinstance(value, dict):
            raise CorruptDataError(f"{_named(row.key)} has no dictionary, but {type(value).__name__}")
        return value

    def _loaded(self, row: ItemRow) -> Any:
        if isinstance(row.value, str):
            return _from_json(row.value)
        form, body = row.value[:1], row.value[1:]
        if form in (_SEALED_JSON, _SEALED_TYPED):
            if self._cipher is None:
                raise ConfigError(f"{_named(row.key)} is sealed: {HOW_TO_SEAL}")
            body = self._cipher.open(body, _location(row.key))
            if form == _SEALED_JSON:
                return _from_json(body)
        elif form != _TYPED:
            raise CorruptDataError(f"an unknown form {form!r}")
        tag, end, data = body.partition(_TAG_END)
        if not end:
            raise CorruptDataError("the type of the value is missing")
        return self._serde.loads_typed((tag.decode("utf-8", "replace"), data))


def check_of(key: ItemKey, value: str | bytes) -> int:
    """Return 64 bits of a digest over an item's key and its stored value, as a signed integer."""
    digest = blake2b(_location(key), digest_size=8)
    digest.update(value.encode() if isinstance(value, str) else value)
    return int.from_bytes(digest.digest(), "big", signed=True)


def _location(key: ItemKey) -> bytes:
    """Return what a value is bound to. A namespace has no NUL, so no two keys have the same."""
    return f"item\0{key.namespace}\0{key.key}\0".encode("utf-8", "surrogatepass")


def _named(key: ItemKey) -> str:
    return f"item {key.key!r} of namespace {key.namespace!r}"


def _json(value: Mapping[str, Any]) -> bytes | None:
    """Return the value as JSON, or None if JSON would not give it back exactly."""
    if not _is_plain(value, _DEEPEST):
        return None
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate
        return None


def _from_json(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CorruptDataError(f"its JSON does not read: {error}") from error


def _is_plain(value: Any, levels: int) -> bool:
    """Return whether JSON gives a value back type for type. Numbers that JSON has not are left to the serializer."""
    kind = type(value)
    if kind is str:
        return "\0" not in value  # which Postgres has in no text
    if kind is bool or value is None:
        return True
    if kind is int:
        return -_GREATEST <= value < _GREATEST
    if kind is float:
        return value - value == 0
    if levels == 0:
        return False
    if kind is dict:
        return all(
            type(key) is str and "\0" not in key and _is_plain(item, levels - 1) for key, item in value.items()
        )
    return kind is list and all(_is_plain(item, levels - 1) for item in value)
