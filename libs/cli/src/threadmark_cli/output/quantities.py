"""Times and sizes as people read them."""

from datetime import UTC, datetime

_STEP = 1000
_UNITS = ("B", "kB", "MB", "GB", "TB")


def time_text(moment: datetime) -> str:
    """A moment in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def minute_text(moment: datetime) -> str:
    """A moment in UTC, to the minute, without its year."""
    return moment.astimezone(UTC).strftime("%m-%d %H:%M")


def bytes_text(count: int) -> str:
    """A number of bytes: `812 B`, `1.4 MB`."""
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < _STEP:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"
