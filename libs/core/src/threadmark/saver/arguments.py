"""Checks of a saver's arguments: once, here and in `config`, for every backend and both APIs.

Arguments that pass can be stored and read again, except for values, which the serializer judges. Any other argument
raises a ConfigError that names it. A put has to wait for its checks, so they look at types only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite, isnan
from typing import Any, NamedTuple, TypeVar, cast, get_args
from uuid import UUID

from threadmark.config import NO_CONFIGURABLE, ParsedConfig, parse_config
from threadmark.errors import ConfigError, CorruptDataError, short_repr
from threadmark.ids import Version
from threadmark.metadata import certain_fragments, checked_filter, checked_json, to_json
from threadmark.model import (
    MAPPING,
    UNSET,
    Config,
    ThreadFilter,
    ThreadSort,
    ThreadStatus,
    Unset,
)
from threadmark.names import ID_BYTES, MESSAGES_NS, MOST_BYTES, NAMESPACE_BYTES, THREAD_ID_BYTES, as_text, check_length
from threadmark.runtime.compiled import counterpart
from threadmark.saver.paging import new_cursor, parts_of_cursor
from threadmark.store.contract import NO_NUMBER, now
from threadmark.store.threads import SortKey, ThreadOutline, ThreadPlace, ThreadScope

T = TypeVar("T")

SHORT = min(THREAD_ID_BYTES, NAMESPACE_BYTES, ID_BYTES) // MOST_BYTES
"""Letters of a name that is short enough for any of them, as those of engines are."""

MOST = 1 << 60
"""More than any database holds of anything; times that are so far apart still make a number of 64 bits."""

_MICROSECOND = timedelta(microseconds=1)
_PAIR = 2
_TEXTS = (str, bytes, bytearray, memoryview)
_LISTS = frozenset({list, tuple})
_NO_CHANNELS: Mapping[str, Any] = {}
TEXT = frozenset({str})
PLAIN_VERSIONS = frozenset({str, int})


@counterpart("arguments.plain_writes")
def checked_writes(writes: Iterable[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Check the writes for `put_writes`, any iterable. Returns them with channel names of type `str`."""
    listed: Iterable[Any] = writes if type(writes) in _LISTS else _listed(writes, "writes", "(channel, value) pairs")
    return [
        write if type(write) is tuple and len(write) == _PAIR and type(write[0]) is str else _write(write)
        for write in listed
    ]


@counterpart("arguments.plain_config", ParsedConfig)
def checked_config(config: Config) -> ParsedConfig:
    """Parse a run's configuration. Its names may be stored, as `check_config` says."""
    if not isinstance(config, MAPPING):  # a thread's id names no checkpoint that a put continues
        raise ConfigError(NO_CONFIGURABLE)
    where = parse_config(config)
    check_config(where)
    return where


def check_config(where: ParsedConfig) -> None:
    """Raise ConfigError if names are longer than a row's key may be, or the namespace is not for checkpoints."""
    thread_id, ns, checkpoint_id, _ = where
    if ns == MESSAGES_NS:
        raise ConfigError(f"the namespace {ns!r} is reserved for messages: threadmark.Conversations(saver) stores them")
    if len(thread_id) <= SHORT and len(ns) <= SHORT and len(checkpoint_id or "") <= SHORT:
        return
    check_length(thread_id, THREAD_ID_BYTES, "thread_id")
    check_length(ns, NAMESPACE_BYTES, "checkpoint_ns")
    check_length(checkpoint_id or "", ID_BYTES, "checkpoint id")


def checked_task(task_id: str, task_path: str) -> tuple[str, str]:
    """Check the task of `put_writes`."""
    if type(task_id) is str and type(task_path) is str and len(task_id) <= SHORT:
        return task_id, task_path
    task = as_text(task_id, "task_id")
    check_length(task, ID_BYTES, "task_id")
    return task, as_text(task_path, "task_path")


def checked_channels(channels: Iterable[str]) -> list[str]:
    """Check the channels of `get_delta_channel_history`."""
    return [as_text(channel, "a channel's name") for channel in _listed(channels, "channels", "names")]


def checked_run_id(run_id: object) -> str:
    """The id of a run, as the metadata of its checkpoints has it."""
    return as_text(str(run_id) if isinstance(run_id, UUID) else run_id, "a run's id")


def unique_names(names: Iterable[object], what: str, as_name: Callable[[object], str]) -> list[str]:
    """A list of names, each once."""
    return list(dict.fromkeys(map(as_name, _listed(names, what, "ids"))))


