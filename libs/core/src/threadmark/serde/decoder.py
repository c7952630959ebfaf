"""Bytes to values: msgpack's C unpacker, which hands over every mark and every finished array."""

from typing import Any

from threadmark.errors import CorruptDataError, PlacedError
from threadmark.serde.plan import Plan
from threadmark.serde.plans import Plans
from threadmark.serde.wire import MARK_CODE, ExtType, unpack


def decode(encoded: bytes, plans: Plans) -> Any:
    """The value, or an error; nothing half-built is ever handed out."""
    known: dict[bytes, Plan] = {}
    marks = 0

    def read_mark(code: int, payload: bytes) -> Any:
        nonlocal marks
        if code != MARK_CODE:
            return ExtType(code, payload)
        marks += 1
        plan = known.get(payload)
        if plan is None:
            plan = known[payload] = plans.of_mark(payload)
        return plan

    def read_array(items: list[Any]) -> Any:
        nonlocal marks
        if items and type(items[0]) is Plan:
            marks -= 1
            plan: Plan = items[0]
            del items[0]
            return plan.give(items)
        return items

    try:
        value = unpack(encoded, read_array, read_mark)
    except PlacedError:
        raise
    except Exception as error:
        raise CorruptDataError(f"the stored bytes cannot be read: {type(error).__name__}: {error}") from error
    if marks:
        raise CorruptDataError("a mark stands where no typed array begins")
    return value
