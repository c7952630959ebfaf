"""The options and the two databases of a pair, checked, and the saver over them."""

from collections.abc import Mapping
from typing import Any

from threadmark.around.deferred import is_deferred
from threadmark.errors import ConfigError, short_repr
from threadmark.model import Duration
from threadmark.replication.driver import PairDriver
from threadmark.replication.model import Failover, OnSecondaryFailure, ReplicationMode, SideName
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.saver import ReplicatedSaver
from threadmark.replication.steps import Side
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.kit import check_options, check_seconds, check_word, checked_duration
from threadmark.store.replica import ReplicaStore
from threadmark.urls import open as open_saver

_CHOICES: Mapping[str, object] = {
    "mode": ReplicationMode,
    "on_secondary_failure": OnSecondaryFailure,
    "failover": Failover,
}
_SECONDS = ("deadline", "health_interval", "drain_timeout")
_COUNTS = ("max_lag", "max_failover_attempts")
KINDS: Mapping[str, Any] = {
    **_CHOICES,
    **dict.fromkeys(_SECONDS, float),
    **dict.fromkeys(_COUNTS, int),
    "deadline": float | None,
    "failback_delay": Duration | None,
}
"""The types of the options that a URL may have."""
_MOST_SECONDS = 86_400
"""A day. Much longer times overflow when a thread waits."""


def checked_settings(**settings: Any) -> Settings:
    """Return the checked options of `replicated`. Raises ConfigError for impossible ones."""
    for name, kind in _CHOICES.items():
        check_word(settings[name], kind, name)
    for name in _SECONDS:
        if (name, settings[name]) != ("deadline", None):
            _check_duration(settings[name], name)
    for name in _COUNTS:
        count = settings[name]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"{name} must be a number from 1 on, not {short_repr(count)}")
    delay = settings["failback_delay"]
    if delay is not None:
        length = checked_duration(delay, "failback_delay")
        if settings["failover"] != "automatic":
            raise ConfigError("failback_delay needs failover='automatic': otherwise promote() moves the writes back")
        settings["failback_delay"] = length.total_seconds()
    return Settings(**settings)


def _check_duration(seconds: Any, name: str) -> None:
    check_seconds(seconds, name)
    if not 0 < seconds <= _MOST_SECONDS:
        raise ConfigError(
            f"{name} must be more than 0 and at most {_MOST_SECONDS:,} seconds, not {short_repr(seconds)}"
        )


def make(primary: object, secondary: object, settings: Settings, options: SaverOptions) -> ReplicatedSaver:
    """Return a saver over two databases. Savers that it opened are closed if it fails."""
    check_options(ReplicatedSaver, options, settings._fields)
    savers: list[Saver] = []
    try:
        for name, database in (("primary", primary), ("secondary", secondary)):
            savers.append(_saver(name, database))
        first, second = savers
        if isinstance(primary, Saver) and isinstance(secondary, Saver) and "keyring" not in options:
            _expect_one_keyring(first, second)
        merged: SaverOptions = {**first._options, **options}  # noqa: SLF001 - the sides are ours from now on
        pair = Pair(_side("primary", first), _side("secondary", second), settings)
        pair.check_sides()
        return ReplicatedSaver(PairDriver(pair), **merged)
    except BaseException:
        for saver, database in zip(savers, (primary, secondary), strict=False):
            if saver is not database:
                saver.close()
        raise


def _saver(name: str, database: object) -> Saver:
    """The saver of a side. Raises ConfigError for one that cannot be replicated."""
    opened = open_saver(database) if isinstance(database, str) else database
    if not isinstance(opened, Saver):
        raise ConfigError(
            f"{name} must be a URL or a threadmark saver, not a {type(opened).__name__}: of a LangGraph checkpointer, "
            "give its .saver, and wrap what this returns"
        )
    store = opened._store  # noqa: SLF001 - the sides are ours from now on
    if is_deferred(store):
        raise ConfigError(
            f"{name} is itself made of others ({type(opened).__name__}): replicate the savers beneath it, and put the "
            "cache in front of the replicated one"
        )
    if not isinstance(store, ReplicaStore):
        raise ConfigError(f"{name}: the backend of {type(opened).__name__} has no operations for replication")
    if opened._context.threads.owner is not None:  # noqa: SLF001 - see above
        raise ConfigError(f"{name} has the threads of one owner only: give the saver that it is a view of")
    return opened


def _side(name: SideName, saver: Saver) -> Side:
    store = saver._store  # noqa: SLF001 - the sides are ours from now on
    assert isinstance(store, ReplicaStore)  # noqa: S101 - `_saver` has seen to it
    return Side(name, store, saver._driver)  # noqa: SLF001 - see above


def _expect_one_keyring(first: Saver, second: Saver) -> None:
    one, other = first._context.cipher, second._context.cipher  # noqa: SLF001 - the sides are ours from now on
    both = (one, other)
    same = one is other or len({each and (each.digest_key, each.newest, *each.key_ids) for each in both}) == 1
    if not same:
        raise ConfigError(
            "primary and secondary have different keyrings, but both hold the same sealed rows: give the same Keyring "
            "to both savers, or keyring= to replicated()"
        )
