"""Values as they are stored: JSON as text if it gives the value back exactly, else our serializer's bytes.

Text is what databases can compare with a filter. Bytes begin with a mark of their form. With a keyring every value is
sealed, bound to the item's key, and databases compare nothing.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from threadmark.backends import ConfigError, CorruptDataError, short_repr
from threadmark.saver.kit import HOW_TO_OPEN
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
        """Return the stored form. Raises TypeError or SerializationError for a value that cannot be stored."""
        if not isinstance(value, Mapping):
            raise TypeError(f"the value of an item must be a dictionary, not {short_repr(value)}")
        text = _json(value)
        if text is not None:
            return self.stored(key, text)
        tag, data = self._serde.dumps_typed(dict(value) if not isinstance(value, dict) else value)
        return self.stored(key, _TYPED + tag.encode() + _TAG_END + data)

    def stored(self, key: ItemKey, plain: str | bytes) -> str | bytes:
        """Return the stored form of a value from the form that it has without a keyring."""
        if self._cipher is None:
            return plain
        form, body = (_SEALED_JSON, plain.encode()) if isinstance(plain, str) else (_SEALED_TYPED, plain[1:])
        return form + self._cipher.seal(body, _location(key))

    def is_sealed(self, row: ItemRow) -> bool:
        """Return whether a value was stored with a keyring."""
        return not isinstance(row.value, str) and row.value[:1] in (_SEALED_JSON, _SEALED_TYPED)

    def is_current(self, row: ItemRow) -> bool:
        """Return whether the newest key of the keyring has sealed a value. Raises CorruptDataError if none could."""
        body = row.value[1:] if self.is_sealed(row) else ""
        return self._cipher is not None and not isinstance(body, str) and self._cipher.is_current(body)

    def plain(self, row: ItemRow) -> str | bytes:
        """Return the form that a value has without a keyring. Raises CorruptDataError if the row was changed."""
        if check_of(row.key, row.value) != row.check:
            raise CorruptDataError("its value and its check do not belong together", named(row.key))
        if isinstance(row.value, str) or not self.is_sealed(row):
            return row.value
        form = row.value[:1]
        if self._cipher is None:
            raise ConfigError(f"{named(row.key)} is sealed: {HOW_TO_OPEN}")
        try:
            body = self._cipher.open(row.value[1:], _location(row.key))
            return body.decode() if form == _SEALED_JSON else _TYPED + body
        except CorruptDataError as error:
            raise error.at(named(row.key)) from error
        except UnicodeDecodeError as error:
            raise CorruptDataError(f"its JSON does not read: {error}", named(row.key)) from error

    def decoded(self, row: ItemRow) -> dict[str, Any]:
        """Return the value of a row. Raises CorruptDataError if it was changed since it was stored."""
        plain = self.plain(row)
        try:
            value = orjson.loads(plain) if isinstance(plain, str) else self._loaded(plain)
        except orjson.JSONDecodeError as error:
            raise CorruptDataError(f"its JSON does not read: {error}", named(row.key)) from error
        except CorruptDataError as error:
            raise error.at(named(row.key)) from error
        if not isinstance(value, dict):
            raise CorruptDataError(f"it has no dictionary, but {type(value).__name__}", named(row.key))
        return value

    def _loaded(self, plain: bytes) -> Any:
        if plain[:1] != _TYPED:
            raise CorruptDataError(f"an unknown form {plain[:1]!r}")
        tag, end, data = plain[1:].partition(_TAG_END)
        if not end:
            raise CorruptDataError("the type of the value is missing")
        return self._serde.loads_typed((tag.decode("utf-8", "replace"), data))


def check_of(key: ItemKey, value: str | bytes) -> int:
    """Return 64 bits of a digest over an item's key and its stored value, as a signed integer."""
    data = value.encode() if isinstance(value, str) else value
    return int.from_bytes(blake2b(_location(key) + data, digest_size=8).digest(), "big", signed=True)


def _location(key: ItemKey) -> bytes:
    """Return the name that a value is bound to. A namespace has no NUL, so no two keys have the same."""
    return f"item\0{key.namespace}\0{key.key}\0".encode("utf-8", "surrogatepass")


def named(key: ItemKey) -> str:
    """Return the location of an item for messages."""
    return f"item {key.key!r} of namespace {key.namespace!r}"


def _json(value: Mapping[str, Any]) -> str | None:
    """Return the value as JSON, or None if JSON would not give it back exactly."""
    if not _is_plain(value, _DEEPEST):
        return None
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # a lone surrogate
        return None


def _is_plain(value: Any, levels: int) -> bool:
    """Return whether JSON gives a value back type for type. Numbers that JSON has not are left to the serializer."""
    kind = type(value)
    if kind is str:
        return "\0" not in value  # which Postgres has in no text
    if kind is int:
        return bool(-_GREATEST <= value < _GREATEST)
    if kind is float:
        return bool(value - value == 0)
    if kind is dict and levels:
        keys_are_text = all(type(key) is str and "\0" not in key for key in value)
        return keys_are_text and all(_is_plain(item, levels - 1) for item in value.values())
    if kind is list and levels:
        return all(_is_plain(item, levels - 1) for item in value)
    return kind is bool or value is None
