"""Reading a part of a thread's state: one value, a page of a list of messages, or a part of each of several threads."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from threadmark.config import ParsedConfig, as_config, parse_config
from threadmark.errors import ConfigError, CorruptDataError, LocatedError, ThreadmarkError, located, short_repr
from threadmark.model import Config, MessagePage, Problem
from threadmark.names import as_text
from threadmark.program import Operation, Program, read
from threadmark.runtime.logs import log
from threadmark.saver.arguments import MOST
from threadmark.saver.context import SaverContext, refresh_expiry
from threadmark.saver.decoding import decode_items, decode_part
from threadmark.saver.loading import LoadedCheckpoint, load_channel, load_channels
from threadmark.saver.operations.delta import ANCESTORS_ASKED, counted_channels, is_snapshot, may_be_delta
from threadmark.saver.operations.reading import expect_plain_once
from threadmark.saver.paths import Path, parse_path
from threadmark.saver.proving import channel_location, checkpoint_location
from threadmark.serde.parts import DecodedItems, Items
from threadmark.serde.steps import NOTHING, Name


class Parts(NamedTuple):
    """The extracted parts of one thread."""

    extracted: dict[str, Any]
    problems: list[Problem]


def extract(context: SaverContext, thread: Config | str, path: str, default: Any) -> Operation[Any]:
    """Return the part of a thread's state that a path leads to, `default` if there is none."""
    where, parsed = parse_place(thread), parse_path(path)
    loaded = yield from _load(context, where, parsed.channel)
    if loaded is None or (value := loaded.header.values.get(parsed.channel)) is None:
        return default
    part = decode_part(context, loaded.outline, parsed, value, loaded.data)
    return default if part is NOTHING else part


def extract_items(
    context: SaverContext, thread: Config | str, limit: int, before: str | int | None, channel: str
) -> Operation[MessagePage]:
    """Return a page of a channel's messages."""
    where, channel = parse_place(thread), as_text(channel, "channel")
    loaded = yield from _load(context, where, channel)
    if loaded is None or (value := loaded.header.values.get(channel)) is None:
        if isinstance(before, str):
            raise _unknown_message(where, channel, before)
        return MessagePage([], None, 0)
    items = decode_items(context, loaded.outline, channel, value, loaded.data)
    location = channel_location(loaded.outline, channel)
    if items is None:
        raise ConfigError(f"{location} is no list of messages: `extract` reads a part of any value")
    with located(location):
        stop = _place(items, before)
        if stop is None:
            raise _unknown_message(where, channel, before)
        start = max(0, stop - limit)
        return MessagePage(items.between(start, stop), start or None, len(items))


def parts_of(
    context: SaverContext, thread_ids: Sequence[str], paths: Mapping[str, Path]
) -> Operation[dict[str, Parts]]:
    """Return the parts of the newest states of some threads, no two of which are the same.

    That takes three questions for as many of them as there is room for.
    """
    channels = {path.channel for path in paths.values()}
    parts: dict[str, Parts] = {}
    at_once = len(thread_ids)
    while len(parts) < len(thread_ids):
        some = thread_ids[len(parts) : len(parts) + at_once]
        loaded = yield from read(load_channels, context, some, channels)
        parts.update({thread_id: _parts(context, thread_id, one, paths) for thread_id, one in loaded.items()})
        at_once = 2 * len(loaded)
    return parts


def parse_place(thread: object) -> ParsedConfig:
    """The checkpoint that a caller names: by a configuration, or by a thread's id."""
    return parse_config(as_config(thread))


def checked_before(before: object) -> str | int | None:
    """Check the message before which a page ends."""
    if before is None or isinstance(before, str):
        return before
    if isinstance(before, bool) or not isinstance(before, int) or before < 0:
        raise ConfigError(f"before must be the id of a message, or an index from 0 on, not {short_repr(before)}")
    return min(before, MOST)


