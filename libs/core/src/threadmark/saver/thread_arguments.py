"""What callers say of threads, checked on its way in: what to set, what to list, and where a page begins."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from os import getpid
from socket import gethostname
from typing import Any, NamedTuple, cast, get_args

from threadmark.config import as_thread_id
from threadmark.errors import ConfigError, CorruptDataError, shown
from threadmark.metadata import certain_fragments, checked_filter, to_json
from threadmark.model import UNSET, OnBusy, ThreadSort, ThreadStatus, Unset
from threadmark.names import ID_BYTES, THREAD_ID_BYTES, as_text, check_length
from threadmark.saver.arguments import MOST, check_seconds, microseconds_in
from threadmark.saver.cursors import new_cursor, parts_of_cursor
from threadmark.saver.operations.leasing import LeaseRequest
from threadmark.store import NO_NUMBER, now
from threadmark.thread_store import SortKey, ThreadOutline, ThreadPlace, ThreadScope

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SHORTEST_LEASE, _LONGEST_LEASE = 0.01, 30 * 86400
"""Seconds. One that lives for a month has been forgotten by whoever took it."""

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class ThreadUpdate(NamedTuple):
    """What is to be set of a thread. Metadata is patched key by key; None removes a key."""

    title: str | Unset | None = UNSET
    metadata: Mapping[str, Any] | None = None
    owner: str | Unset | None = UNSET
    expires: int | Unset | None = UNSET
    """Microseconds since 1970."""


class ThreadQuery(NamedTuple):
    """Which threads are asked for, and in which order."""

    scope: ThreadScope
    metadata: Mapping[str, Any]
    """What the scope's fragments were made from."""

    @property
    def filters_here(self) -> bool:
        """Whether the saver decides about each thread, because the backend only leaves out what it surely may."""
        return bool(self.metadata) or self.scope.text is not None

    def place(self, outline: ThreadOutline) -> ThreadPlace:
        """The place of a thread in the listing."""
        values = {"updated": outline.updated_at, "created": outline.row.created_at, "id": 0}
        return ThreadPlace(values[self.scope.sort], outline.row.thread_id)


def given_query(
    *,
    owner: str | None = None,
    status: ThreadStatus | None = None,
    metadata: Mapping[str, Any] | None = None,
    text: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    sort: ThreadSort = "-updated",
) -> ThreadQuery:
    """Check what a listing is asked for."""
    if status is not None and status not in get_args(ThreadStatus):
        raise ConfigError(f"status must be one of {', '.join(get_args(ThreadStatus))}, not {shown(status)}")
    if sort not in get_args(ThreadSort):
        raise ConfigError(f"sort must be one of {', '.join(get_args(ThreadSort))}, not {shown(sort)}")
    wanted = checked_filter(metadata)
    scope = ThreadScope(
        None if owner is None else given_owner(owner),
        status,
        certain_fragments(wanted),
        None if text is None else as_text(text, "text"),
        None if since is None else microseconds_of(since, "since"),
        None if until is None else microseconds_of(until, "until"),
        sort=cast("SortKey", sort.removeprefix("-")),  # one of those, checked above
        descending=sort.startswith("-"),
    )
    return ThreadQuery(scope, wanted)


def given_count(number: object, what: str) -> int:
    """Check a limit, an offset or a size. One that is greater than what any database holds is no other than that."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ConfigError(f"{what} must be a number from 0 on, not {shown(number)}")
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
        raise ConfigError(f"the cursor is of a listing sorted by {shown(sort)}: give the same sort, or no cursor")
    return ThreadPlace(value, thread_id)


def given_update(
    title: str | Unset | None,
    metadata: Mapping[str, Any] | None,
    owner: str | Unset | None,
    expires: datetime | timedelta | Unset | None,
) -> ThreadUpdate:
    """Check what is to be set."""
    if title is not None and title is not UNSET:
        title = as_text(title, "title")
    if metadata is not None:
        to_json(checked_filter(metadata))
    if owner is not None and owner is not UNSET:
        owner = given_owner(owner)
    if expires is None or expires is UNSET:
        return ThreadUpdate(title, metadata, owner, expires)
    moment = now() + microseconds_in(expires) if isinstance(expires, timedelta) else microseconds_of(expires, "expires")
    return ThreadUpdate(title, metadata, owner, moment)


def given_owner(owner: object) -> str:
    """Check the name of an owner."""
    name = as_text(owner, "owner")
    if not name:
        raise ConfigError("owner must not be empty: give None for a thread that belongs to nobody")
    check_length(name, THREAD_ID_BYTES, "owner")
    return name


def given_lease(
    thread_id: object, on_busy: OnBusy, ttl: float | timedelta, holder: str | None, timeout: float | None
) -> LeaseRequest:
    """Check what a lease is asked for."""
    name = as_thread_id(thread_id)
    check_length(name, THREAD_ID_BYTES, "thread_id")
    if not isinstance(on_busy, str) or on_busy not in get_args(OnBusy):
        raise ConfigError(f"on_busy must be one of {', '.join(get_args(OnBusy))}, not {shown(on_busy)}")
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    check_seconds(seconds, "ttl")
    if not _SHORTEST_LEASE <= seconds <= _LONGEST_LEASE:
        raise ConfigError(f"ttl must be from {_SHORTEST_LEASE} to {_LONGEST_LEASE} seconds, not {shown(ttl)}")
    if timeout is not None:
        check_seconds(timeout, "timeout")
        if on_busy != "wait":
            raise ConfigError(f"timeout is how long on_busy='wait' waits; with on_busy={on_busy!r} leave it out")
    who = f"{gethostname()}, process {getpid()}" if holder is None else as_text(holder, "holder")
    check_length(who, ID_BYTES, "holder")
    return LeaseRequest(name, on_busy, round(seconds * 1e6), who)


def time_of(microseconds: int) -> datetime:
    """A stored time as its user sees it."""
    if microseconds == NO_NUMBER or not isinstance(microseconds, int):
        raise CorruptDataError("a stored time is no number")
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # somebody's clock, or damage: `created` and `updated` are in no check
        return _LAST if microseconds > 0 else _FIRST


def microseconds_of(time: object, what: str) -> int:
    """A user's time as it is stored."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise ConfigError(f"{what} must be a datetime with a time zone, such as datetime.now(UTC), not {shown(time)}")
    return (time - _EPOCH) // _MICROSECOND


def _sort_of(query: ThreadQuery) -> str:
    return f"{'-' if query.scope.descending else ''}{query.scope.sort}"
