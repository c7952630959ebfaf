"""Detection of missing checkpoints: the rows that were found are compared with the recorded numbers.

A checkpoint is found by its key, so damage to its key hides it, and an older one would pass for the newest. Each
namespace therefore has a head with the greatest rank and the number of checkpoints, which every put updates. A get of
the newest reads the rank with it. The checkpoints are counted if one is not found, and when all have been listed.
"""

from collections.abc import Iterable, Iterator

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError
from threadmark.model import Problem
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.context import SaverContext
from threadmark.saver.paging import Pages
from threadmark.saver.proving import checkpoint_location, is_sound, namespace_location
from threadmark.store.contract import CheckpointRow, Found, Head, Scope

_ADVICE = "`verify` names the damaged rows"


_PAGE = 512


def proven_row(where: ParsedConfig, found: Found) -> CheckpointRow:
    """Return the row that was asked for. Raises CorruptDataError if it is missing or another one was found instead."""
    row = found.row
    if row is None or (where.checkpoint_id is None and row.outline.rank != found.newest):
        location = namespace_location(where.thread_id, where.ns)
        raise CorruptDataError(f"its newest checkpoint is missing: {_ADVICE}", location)
    if row.outline.ns != where.ns or where.checkpoint_id not in (None, row.outline.id):
        raise CorruptDataError(f"{checkpoint_location(row.outline)} is found in its place: {_ADVICE}", str(where))
    return row


def prove_complete(context: SaverContext, thread_id: str, ns: str | None) -> Program[None]:
    """Raise CorruptDataError if checkpoints of the namespace (of the thread for None) are missing."""
    problems = yield from missing(context, thread_id, ns)
    for location, problem in problems:
        raise CorruptDataError(f"{problem}: {_ADVICE}", location)


def prove_absent(context: SaverContext, where: ParsedConfig) -> Program[None]:
    """Raise CorruptDataError if the checkpoint that was not found may be one whose key is damaged.

    This reads every checkpoint of the namespace: one whose key has changed there is still counted.
    """
    problems = yield from missing(context, where.thread_id, where.ns)
    pages = Pages(Scope(where.thread_id, where.ns), _PAGE)
    while pages.more and not problems:
        page = pages.read((yield from context.store.page(*pages.request)))
        rows = yield from context.store.rows(where.thread_id, [outline.key for outline in page])
        is_listed = any(outline.id == where.checkpoint_id for outline in page)
        if is_listed or {row.outline for row in rows} != set(page) or not all(map(is_sound, rows)):
            problems.append((str(where), "a checkpoint is damaged"))
    for _, problem in problems:
        raise CorruptDataError(f"it is not found, and in its namespace {problem}: {_ADVICE}", str(where))


def lacking(context: SaverContext, thread_id: str, ns: str | None) -> Program[list[Problem]]:
    """The gaps of a history: the namespaces that lack checkpoints. Messages are none of these."""
    counted = yield from context.store.counted_heads(thread_id, ns)
    recorded = yield from context.store.heads(thread_id, ns)
    steps = [[head for head in heads if head.ns != MESSAGES_NS] for heads in (recorded, counted)]
    return [Problem("damaged", location, f"{problem}: {_ADVICE}") for location, problem in _differences(*steps)]


def missing(context: SaverContext, thread_id: str | None, ns: str | None) -> Program[list[tuple[str, str]]]:
    """The namespaces (None: of all) that lack checkpoints, as (location, problem)."""
    counted = yield from context.store.counted_heads(thread_id, ns)
    recorded = yield from context.store.heads(thread_id, ns)
    return list(_differences(recorded, counted))


def _differences(recorded: Iterable[Head], counted: Iterable[Head]) -> Iterator[tuple[str, str]]:
    should = {head[:2]: head for head in recorded}
    there = {head[:2]: head for head in counted}
    for key in sorted(should.keys() | there.keys()):
        location = namespace_location(*key)
        if key not in should:
            yield location, f"{there[key].checkpoints} checkpoints are there, and none is recorded"
        elif key not in there:
            yield location, f"none of {should[key].checkpoints} checkpoints is there"
        elif should[key].checkpoints != there[key].checkpoints:
            yield location, f"{there[key].checkpoints} of {should[key].checkpoints} checkpoints are there"
        elif should[key].newest != there[key].newest:
            yield location, "another checkpoint is recorded as the newest"
