"""A checkpoint's header: everything of a checkpoint except its key, with each value in its stored form.

It is encoded as plain msgpack, in the engine's order, so that a step's header differs from its parent's in a few places
only, and the rope stores just those.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgpack

from threadmark.errors import ConfigError, CorruptDataError
from threadmark.format.digests import pack_plain
from threadmark.format.stored import Encoded, Stored
from threadmark.ids import Version
from threadmark.serde import Serializer
from threadmark.serde.whole import check_complete
from threadmark.serde.wire import NotPlainError, holds_unasked, unpack_plain

HEADER_TAG = "h1"
UNFINISHED_TAG = "u1"
"""The tag of a header if nodes are still to run, which listings of threads look at."""

_PLAIN = {"v", "ts", "versions_seen", "updated_channels"}
_SPECIAL = {"id", "channel_values", "channel_versions"}


class Header(NamedTuple):
    """The content of a checkpoint's row, without its key and its metadata.

    `plain` has the usual fields, encoded by msgpack, which restores them exactly. `rest` has all others, encoded by the
    serializer. Both stay encoded, so that a remembered header cannot be changed.
    """

    versions: dict[str, Version]
    values: dict[str, Stored]
    plain: bytes
    rest: Encoded | None

    def to_bytes(self) -> bytes:
        """Return the header's encoding (docs/reference/format.md)."""
        try:
            return pack_plain(
                [
                    self.plain,
                    self.versions,
                    {channel: value.body for channel, value in self.values.items()},
                    list(self.rest) if self.rest else None,
                ]
            )
        except (TypeError, ValueError, OverflowError) as error:  # everything else was checked on its way in
            raise ConfigError("channel_versions has a version that is an int of more than 64 bits") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> "Header":
        """Return the header that `to_bytes` encoded. Raises CorruptDataError if it cannot be read."""
        try:
            plain, versions, values, rest = _unpackb(data)
            if not (type(plain) is bytes and type(versions) is dict):
                raise CorruptDataError("its header cannot be read")
            return cls(
                versions,
                {channel: Stored.from_bytes(body) for channel, body in values.items()},
                plain,
                None if rest is None else _expect_encoded(rest),
            )
        except (ValueError, TypeError, AttributeError, LookupError, MemoryError) as error:
            raise CorruptDataError("its header cannot be read") from error


def _expect_encoded(rest: Any) -> Encoded:
    tag, data = rest
    if not (type(tag) is str and type(data) is bytes):
        raise CorruptDataError("its header cannot be read")
    return Encoded(tag, data)


def split_fields(
    checkpoint: Mapping[str, Any], encode: Callable[[Any], tuple[str, bytes]]
) -> tuple[bytes, Encoded | None]:
    """Encode a checkpoint's other fields with msgpack, or `encode` (the serializer). Returns `plain` and `rest`."""
    plain: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in checkpoint.items():
        if key in _PLAIN:
            plain[key] = value
        elif key not in _SPECIAL:
            rest[key] = value
    packed = _packed(plain)
    if packed is None:  # one of them holds a value that only the serializer restores, such as a tuple
        plain = {key: value for key, value in plain.items() if type(key) is str and _packed(value) is not None}
        packed = pack_plain(plain)
        rest = {key: value for key, value in checkpoint.items() if key not in plain and key not in _SPECIAL}
    return packed, Encoded(*encode(rest)) if rest else None


def joined_fields(header: Header, serde: Serializer) -> dict[str, Any]:
    """Return the argument of `split_fields`."""
    plain = plain_fields(header)
    if header.rest is None:
        return plain
    rest = serde.loads_typed(header.rest)
    if not isinstance(rest, dict):
        raise CorruptDataError("its other fields cannot be read")
    return {**plain, **rest}


def plain_fields(header: Header) -> dict[str, Any]:
    """Return the fields that do not need the serializer."""
    try:
        plain: dict[str, Any] = _unpacked(header.plain)
    except (ValueError, TypeError, MemoryError) as error:
        raise CorruptDataError("its fields cannot be read") from error
    if type(plain) is not dict:
        raise CorruptDataError("its fields cannot be read")
    return plain


def with_fields(header: Header, changes: Mapping[str, Any]) -> Header:
    """Return the header with other values of those fields that it has and that do not need the serializer."""
    plain = plain_fields(header)
    return header._replace(plain=pack_plain({key: changes.get(key, value) for key, value in plain.items()}))


def _packed(value: Any) -> bytes | None:
    """Encode with msgpack alone. Returns None for tuples, subclasses and other types that msgpack does not preserve."""
    try:
        packed = pack_plain(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    if (b"\xc4" in packed or b"\xc5" in packed or b"\xc6" in packed) and holds_unasked([value]):
        return None  # one of these bytes begins binary data, and a bytearray would come back as bytes
    return packed


def _unpacked(packed: bytes) -> Any:
    try:
        return unpack_plain(packed)
    except NotPlainError:
        return _unpackb(packed, strict_map_key=False)


def _unpackb(packed: bytes, *, strict_map_key: bool = True) -> Any:
    check_complete(packed)
    return msgpack.unpackb(packed, unicode_errors="surrogatepass", strict_map_key=strict_map_key)
