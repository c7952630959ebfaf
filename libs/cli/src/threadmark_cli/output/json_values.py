"""Any stored value as JSON, for `--json`: a value that JSON lacks is an object whose `__type__` names it."""

import base64
import json
import math
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from threadmark.serde.object_view import SECRET_FIELD
from threadmark.types import ObjectView
from threadmark_cli.output.printable import escaped, text_of

_MOST_BITS = 10_000
"""The most digits of a number: Python refuses to write much longer ones."""


def visible_fields(view: ObjectView) -> dict[str, Any]:
    """The fields of an object, without those that its class keeps secret."""
    return {name: "**********" if name == SECRET_FIELD else value for name, value in view.fields.items()}


def json_line(record: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """A record as one line of JSON, in which everything that a terminal could take for a command is escaped.

    JSON is UTF-8, so `ascii_only` is for a stream that has another encoding.
    """
    text = json.dumps(json_value(record), ensure_ascii=ascii_only, separators=(", ", ": "))
    return escaped(text, _as_units)


def _as_units(character: str) -> str:
    """A character as JSON can write any: one or two units of UTF-16."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


def json_value(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, ObjectView):
        return {"__type__": value.name, **{name: json_value(each) for name, each in visible_fields(value).items()}}
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return _leaf(value)


def _leaf(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _MOST_BITS else {"__type__": "int", "hex": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"__type__": "float", "value": str(value)}
    return _other(value)


def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(isinstance(key, str) for key in value):
        return {key: json_value(each) for key, each in value.items()}
    return {"__type__": "dict", "items": [[json_value(key), json_value(each)] for key, each in value.items()]}


def _other(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, bytes | bytearray | memoryview):
        return {"__type__": kind, "base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, set | frozenset | deque):
        return {"__type__": kind, "items": [json_value(each) for each in value]}
    if isinstance(value, datetime):
        return {"__type__": kind, "value": value.isoformat()}
    return {"__type__": kind, "value": text_of(value)}


def quoted(text: str) -> str:
    """A text as JSON writes it, as a step of a path has it."""
    return json.dumps(text, ensure_ascii=False)
