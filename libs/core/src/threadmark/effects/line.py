"""The line of history that leads to a checkpoint, by the ids of parents, as far back as a question needs it.

A call that an ancestor's task has made is an earlier call of the line if the line went on from the result of that task.
A replay of the past and an update by hand are children that did not: they stand in the ancestor's place, and its tasks
run again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from threadmark.effects.table import Claim, Levels
from threadmark.errors import ConfigError
from threadmark.program import Flow, Pause, Program, Transaction, read_itself
from threadmark.saver.kit import Pages, SaverContext, decode_metadata
from threadmark.store.contract import Outline, Scope

_IN_PLACE = ("fork", "update")
"""The sources of checkpoints that stand in the place of their parent."""

_FIRST_STEP = -1
"""That of the input with which a thread begins."""

_FIRST_PAGE, _PAGE = 32, 512
_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1) + 98 * (0.1,)
"""Seconds between looks for a checkpoint that the engine stores in the background, ten in all."""


class Line(NamedTuple):
    """The ancestors of a checkpoint."""

    earlier: frozenset[str]
    """Those whose tasks' results the line went on from."""
    gap: str | None
    """The nearest ancestor that is gone, with all before it."""
    begun_at: str | None
    """The checkpoint with the input that the run began with, if it was looked for."""
    present: frozenset[str] = frozenset()
    """If there is a gap or a root: all checkpoints that are there."""
    root: str | None = None
    """The oldest ancestor, if all before it have been pruned."""

    def leads_from(self, other: str) -> bool:
        """Whether another checkpoint is there, and the line went on from the results of its tasks."""
        return other in self.earlier

    def has(self, other: str) -> bool:
        """Whether the tasks of another checkpoint have run earlier on this line.

        What has been pruned can lead nowhere else any more, so all before the gap or the root counts as earlier.
        """
        if self.root is not None and other < self.root and other not in self.present:
            return True
        return other in self.earlier or (self.gap is not None and other < self.gap)

    def has_pruned(self, other: str) -> bool:
        """Whether another checkpoint is gone, and older than all that leads here."""
        return self.gap is not None and other < self.gap and other not in self.present


class _Asked(NamedTuple):
    thread_id: str
    ns: str
    id: str
    others: Sequence[str]
    """The ids that the question is about."""
    finds_input: bool
    whole: bool
    """Whether all of them matter, and not the nearest alone."""


def line_of(
    context: SaverContext,
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    others: Sequence[str],
    *,
    finds_input: bool,
    whole: bool,
) -> Flow[Transaction[Line | None] | Pause, Line]:
    """Return the line that leads to a checkpoint. Waits until it is stored."""
    asked = _Asked(thread_id, ns, checkpoint_id, others, finds_input, whole)
    for pause in (*_PAUSES, None):
        line = yield from read_itself(_line, context, asked)
        if line is not None:
            return line
        if pause is not None:
            yield Pause(pause)
    raise ConfigError(
        f"checkpoint {checkpoint_id!r} of thread {thread_id!r} has not been stored within ten seconds, so it cannot be "
        "known which earlier calls it follows: give the graph the saver that Effects has as its checkpointer, or give "
        "each effect a key="
    )


def _line(context: SaverContext, asked: _Asked) -> Program[Line | None]:
    """The line, or None if the checkpoint is not stored yet.

    Without `whole`, it reads no further page once it has come to one of the others: along a line, claims have rising
    ordinals, so the nearest answers for the ones before it. So a call reads as much of a long history as of a short
    one.
    """
    earlier: set[str] = set()
    others, oldest, is_near = frozenset(asked.others), "", False
    found: dict[str, Outline] = {}
    pages = Pages(Scope(asked.thread_id, asked.ns), _FIRST_PAGE)
    wanted, begun_at = asked.id, None
    while True:
        while wanted not in found:
            if is_near and pages.more and (begun_at or not asked.finds_input):
                return Line(frozenset(earlier), None, begun_at)
            if not pages.more:
                return Line(frozenset(earlier), wanted, begun_at, frozenset(found)) if asked.id in found else None
            page = pages.read((yield from context.store.page(*pages.request)))
            found.update((outline.id, outline) for outline in page)
            # Not by id: that of a process whose clock is ahead is greater than those of its descendants.
            oldest = min((found[other].rank if other in found else other for other in others), default="")
            if asked.id not in found and all(outline.rank < asked.id for outline in page):
                return None
            pages.request = pages.request._replace(limit=_PAGE)
        outline = found[wanted]
        metadata = decode_metadata(outline)
        if begun_at is None and metadata.get("source") == "input":
            begun_at = wanted
        parent = outline.parent
        if parent is None:
            root = yield from _root(context, outline, others, pages, found)
            return Line(frozenset(earlier), None, begun_at, frozenset(found), root)
        above = found.get(parent)
        is_past = outline.rank <= oldest or (others <= found.keys() if above is None else above.rank < oldest)
        if (is_past or not others) and (begun_at or not asked.finds_input):
            return Line(frozenset(earlier), None, begun_at)
        if metadata.get("source") not in _IN_PLACE:
            earlier.add(parent)
            is_near = is_near or (parent in others and not asked.whole)
        wanted = parent


