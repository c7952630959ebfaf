"""Whether checkpoints are missing: what is found is compared with what is recorded beside the rows.

A checkpoint is found by its key, so damage to its key hides it, and an older one would pass for the newest. Each
namespace therefore has a head, which a put brings up to date: the greatest rank, and the number of checkpoints. A get
of the newest is given the rank with it. Where a checkpoint is not found, or everything has been listed, the
checkpoints are counted.
"""

from collections.abc import Iterable, Iterator

from threadmark.errors import CorruptDataError
from threadmark.program import Program
from threadmark.saver.checks import namespace_place
from threadmark.saver.kit import Kit
from threadmark.store import CheckpointRow, Found, Head

_ADVICE = "`verify` names what is damaged"


def proven_newest(thread_id: str, ns: str, found: Found) -> CheckpointRow:
    """The newest checkpoint of a namespace; CorruptDataError where another one is recorded as the newest."""
    row = found.row
    if row is None or row.outline.rank != found.newest:
        raise CorruptDataError(f"its newest checkpoint is missing: {_ADVICE}", namespace_place(thread_id, ns))
    return row


def prove_complete(kit: Kit, thread_id: str, ns: str | None) -> Program[None]:
    """Raise CorruptDataError where checkpoints of the namespace (of the thread for None) are missing."""
    problems = yield from missing(kit, thread_id, ns)
    for place, problem in problems:
        raise CorruptDataError(f"{problem}: {_ADVICE}", place)


def missing(kit: Kit, thread_id: str, ns: str | None) -> Program[list[tuple[str, str]]]:
    """The namespaces that lack checkpoints, as (place, problem)."""
    recorded = yield from kit.store.heads(thread_id, ns)
    counted = yield from kit.store.counted_heads(thread_id, ns)
    return list(_differences(thread_id, recorded, counted))


def _differences(thread_id: str, recorded: Iterable[Head], counted: Iterable[Head]) -> Iterator[tuple[str, str]]:
    should = {head.ns: head for head in recorded}
    there = {head.ns: head for head in counted}
    for ns in sorted(should.keys() | there.keys()):
        place = namespace_place(thread_id, ns)
        if ns not in should:
            yield place, f"{there[ns].checkpoints} checkpoints are there, and none is recorded"
        elif ns not in there:
            yield place, f"none of its {should[ns].checkpoints} checkpoints is there"
        elif should[ns].checkpoints != there[ns].checkpoints:
            yield place, f"of its {should[ns].checkpoints} checkpoints {there[ns].checkpoints} are there"
        elif should[ns].newest != there[ns].newest:
            yield place, "another checkpoint is recorded as its newest"
