"""Dates, times, durations and zones, with everything equality does not look at: fold and the zone's own kind."""

import datetime
import time
from typing import Any
from zoneinfo import ZoneInfo

from threadmark.errors import SerializationError
from threadmark.serde.plan import Kind


def take_datetime(value: datetime.datetime) -> tuple[Any, ...]:
    moment = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    if value.fold:
        return (*moment, value.tzinfo, value.fold)
    return moment if value.tzinfo is None else (*moment, value.tzinfo)


def give_datetime(items: list[Any], cls: type[datetime.datetime] = datetime.datetime) -> datetime.datetime:
    """A datetime, or one of a subclass; `__new__` is datetime's own."""
    moment, zone, fold = items[:7], *_zone_and_fold(items[7:])
    return datetime.datetime.__new__(cls, *moment, zone, fold=fold)


def _take_time(value: datetime.time) -> tuple[Any, ...]:
    moment = (value.hour, value.minute, value.second, value.microsecond)
    if value.fold:
        return (*moment, value.tzinfo, value.fold)
    return moment if value.tzinfo is None else (*moment, value.tzinfo)


def _give_time(items: list[Any]) -> datetime.time:
    zone, fold = _zone_and_fold(items[4:])
    return datetime.time(*items[:4], zone, fold=fold)


def _zone_and_fold(rest: list[Any]) -> tuple[Any, int]:
    zone, fold = (rest[0], 0) if len(rest) == 1 else rest or (None, 0)
    return zone, fold


def _take_timezone(value: datetime.timezone) -> tuple[Any, ...]:
    if value is datetime.timezone.utc:
        return ()
    offset = value.utcoffset(None)
    name = value.tzname(None)
    plain = (offset.days, offset.seconds, offset.microseconds)
    # A name that the offset gives by itself is not the zone's own.
    return plain if name == datetime.timezone(offset).tzname(None) else (*plain, name)


def _give_timezone(items: list[Any]) -> datetime.timezone:
    if not items:
        return datetime.timezone.utc
    days, seconds, microseconds, *name = items
    return datetime.timezone(datetime.timedelta(days, seconds, microseconds), *name)


def _take_zone(value: ZoneInfo) -> tuple[str]:
    if value.key is None:
        raise SerializationError("a ZoneInfo without a key (made from a file) cannot be stored")
    return (value.key,)


def _take_struct_time(value: time.struct_time) -> tuple[Any, ...]:
    return (*value, value.tm_zone, value.tm_gmtoff)


KINDS = (
    Kind("T", datetime.datetime, take_datetime, give_datetime),
    Kind(
        "y",
        datetime.date,
        lambda value: (value.year, value.month, value.day),
        lambda items: datetime.date(*items),
    ),
    Kind("k", datetime.time, _take_time, _give_time),
    Kind(
        "j",
        datetime.timedelta,
        lambda value: (value.days, value.seconds, value.microseconds),
        lambda items: datetime.timedelta(*items),
    ),
    Kind("z", datetime.timezone, _take_timezone, _give_timezone),
    Kind("Z", ZoneInfo, _take_zone, lambda items: ZoneInfo(*items)),
    Kind("g", time.struct_time, _take_struct_time, lambda items: time.struct_time(items)),
)
