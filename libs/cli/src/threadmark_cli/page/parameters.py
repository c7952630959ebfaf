"""The contents of a request: parameters of its address, and a body of JSON. Each fault is named."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from threadmark_cli.page.answers import BadRequest

_MOST_PARAMETERS = 32
_LARGEST_BODY = 4 * 1024 * 1024


class Parameters:
    """The parameters of a request's address. Any text can be one, a lone surrogate, too, as its three bytes."""

    def __init__(self, request: Request) -> None:
        query = request.scope["query_string"].decode("latin-1")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="surrogatepass", max_num_fields=_MOST_PARAMETERS)
        except ValueError as error:
            raise BadRequest(
                f"the address has parameters that are not UTF-8, or more than {_MOST_PARAMETERS}"
            ) from error
        self._values: dict[str, str] = dict(pairs)
        if len(self._values) != len(pairs):
            raise BadRequest("the address has the same parameter twice")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> str | None:
        """Return a parameter, None if it is missing."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """Return a parameter that has to be there."""
        if name not in self._values:
            raise BadRequest(f"the parameter {name!r} is missing")
        return self._values[name]

    def number(self, name: str, default: int, most: int) -> int:
        """Return a parameter that is a whole number from 0 to `most`."""
        text = self._values.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most):
            raise BadRequest(f"the parameter {name!r} must be a whole number from 0 to {most}")
        return int(text)

    def dictionary(self, name: str) -> dict[str, Any] | None:
        """Return a parameter that is a JSON object, None if it is missing."""
        text = self._values.get(name)
        return None if not text else _object(text, f"the parameter {name!r}")


async def body_of(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """Return the JSON object in a request's body. It has these keys and no others, of these types or null."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequest("the body must be application/json", 415)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise BadRequest(f"the body is larger than {_LARGEST_BODY:,} bytes", 413)
    try:
        text = body.decode()
    except ValueError as error:
        raise BadRequest("the body is not UTF-8") from error
    found = _object(text, "the body")
    for name, value in found.items():
        if name not in known:
            raise BadRequest(f"the body has an unknown key {name!r}: use {', '.join(known)}")
        if value is not None and not isinstance(value, known[name]):
            raise BadRequest(f"{name!r} in the body has the wrong type: it must be {known[name].__name__} or null")
    return found


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{what} is not valid JSON") from error
    if not isinstance(found, dict):
        raise BadRequest(f"{what} must be a JSON object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)
