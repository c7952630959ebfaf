"""Searching for a text in a thread.

The search goes from the newest checkpoint to the oldest, and reports each place once, with the checkpoint that first
had the text there. So only the data that a checkpoint's parent does not have is searched. Manifests identify it: new
pieces of segments are read, and those that follow them, which may have another meaning now. If the text may be in them,
both values are compared.
"""

from collections.abc import Iterator
from typing import Any

from threadmark.errors import ConfigError, CorruptDataError, LocatedError, short_repr
from threadmark.model import Config, Problem, ProblemKind
from threadmark.names import as_text
from threadmark.program import Operation, read
from threadmark.saver.kit import (
    LoadedCheckpoint,
    SaverContext,
    channel_text,
    checkpoint_location,
    decode_channel,
    decode_metadata,
    decode_write,
    expect_plain_once,
    lacking,
    new_cursor,
    parse_place,
    parts_of_cursor,
)
from threadmark.serde.steps import NOTHING
from threadmark.store.contract import Key, Outline, Scope
from threadmark.travel.candidates import Candidate, Hit, Pattern, batch_of
from threadmark.travel.diffing import Changes, Place
from threadmark.travel.model import Match, MatchPlace, SearchPage

_MOST_WORK = 128 * 1024 * 1024
"""After so many bytes a page ends, though it may have fewer matches than there is room for, or none."""

_UNLIMITED = 1 << 62


def search(
    context: SaverContext, thread: Config | str, text: str, ns: str | None, limit: int, cursor: str | None
) -> Operation[SearchPage]:
    """Return the places of a text in a thread's values, pending writes and metadata."""
    context, thread_id = context.without_classes(), parse_place(thread).thread_id
    pattern = Pattern(_checked_text(text))
    scope = Scope(thread_id, None if ns is None else as_text(ns, "ns"))
    after, resumed, returned = _place(thread_id, cursor)
    matches: list[Match] = []
    problems: list[Problem] = []
    work, more = 0, limit > 0
    if not more:
        return SearchPage([], cursor)
    while more and work < _MOST_WORK:
        batch = yield from read(batch_of, context, pattern, scope, after)
        if after is None and not batch.candidates and not batch.more and batch.after is None:
            yield from expect_plain_once(context)
        for candidate in batch.candidates:
            outline = candidate.outline
            skipped = returned if outline.key == resumed else 0
            found, failed = _matches(context, pattern, candidate)
            for number, match in enumerate(found[skipped:], skipped):
                if len(matches) == limit:
                    return SearchPage(matches, _cursor(after, outline.key, number), problems)
                matches.append(match)
            problems += failed
            after = outline
        after, more, work = batch.after, batch.more, work + batch.work
    if not more:
        problems += yield from read(lacking, context, thread_id, scope.ns)
    return SearchPage(matches, _cursor(after, ("", ""), 0) if more else None, problems)


def _checked_text(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise ConfigError(f"search looks for a text that is not empty, not for {short_repr(text)}")
    return str(text)


def _cursor(after: Outline | None, key: Key, returned: int) -> str:
    return new_cursor(after.rank if after else "", after.ns if after else "", *key, returned)


def _place(thread_id: str, cursor: str | None) -> tuple[Outline | None, Key, int]:
    """The beginning of a page: the checkpoint before it, and the number of the next one's matches already returned."""
    if cursor is None:
        return None, ("", ""), 0
    rank, ns, next_ns, next_id, returned = parts_of_cursor(cursor, (str, str, str, str, int))
    after = Outline(thread_id, ns, "", rank, None, 0, "") if rank else None
    return after, (next_ns, next_id), max(0, returned)


def _matches(context: SaverContext, pattern: Pattern, candidate: Candidate) -> tuple[list[Match], list[Problem]]:
    """Return the matches in a checkpoint, and its parts that could not be searched."""
    outline, found = candidate.outline, list[Match]()
    problems: list[Problem] = []
    if candidate.error is not None:
        return [], [_problem(candidate.error, outline)]
    searched: tuple[tuple[MatchPlace, Iterator[Hit]], ...] = (
        ("values", _in_values(context, pattern, candidate)),
        ("writes", _in_writes(context, pattern, candidate)),
        ("metadata", _in_metadata(pattern, candidate)),
    )
    for place, hits in searched:
        try:
            found += [Match(outline.ns, outline.id, place, *hit) for hit in hits]
        except LocatedError as error:
            problems.append(_problem(error, outline))
    return found, problems


def _problem(error: LocatedError, outline: Outline) -> Problem:
    kind: ProblemKind = "damaged" if isinstance(error, CorruptDataError) else "unreadable"
    return Problem(kind, error.location or checkpoint_location(outline), error.problem)


def _in_values(context: SaverContext, pattern: Pattern, candidate: Candidate) -> Iterator[Hit]:
    for channel in candidate.channels:
        before, after = (_value(context, each, channel) for each in (candidate.parent, candidate.loaded))
        yield from _new_hits(pattern, channel_text(channel), before, after)


def _value(context: SaverContext, loaded: LoadedCheckpoint | None, channel: str) -> Any:
    value = loaded.header.values.get(channel) if loaded else None
    return (
        NOTHING
        if loaded is None or value is None
        else decode_channel(context, loaded.outline, channel, value, loaded.data)
    )


def _in_writes(context: SaverContext, pattern: Pattern, candidate: Candidate) -> Iterator[Hit]:
    for write in candidate.writes:
        _, channel, value = decode_write(context, candidate.outline.thread_id, write, candidate.data)
        yield from pattern.hits(channel_text(channel), value)


def _in_metadata(pattern: Pattern, candidate: Candidate) -> Iterator[Hit]:
    before = decode_metadata(candidate.parent.outline) if candidate.parent else {}
    for key, value in decode_metadata(candidate.outline).items():
        yield from _new_hits(pattern, channel_text(key), before.get(key, NOTHING), value)


def _new_hits(pattern: Pattern, path: str, before: Any, after: Any) -> Iterator[Hit]:
    """Yield the places in which a value has the text and the one before has not."""
    changes = Changes(_UNLIMITED, with_edits=False)
    changes.compare(Place(path, path), before, after)
    for change in changes.found:
        if change.kind == "added":
            yield from pattern.key_hits(change.path)
            yield from pattern.hits(change.path, change.after)
        elif change.kind == "changed":
            there = {hit.path for hit in pattern.hits(change.path, change.before)}
            yield from (hit for hit in pattern.hits(change.path, change.after) if hit.path not in there)
