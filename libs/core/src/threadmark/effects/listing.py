"""The effects of threads, for operators: listing them, settling them, and finding those that a step back would undo."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from threadmark.config import ParsedConfig, named_thread, parse_config
from threadmark.effects.calls import settle as settle_claim
from threadmark.effects.holder import this_process
from threadmark.effects.table import (
    PREFIX,
    SOURCE,
    EffectInfo,
    EffectState,
    Site,
    claims_of,
    info_of,
    read_table,
    value_in,
    version_of,
)
from threadmark.errors import CheckpointNotFoundError, ConfigError, ConflictError, EffectFailedError, short_repr
from threadmark.metadata import certain_fragments
from threadmark.model import Config
from threadmark.program import Operation, Program, read
from threadmark.saver.kit import Pages, SaverContext, decode_metadata
from threadmark.store.contract import Outline, Scope

_PAGE = 512


class Undo(NamedTuple):
    """An effect that would have to be taken back."""

    effect: EffectInfo
    function: str | None
    """The name of the function that `undo_with` named, or its words."""
    args: Sequence[Any]
    """The arguments of the call, if `undo_with` was given."""
    kwargs: Mapping[str, Any]


class Restored(NamedTuple):
    """A checkpoint that is the newest again."""

    config: dict[str, Any]
    to_undo: list[Undo]
    """The effects of the steps that were left, newest first. None has been undone."""


def list_effects(
    context: SaverContext, thread: Config | str | None, state: EffectState | None
) -> Operation[list[EffectInfo]]:
    """Return the effects of a thread or of all, newest first."""
    thread_id = None if thread is None else named_thread(thread)
    found: list[EffectInfo] = []
    seen: set[tuple[str, str]] = set()
    pages = Pages(Scope(thread_id, fragments=certain_fragments({"source": SOURCE})), _PAGE)
    while pages.more:
        for outline in pages.read((yield from read(context.store.page, *pages.request))):
            place = outline.thread_id, outline.ns
            if outline.ns.startswith(PREFIX) and place not in seen:
                seen.add(place)
                found += _infos(outline)
    found.sort(key=lambda effect: effect.claimed_at, reverse=True)
    return [effect for effect in found if state in (None, effect.state)]


def _infos(outline: Outline) -> list[EffectInfo]:
    claims = claims_of(outline)  # which names the damage, if there is any
    name = decode_metadata(outline)["effect"]["name"]
    return [info_of(outline.thread_id, outline.ns, name, claim) for claim in claims]


def settle(
    context: SaverContext, effect: EffectInfo, state: EffectState, value: Any, token: int | None
) -> Operation[EffectInfo]:
    """Say what became of an effect. A call that still runs is refused its result. Returns the effect as it is now."""
    if not isinstance(effect, EffectInfo):
        raise ConfigError(f"settle takes an effect that effects.list() returned, not {short_repr(effect)}")
    ns, _, number = effect.id.rpartition("/")
    site = Site(effect.thread_id, PREFIX + ns, effect.name, token)
    table = yield from read_table(context, site)
    claim = next((each for each in table.claims if str(each.number) == number), None)
    if claim is None or version_of(claim) != effect.version:
        raise _changed(effect)
    taken = claim._replace(claim=uuid4().hex, holder=[*this_process()], error=None)
    outcome = value
    if state == "failed":
        outcome = EffectFailedError(f"effect {effect.name!r} was settled as failed: {value}")
    # The id of the claim changes in the same put, so a call that still has the old one is refused.
    try:
        yield from settle_claim(context, site, table, claim, state, outcome, taken)
    except ConflictError:
        raise _changed(effect) from None
    table = yield from read_table(context, site)
    settled = next(each for each in table.claims if str(each.number) == number)
    return info_of(effect.thread_id, site.ns, effect.name, settled)


def _changed(effect: EffectInfo) -> ConflictError:
    return ConflictError(
        f"effect {effect.id} of thread {effect.thread_id!r} has changed since it was listed: list it again"
    )


def to_undo(context: SaverContext, config: Config | str) -> Operation[list[Undo]]:
    """Return the effects of the steps after a checkpoint, newest first."""
    where = parse_config(config)
    if where.ns or where.checkpoint_id is None:
        raise ConfigError("name the checkpoint to go back to: a checkpoint_id in the graph's own namespace")
    left, kept = yield from read(_left, context, where)
    found = yield from list_effects(context, where.thread_id, None)
    result: list[Undo] = []
    for effect in found:
        used = set(effect.checkpoint_ids)
        if effect.state not in ("failed", "not done") and used & left and not used & kept:
            result.append((yield from _undo(context, effect)))
    return result


def _undo(context: SaverContext, effect: EffectInfo) -> Operation[Undo]:
    if effect.undo is None:
        return Undo(effect, None, (), {})
    ns, _, number = effect.id.rpartition("/")
    table = yield from read_table(context, Site(effect.thread_id, PREFIX + ns, effect.name))
    args, kwargs = value_in(context, table, f"undo:{number}") or ((), {})
    return Undo(effect, effect.undo, args, kwargs)


def _left(context: SaverContext, where: ParsedConfig) -> Program[tuple[set[str], set[str]]]:
    """The checkpoints whose steps a return to this one leaves, and those whose steps it keeps."""
    parents: dict[str, str | None] = {}
    pages = Pages(Scope(where.thread_id, ""), _PAGE)
    while pages.more:
        page = pages.read((yield from context.store.page(*pages.request)))
        parents.update((outline.id, outline.parent) for outline in page)
    if where.checkpoint_id not in parents:
        raise CheckpointNotFoundError(f"{where} does not exist: history() lists the checkpoints of the thread")
    own = _line(parents, where.checkpoint_id)
    newest = _line(parents, next(iter(parents)))
    left: set[str] = set()
    for each in newest:
        left.add(each)
        if each in own:
            break
    return left, set(own) - left


def _line(parents: Mapping[str, str | None], start: str | None) -> dict[str, None]:
    """A checkpoint and its ancestors, in order."""
    line: dict[str, None] = {}
    while start in parents and start is not None:
        line[start] = None
        start = parents[start]
    return line
