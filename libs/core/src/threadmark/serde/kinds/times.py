"""Dates, times, durations and zones, also with the facts that equality ignores: the fold, and the type of the zone."""

import datetime as dt
import re
import time
from pickle import PicklingError
from typing import Any
from zoneinfo import ZoneInfo

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Kind, Reconstruct, StoredClass, exactly, only
from threadmark.serde.lookup import imported


def deconstruct_datetime(value: dt.datetime) -> tuple[Any, ...]:
    """Return date and time, then the zone and the fold if there are any."""
    moment = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return moment + _deconstruct_zone_and_fold(value)


def reconstruct_datetime(items: list[Any], cls: type[dt.datetime] = dt.datetime) -> dt.datetime:
    """Return a datetime, or an instance of a subclass, made by datetime's own `__new__`."""
    year, month, day, hour, minute, second, micro, *rest = items
    # Written out for speed: values often hold many datetimes.
    if not type(year) is type(month) is type(day) is type(hour) is type(minute) is type(second) is type(micro) is int:
        raise CorruptDataError("the parts of a stored datetime are not integers")
    if not rest:
        return dt.datetime.__new__(cls, year, month, day, hour, minute, second, micro)
    zone, fold = _zone_and_fold(rest)
    return dt.datetime.__new__(cls, year, month, day, hour, minute, second, micro, zone, fold=fold)


def _deconstruct_time(value: dt.time) -> tuple[Any, ...]:
    moment = (value.hour, value.minute, value.second, value.microsecond)
    return moment + _deconstruct_zone_and_fold(value)


def _reconstruct_time(items: list[Any]) -> dt.time:
    hour, minute, second, fraction = exactly(items[:4], int, int, int, int)
    zone, fold = _zone_and_fold(items[4:])
    return dt.time(hour, minute, second, fraction, zone, fold=fold)


def _deconstruct_zone_and_fold(value: dt.datetime | dt.time) -> tuple[Any, ...]:
    if value.fold:
        return (value.tzinfo, value.fold)
    return () if value.tzinfo is None else (value.tzinfo,)


def _zone_and_fold(rest: list[Any]) -> tuple[Any, int]:
    zone, fold = (rest[0], 0) if len(rest) == 1 else rest or (None, 0)
    if type(fold) is not int or not is_zone(zone):
        raise CorruptDataError("the zone of a stored moment is not valid")
    return zone, fold


def is_zone(zone: object) -> bool:
    """Whether this is a zone or None. Some libraries would take a name for that of a file."""
    return zone is None or issubclass(type(zone), dt.tzinfo)


def _deconstruct_timezone(value: Any) -> tuple[Any, ...]:
    if value is dt.UTC:
        return ()
    # Only these tell a name that the user set from the equal default that is made of the offset.
    offset, *name = value.__getinitargs__()
    if type(offset) is not dt.timedelta:
        raise SerializationError(f"a timezone whose offset is a {type(offset).__qualname__} cannot be stored")
    return (offset.days, offset.seconds, offset.microseconds, *name)


def _reconstruct_timezone(items: list[Any]) -> dt.timezone:
    if not items:
        return dt.UTC
    days, seconds, microseconds = exactly(items[:3], int, int, int)
    return dt.timezone(dt.timedelta(days, seconds, microseconds), *items[3:])


def _deconstruct_zone(value: ZoneInfo) -> tuple[str] | tuple[str, bool]:
    """Return the key, then False for a zone that is not the shared one that `ZoneInfo(key)` returns."""
    reduced: Any
    try:
        reduced = value.__reduce__()
    except PicklingError as error:
        raise SerializationError("a ZoneInfo that was made from a file cannot be stored; store its key") from error
    key, is_shared = reduced[1]
    return (key,) if is_shared else (key, False)


def _reconstruct_zone(items: list[Any]) -> ZoneInfo:
    key, shared = exactly(items, str, bool) if len(items) > 1 else (only(items, str), True)
    # zoneinfo checks this as well, but a name that stored data chose should not come near a file system.
    if not _ZONE_NAME.fullmatch(key) or not {".", ".."}.isdisjoint(key.split("/")):
        raise CorruptDataError(f"{key!r} is not the name of a time zone")
    return ZoneInfo(key) if shared else ZoneInfo.no_cache(key)


def _deconstruct_struct_time(value: time.struct_time) -> tuple[Any, ...]:
    return (*value, value.tm_zone, value.tm_gmtoff)


_ZONE_NAME = re.compile(r"[^/\\:\0]+(/[^/\\:\0]+)*")
KINDS = (
    Kind("T", dt.datetime, deconstruct_datetime, reconstruct_datetime),
    Kind(
        "y",
        dt.date,
        lambda value: (value.year, value.month, value.day),
        lambda items: dt.date(*exactly(items, int, int, int)),
    ),
    Kind("k", dt.time, _deconstruct_time, _reconstruct_time),
    Kind(
        "j",
        dt.timedelta,
        lambda value: (value.days, value.seconds, value.microseconds),
        lambda items: dt.timedelta(*exactly(items, int, int, int)),
    ),
    Kind("z", dt.timezone, _deconstruct_timezone, _reconstruct_timezone),
    Kind("Z", ZoneInfo, _deconstruct_zone, _reconstruct_zone),
    Kind("g", time.struct_time, _deconstruct_struct_time, time.struct_time),
)


class Offsets(Family):
    """The zone of a datetime that pydantic read from text with an offset, stored as seconds from UTC."""

    code = "O"
    title = "a pydantic offset"

    def accepts(self, cls: type) -> bool:
        """Whether the class is pydantic's zone."""
        pydantic = imported("pydantic_core")
        return pydantic is not None and cls is getattr(pydantic, "TzInfo", None)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the offset in seconds."""
        shape = define.shape()
        return lambda zone: [shape, zone.utcoffset(None) // _SECOND]

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the zone from the offset in seconds."""
        cls = stored.cls
        return lambda items: cls(only(items, int))


_SECOND = dt.timedelta(seconds=1)
FAMILY = Offsets()
