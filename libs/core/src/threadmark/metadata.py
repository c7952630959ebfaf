"""Checkpoint metadata: JSON that comes back equal, and the filter that searches it.

Both are done here and not in SQL, so that every backend gives the same answer. A backend may use its knowledge of
a filter to read fewer rows (`certain_fragments`); the filter itself decides.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from threadmark.config import NOT_METADATA, config_metadata
from threadmark.errors import ConfigError, CorruptDataError, SerializationError, short_repr
from threadmark.model import MAPPING, Config, Metadata
from threadmark.names import as_text
from threadmark.runtime.compiled import counterpart

DEEPEST = 100
"""Levels of metadata, and of a filter. Stored metadata can then be read at any depth of calls:
Python's own bound counts the callers, too."""

_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_LONGEST_LOCATION = 200

_INEXACT = "null"
"""The encoding that orjson makes of None, and of numbers that are none (NaN) or infinite as well."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


class CheckedMetadata(Metadata):
    """Metadata merged with a configuration's, and found to come back equal from JSON. Neither is done again."""

    __slots__ = ("text",)

    text: str
    """Its JSON."""


@counterpart("arguments.plain_metadata", CheckedMetadata, NOT_METADATA, orjson.dumps)
def checked_metadata(config: Config, metadata: Mapping[str, Any]) -> CheckedMetadata:
    """Check a checkpoint's metadata, merged with its configuration's, as `checked` and `merged` say."""
    return checked(merged(config, metadata))


def checked(merged: Metadata) -> CheckedMetadata:
    """Check a result of `merged`. Raises SerializationError if JSON does not give it back."""
    made = CheckedMetadata(merged)
    made.text = to_json(merged)
    return made


def merged(config: Config, metadata: Mapping[str, Any]) -> Metadata:
    """A checkpoint's metadata: every key of `metadata`, then the additions of the run's configuration."""
    if not isinstance(metadata, MAPPING):
        raise ConfigError(f"metadata must be a dictionary, not {type(metadata).__name__}")
    result = dict(metadata)
    for key, value in config_metadata(config).items():
        result.setdefault(key, value)
    return result


def to_json(metadata: Mapping[str, Any]) -> str:
    """Convert metadata to JSON that `from_json` reads back equal. Raises SerializationError if that is impossible."""
    plain = metadata if type(metadata) is dict else dict(metadata)
    check_plain(plain, "metadata")
    try:
        text = orjson.dumps(plain).decode()
    except orjson.JSONEncodeError:  # an int of more than 64 bits, or lone surrogates
        text = _INEXACT
    if _INEXACT not in text:
        return text
    try:
        # Surrogates stand as they are (`text.to_column` is for those): two of them that JSON escapes are one letter.
        return _encode(plain)
    except ValueError as error:  # the digits of an int are too many for this Python
        raise SerializationError(str(error), "metadata") from error


def from_json(text: str) -> Metadata:
    """The metadata of a row's JSON text."""
    try:
        metadata, end = _decode(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise CorruptDataError("its metadata is not JSON", "metadata") from error
    if not isinstance(metadata, dict) or end < len(text):
        raise CorruptDataError("its metadata is not a JSON object", "metadata")
    return metadata


def matches(metadata: Mapping[str, Any], criteria: Mapping[str, Any]) -> bool:
    """Whether every key of `criteria` is in `metadata` with an equal JSON value (True is not 1)."""
    return all(key in metadata and _same(metadata[key], value) for key, value in criteria.items())


def checked_filter(criteria: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check that a filter can be compared with stored JSON. Raises ConfigError that names the key that cannot."""
    return checked_json("filter", {} if criteria is None else criteria, "compare with a JSON value")


def checked_json(name: str, given: Mapping[str, Any], way_out: str) -> dict[str, Any]:
    """Check that an argument is a dictionary of JSON. Raises ConfigError that names the key that is not."""
    if not isinstance(given, MAPPING):
        raise ConfigError(f"{name} must be a dictionary, not {type(given).__name__}")
    try:
        plain = {as_text(key, f"a key of {name}"): given[key] for key in given}
        check_plain(plain, name)
    except SerializationError as error:
        raise ConfigError(f"{error.location}: {error.problem}; {way_out}") from error
    return plain


def certain_fragments(criteria: Mapping[str, Any]) -> list[str]:
    """Return texts that the JSON of every matching metadata contains. Rows without them need not be read.

    Only strings, booleans and None have one: equal numbers can be spelled in several ways, and so can equal objects
    and letters outside ASCII.
    """
    spelled = [
        to_json({key: value})[1:-1]
        for key, value in criteria.items()
        if value is None or isinstance(value, (str, bool))
    ]
    return [fragment for fragment in spelled if fragment.isascii()]


def run_id_in(metadata: str) -> str | None:
    """The run that made a checkpoint, from the JSON text of its metadata."""
    return run_id_of(from_json(metadata)) if '"run_id"' in metadata else None


def run_id_of(metadata: Mapping[str, Any]) -> str | None:
    """The run that metadata, or a filter, names."""
    run_id = metadata.get("run_id")
    return run_id if isinstance(run_id, str) else None


def check_plain(value: Any, location: str, levels: int = DEEPEST) -> None:
    """Raise SerializationError if a value is not of the types that JSON gives back, or a tuple."""
    kind = type(value)
    if kind in _SCALARS:
        return
    if levels == 0:
        raise SerializationError(
            f"it is nested deeper than {DEEPEST} levels, or contains itself", location[:_LONGEST_LOCATION]
        )
    items: Iterable[tuple[object, Any]]
    if kind is dict:
        if not _TEXT.issuperset(map(type, value)):
            key = next(key for key in value if type(key) is not str)
            raise SerializationError(f"the key {short_repr(key)} is not a string; metadata is JSON", location)
        items = value.items()
    elif kind in (list, tuple):
        items = enumerate(value)
    else:
        raise SerializationError(
            f"a {kind.__name__} is not a JSON value; metadata is JSON, so that it can be searched. "
            "Keep it in a channel, or convert it to a string or a number",
            location,
        )
    for key, item in items:
        if type(item) not in _SCALARS:
            check_plain(item, f"{location}[{key!r}]", levels - 1)


def _same(stored: Any, expected: Any) -> bool:
    if isinstance(stored, bool) or isinstance(expected, bool):
        return stored is expected
    if isinstance(stored, dict) and isinstance(expected, dict):
        return stored.keys() == expected.keys() and all(_same(stored[key], expected[key]) for key in stored)
    if isinstance(stored, list) and isinstance(expected, (list, tuple)):
        return len(stored) == len(expected) and all(map(_same, stored, expected))
    if isinstance(stored, float) and isinstance(expected, float) and math.isnan(stored):
        return math.isnan(expected)
    return bool(stored == expected)
