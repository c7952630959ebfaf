"""The server's answers: JSON, and errors that name the fault and nothing of the server's insides."""

import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from threadmark import (
    CheckpointNotFoundError,
    ConfigError,
    ConflictError,
    LeaseLostError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadmarkError,
    ThreadNotFoundError,
    TransientStoreError,
)
from threadmark_cli.exits import RefusedError

ErrorKind = Literal["not_found", "bad_request", "refused", "failed"]

Endpoint = Callable[[Request], Awaitable[Response]]

_NOT_FOUND = 404

_log = logging.getLogger("threadmark.page")


class BadRequest(Exception):  # noqa: N818 - reads as its answer
    """The request cannot be understood, or is too much."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class NotThere(Exception):  # noqa: N818 - reads as its answer
    """The resource of the request is not there."""


class Refused(Exception):  # noqa: N818 - reads as its answer
    """The request is not allowed here."""


def answer(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON. It has ASCII characters only, so that any text arrives as it is stored."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(content), allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def error_answer(status: int, kind: ErrorKind, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that names the fault."""
    response = answer({"error": {"kind": kind, "message": message}}, status)
    response.headers.update(headers or {})
    return response


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that is not let in."""
    return error_answer(status, "refused", message, headers)


def answering(endpoint: Callable[[Request], Awaitable[Any]]) -> Endpoint:
    """Return an endpoint that answers with the result of another one, or with the error that it raises."""

    async def answered(request: Request) -> Response:
        try:
            result = await endpoint(request)
        except Exception as error:  # noqa: BLE001 - every error is an answer, and an unexpected one is logged
            return error_of(error)
        return result if isinstance(result, Response) else answer(result)

    return answered


def error_of(error: Exception) -> Response:
    """Return the answer for an error."""
    for kinds, status, found in _ANSWERS:
        if isinstance(error, kinds):
            return error_answer(status, found, str(error))
    if isinstance(error, BadRequest):
        return error_answer(error.status, "bad_request", str(error))
    if isinstance(error, HTTPException):
        kind: ErrorKind = "not_found" if error.status_code == _NOT_FOUND else "refused"
        return error_answer(error.status_code, kind, error.detail, error.headers)
    _log.error("the page's server failed", exc_info=error)
    return error_answer(500, "failed", f"the server failed with {type(error).__name__}: see its log for details")


_ANSWERS: tuple[tuple[tuple[type[Exception], ...], int, ErrorKind], ...] = (
    ((NotThere, CheckpointNotFoundError, ThreadNotFoundError), 404, "not_found"),
    ((ConfigError,), 400, "bad_request"),
    ((Refused, RefusedError), 403, "refused"),
    ((ConflictError, ThreadBusyError, LeaseLostError, ThreadDeletedError), 409, "refused"),
    ((TransientStoreError,), 503, "failed"),
    ((ThreadmarkError,), 500, "failed"),
)


def _finite(value: Any) -> Any:
    """Return JSON in which numbers that JSON lacks (NaN, infinities) are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return float.__repr__(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