def _load(context: SaverContext, where: ParsedConfig, channel: str) -> Operation[LoadedCheckpoint | None]:
    loaded = yield from read(load_value, context, where, channel)
    if loaded is None:
        yield from expect_plain_once(context)
    elif context.threads.refresh_on_read:
        yield from refresh_expiry(context, where.thread_id)
    return loaded


def load_value(context: SaverContext, where: ParsedConfig, channel: str) -> Program[LoadedCheckpoint | None]:
    """Load a channel. Raises ConfigError if only the graph can make its value."""
    loaded = yield from load_channel(context, where, channel)
    if loaded is None:
        return None
    _expect_no_delta(context, loaded, channel)
    if channel not in loaded.header.values and channel in loaded.header.versions and may_be_delta(channel):
        # A state that was changed by hand counts nothing in some releases of LangGraph; its ancestors do.
        rows = yield from context.store.chain(where.thread_id, where.ns, loaded.outline.id, ANCESTORS_ASKED)
        if channel in counted_channels(row.outline for row in rows):
            raise _delta_channel(loaded, channel)
    return loaded


def _expect_no_delta(context: SaverContext, loaded: LoadedCheckpoint, channel: str) -> None:
    """Raise ConfigError for a known delta channel, even if it happens to have a snapshot."""
    value = loaded.header.values.get(channel)
    if value is None:
        is_delta = channel in counted_channels([loaded.outline])
    else:
        is_delta = is_snapshot(context.serde, loaded.encoded(value))
    if is_delta:
        raise _delta_channel(loaded, channel)


def _parts(
    context: SaverContext, thread_id: str, loaded: LoadedCheckpoint | LocatedError | None, paths: Mapping[str, Path]
) -> Parts:
    parts = Parts({}, [])
    for name, path in paths.items():
        try:
            parts.extracted[name] = _part(context, loaded, path)
        except (LocatedError, ConfigError) as error:  # any other error concerns all threads
            problem = problem_of(thread_id, error)
            if problem not in parts.problems:
                parts.problems.append(problem)
                log.write(logging.WARNING, "a listing leaves out %r: %s", name, error)
    return parts


def _part(context: SaverContext, loaded: LoadedCheckpoint | LocatedError | None, path: Path) -> Any:
    if isinstance(loaded, LocatedError):
        raise loaded
    if loaded is None:
        return None
    _expect_no_delta(context, loaded, path.channel)
    value = loaded.header.values.get(path.channel)
    part = NOTHING if value is None else decode_part(context, loaded.outline, path, value, loaded.data)
    return None if part is NOTHING else part


def problem_of(thread_id: str, error: ThreadmarkError) -> Problem:
    """Return the problem of a thread in a listing that an error tells of."""
    location, problem = f"thread {thread_id!r}", str(error)
    if isinstance(error, LocatedError):
        location, problem = error.location or location, error.problem
    return Problem("damaged" if isinstance(error, CorruptDataError) else "unreadable", location, problem)


def _place(items: Items | DecodedItems, before: str | int | None) -> int | None:
    """The index of a message; the number of all if none is named, and None if none has the id."""
    if not isinstance(before, str):
        return len(items) if before is None else min(before, len(items))
    for place in reversed(range(len(items))):
        found = items.part(place, (Name("id"),))
        if isinstance(found, str) and found == before:
            return place
    return None


def _unknown_message(where: ParsedConfig, channel: str, before: object) -> ConfigError:
    return ConfigError(
        f"no message of {where}, channel {channel!r} has the id {short_repr(before)}: it may have been removed; "
        "begin again without `before`"
    )


def _delta_channel(loaded: LoadedCheckpoint, channel: str) -> ConfigError:
    return ConfigError(
        f"channel {channel!r} of {checkpoint_location(loaded.outline)} is a delta channel, which is stored as changes: "
        "only the graph can make its value, with `graph.get_state(config).values`"
    )
