"""The notation of options of several commands: durations, sizes, JSON."""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from threadmark import ConfigError
from threadmark.errors import short_repr

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = "kmgt"


def duration(text: str, or_else: str = "") -> timedelta:
    """Return a length of time: `30d`, `12h`, `1d12h`, `90m`, `45s`, `2w`. The error also names the alternative."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise click.BadParameter(f"{text!r} is no length of time: write it as 30d, 12h, 1d12h, 90m, 45s or 2w{or_else}")
    try:
        length = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    except OverflowError as error:
        raise click.BadParameter(f"{text!r} is longer than any thread lives") from error
    if not length:
        raise click.BadParameter(f"{text!r} is no time at all")
    return length


def moment(text: str) -> datetime:
    """Return a moment in UTC from a date, with or without a time, or from how long ago it is: `2026-11-20`, `1h`."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    try:
        return datetime.now(UTC) - duration(text, ", or a moment such as 2026-11-20 or 2026-11-20T09:30")
    except OverflowError as error:
        raise click.BadParameter(f"{text!r} is longer ago than any thread is old") from error


def size(text: str) -> int:
    """Return a number of bytes: `500MB`, `1.5G`, `64MiB`, `100000`."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no number of bytes: write it as 500MB, 1.5GB, 64MiB or 100000")
    number, power, binary = found.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** (_POWERS.find(power.lower()) + 1 if power else 0))


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """Return the JSON object of an option, None without the option."""
    if text is None:
        return None
    found = json_value_of(text, option)
    if not isinstance(found, dict):
        raise ConfigError(f'{option} is a JSON object, such as \'{{"team": "billing"}}\', not {short_repr(text)}')
    return found


def json_value_of(text: str, option: str) -> Any:
    """Return the JSON value of an option, or of the file that it names behind an @."""
    if text.startswith("@"):
        text = _content(text[1:], option)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{option} is JSON, so text stands in quotation marks: '\"like this\"' ({error}), not {short_repr(text)}"
        ) from error


def channel_values(options: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of channels from `channel=JSON` and `channel=@file.json`."""
    values: dict[str, Any] = {}
    for each in options:
        channel, equals, text = each.partition("=")
        if not (channel and equals):
            raise ConfigError(f"--set is written CHANNEL=JSON or CHANNEL=@FILE, not {short_repr(each)}")
        if channel in values:
            raise ConfigError(f"--set names the channel {channel!r} twice")
        values[channel] = json_value_of(text, f"--set {channel}")
    return values


def _content(path: str, option: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{option}: the file {path!r} cannot be read: {reason}") from error