def check_flag(flag: object, what: str) -> None:
    """Raise ConfigError for anything but True and False, because text such as "no" is a true value."""
    if not isinstance(flag, bool):
        raise ConfigError(f"{what} must be True or False, not {short_repr(flag)}")


def check_keep_last(
    keep_last: object, what: str = "keep_last", hint: str = "use strategy='delete' to keep nothing"
) -> None:
    """Raise ConfigError for anything but None or a number of checkpoints to keep."""
    if keep_last is not None and (isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1):
        raise ConfigError(f"{what} must be at least 1, not {short_repr(keep_last)}: {hint}")


def check_progress(progress: object) -> None:
    """Raise ConfigError for anything but None or a function."""
    if progress is not None and not callable(progress):
        raise ConfigError(
            f"progress must be a function that takes a threadmark.types.Progress, not {short_repr(progress)}"
        )


def microseconds_in(duration: timedelta) -> int:
    """Return a duration as times are stored. Durations beyond any lifetime are cut to one limit."""
    return min(max(duration // _MICROSECOND, -MOST), MOST)


def check_seconds(seconds: object, what: str) -> None:
    """Raise ConfigError for anything but a finite number of seconds from 0 on."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not (isfinite(seconds) and seconds >= 0):
        raise ConfigError(f"{what} must be a number of seconds from 0 on, not {short_repr(seconds)}")


def _listed(items: Iterable[T], what: str, of_what: str) -> list[T]:
    """Return some items, read once. Refuses iterables that are most likely a mistake: text, bytes, a dictionary."""
    if isinstance(items, (*_TEXTS, Mapping)) or not isinstance(items, Iterable):
        raise ConfigError(f"{what} must be a list of {of_what}, not {type(items).__name__}")
    try:
        return list(items)
    except TypeError as error:  # an array without dimensions
        raise ConfigError(f"{what} cannot be gone through: {error}") from error


def _write(write: object) -> tuple[str, Any]:
    if not isinstance(write, Sequence) or isinstance(write, _TEXTS) or len(write) != _PAIR:
        raise ConfigError(f"a write must be a pair of channel and value, not {type(write).__name__}")
    channel, value = write
    return as_text(channel, "a channel's name"), value


def checked_versions(argument: object) -> Mapping[str, Version]:
    """The versions of a checkpoint's channels. None counts as empty."""
    versions = by_channel(argument, "channel_versions")
    if PLAIN_VERSIONS.issuperset(map(type, versions.values())):
        return versions
    for version in versions.values():
        kind = type(version)
        if kind in PLAIN_VERSIONS:
            continue
        if kind is not float:
            raise ConfigError("channel_versions must map channel names to an int of up to 64 bits, a float or a string")
        if isnan(version):
            raise ConfigError("a channel's version is not a number (NaN): give one that can be compared")
    return versions


def by_channel(argument: object, what: str) -> Mapping[str, Any]:
    """Check a checkpoint's statements about its channels. None counts as empty."""
    if argument is None:
        return _NO_CHANNELS
    if not isinstance(argument, MAPPING):
        raise ConfigError(f"{what} must be a dictionary, not {type(argument).__name__}")
    return argument if TEXT.issuperset(map(type, argument)) else _in_plain_text(argument, what)


def _in_plain_text(argument: Mapping[Any, Any], what: str) -> Mapping[str, Any]:
    plain = {as_text(channel, f"a channel's name in {what}"): value for channel, value in argument.items()}
    if len(plain) != len(argument):
        raise ConfigError(f"{what} has two channels of one name: their classes tell them apart, and are not stored")
    return plain


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class ThreadUpdate(NamedTuple):
    """The fields of a thread to set. Metadata is patched key by key; None removes a key."""

    title: str | Unset | None = UNSET
    metadata: Mapping[str, Any] | None = None
    owner: str | Unset | None = UNSET
    expires: int | Unset | None = UNSET
    """Microseconds since 1970."""


class ThreadQuery(NamedTuple):
    """The selection and the order of a listing of threads."""

    scope: ThreadScope
    metadata: Mapping[str, Any]
    """The origin of the scope's fragments."""

    @property
    def filters_here(self) -> bool:
        """Whether the saver decides about each thread, because the backend only leaves out sure mismatches."""
        return bool(self.metadata) or self.scope.text is not None

    def place(self, outline: ThreadOutline) -> ThreadPlace:
        """The place of a thread in the listing."""
        values = {"updated": outline.updated_at, "created": outline.row.created_at, "id": 0}
        return ThreadPlace(values[self.scope.sort], outline.row.thread_id)


def thread_query(filters: ThreadFilter, sort: ThreadSort = "-updated") -> ThreadQuery:
    """Check the arguments of a listing of threads. Raises TypeError for an unknown filter."""
    unknown = filters.keys() - ThreadFilter.__annotations__.keys()
    if unknown:
        there = ", ".join(ThreadFilter.__annotations__)
        raise TypeError(f"no argument {short_repr(min(unknown))}: threads are filtered by {there}")
    owner, text = filters.get("owner"), filters.get("text")
    status, since, until = filters.get("status"), filters.get("since"), filters.get("until")
    if status is not None:
        check_word(status, ThreadStatus, "status")
    check_word(sort, ThreadSort, "sort")
    criteria = checked_filter(filters.get("metadata"))
    scope = ThreadScope(
        None if owner is None else checked_owner(owner),
        status,
        certain_fragments(criteria),
        None if text is None else as_text(text, "text"),
        None if since is None else microseconds_of(since, "since"),
        None if until is None else microseconds_of(until, "until"),
        sort=cast("SortKey", sort.removeprefix("-")),  # one of those, checked above
        descending=sort.startswith("-"),
    )
    return ThreadQuery(scope, criteria)


def check_word(argument: object, literal: Any, what: str) -> None:
    """Raise ConfigError for anything but the texts of a Literal. Other kinds of values are not compared."""
    if not isinstance(argument, str) or argument not in get_args(literal):
        raise ConfigError(f"{what} must be {' or '.join(map(repr, get_args(literal)))}, not {short_repr(argument)}")


def checked_count(number: object, what: str) -> int:
    """Check a limit, an offset or a size. One that is greater than the size of any database is taken as that size."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ConfigError(f"{what} must be a number from 0 on, not {short_repr(number)}")
    return min(number, MOST)


def cursor_of(query: ThreadQuery, last: ThreadOutline) -> str:
    """The cursor of the page that begins behind a thread."""
    return new_cursor(_sort_of(query), *query.place(last))


def place_of(query: ThreadQuery, cursor: str | None) -> ThreadPlace | None:
    """The place that a cursor names."""
    if cursor is None:
        return None
    sort, value, thread_id = parts_of_cursor(cursor, (str, int, str))
    if sort != _sort_of(query):
        raise ConfigError(f"the cursor is of a listing sorted by {short_repr(sort)}: give the same sort, or no cursor")
    return ThreadPlace(value, thread_id)


def thread_update(
    title: str | Unset | None,
    metadata: Mapping[str, Any] | None,
    owner: str | Unset | None,
    expires: datetime | timedelta | Unset | None,
) -> ThreadUpdate:
    """Check the fields of a thread to set."""
    if title is not None and title is not UNSET:
        title = as_text(title, "title")
    if metadata is not None:
        to_json(checked_json("metadata", metadata, "store a JSON value"))
    if owner is not None and owner is not UNSET:
        owner = checked_owner(owner)
    if expires is None or expires is UNSET:
        return ThreadUpdate(title, metadata, owner, expires)
    moment = (
        now() + microseconds_in(expires) if isinstance(expires, timedelta) else microseconds_of(expires, "expires_at")
    )
    return ThreadUpdate(title, metadata, owner, moment)


def checked_owner(owner: object) -> str:
    """Check the name of an owner."""
    name = as_text(owner, "owner")
    if not name:
        raise ConfigError("owner must not be empty: give None for a thread without an owner")
    check_length(name, THREAD_ID_BYTES, "owner")
    return name


def time_of(microseconds: int) -> datetime:
    """Return a stored time as a datetime."""
    if microseconds == NO_NUMBER or not isinstance(microseconds, int):
        raise CorruptDataError("a stored time is no number")
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # a wrong clock, or damage: `created` and `updated` are in no check
        return _LAST if microseconds > 0 else _FIRST


def microseconds_of(time: object, what: str) -> int:
    """Return a user's time as times are stored."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise ConfigError(
            f"{what} must be a datetime with a time zone, such as datetime.now(UTC), not {short_repr(time)}"
        )
    return (time - _EPOCH) // _MICROSECOND


def _sort_of(query: ThreadQuery) -> str:
    return f"{'-' if query.scope.descending else ''}{query.scope.sort}"