def _root(
    context: SaverContext, oldest: Outline, others: Iterable[str], pages: Pages, found: dict[str, Outline]
) -> Program[str | None]:
    """Return the id of a checkpoint without a parent if those before it have been pruned, None if it is the first."""
    gone = [other for other in others if other < oldest.id and other not in found]
    if not gone or decode_metadata(oldest).get("step") == _FIRST_STEP:
        return None
    while pages.more:  # so that it is known which of them are there
        page = pages.read((yield from context.store.page(*pages.request)))
        found.update((outline.id, outline) for outline in page)
    return oldest.id


class Position(NamedTuple):
    """The place of a call among the claims of its site."""

    ordinal: int
    earlier: Sequence[Claim] = ()
    """The claims of earlier calls on its line."""
    run: str | None = None
    pruned: Sequence[int] = ()
    """The numbers of claims that no checkpoint is left to ask for."""


def position_of(
    context: SaverContext,
    thread_id: str,
    levels: Levels,
    count: int,
    claims: Iterable[Claim],
    *,
    finds_run: bool,
    only_own: bool,
    whole: bool,
) -> Flow[Transaction[Line | None] | Pause, Position]:
    """Return the place of a call. Reads the history only if other checkpoints have claims, or for the run.

    With `only_own` the claims of other checkpoints do not matter, but the call's own checkpoint must be stored. With
    `whole`, claims that no checkpoint is left to ask for are found in a long history, too.
    """
    claims = [] if only_own else list(claims)
    asked: dict[tuple[str, str], list[str]] = {}
    for ns, checkpoint_id in levels if only_own else levels[:finds_run]:
        asked[ns, checkpoint_id] = []
    for claim in claims:
        for other in claim.used_at:
            if (differs := _first_difference(levels, other)) is not None:
                asked.setdefault(differs[:2], []).append(differs[2])
    lines: dict[tuple[str, str], Line] = {}
    for (ns, own), others in asked.items():
        finds_input = finds_run and ns == levels[0][0]
        lines[ns, own] = yield from line_of(context, thread_id, ns, own, others, finds_input=finds_input, whole=whole)
    earlier = [claim for claim in claims if any(_is_earlier(levels, other, lines) for other in claim.used_at)]
    nearest = max(earlier, key=lambda claim: claim.ordinal, default=None)
    run = lines[levels[0][0], levels[0][1]].begun_at if finds_run else None
    if finds_run and run is None:
        same = [
            claim
            for claim in earlier
            if any(_is_earlier(levels, other, lines, Line.leads_from) for other in claim.used_at)
        ]
        run = max(same, key=lambda claim: claim.ordinal).run if same else None
        if run is None:
            raise ConfigError(
                f"the checkpoint with which this run of thread {thread_id!r} began has been pruned, so per='run' does "
                "not know the run: keep more checkpoints, or choose per='thread'"
            )
    pruned = [claim.number for claim in claims if claim.is_settled and _is_pruned(levels, claim, lines)]
    return Position((nearest.ordinal if nearest else 0) + count, earlier, run, pruned)


def _first_difference(own: Levels, other: Levels) -> tuple[str, str, str] | None:
    """Where the checkpoints of two calls differ first: the namespace, and both ids."""
    ids = {level[0]: level[1] for level in other}
    for ns, checkpoint_id in own:
        if ns in ids and ids[ns] != checkpoint_id:
            return ns, checkpoint_id, ids[ns]
    return None


def _is_earlier(
    own: Levels, other: Levels, lines: dict[tuple[str, str], Line], has: Callable[[Line, str], bool] = Line.has
) -> bool:
    differs = _first_difference(own, other)
    return differs is not None and has(lines[differs[0], differs[1]], differs[2])


def _is_pruned(own: Levels, claim: Claim, lines: dict[tuple[str, str], Line]) -> bool:
    line = lines.get((own[0][0], own[0][1]))
    return line is not None and all(line.has_pruned(levels[0][1]) for levels in claim.used_at)
