"""Threads that went on, or started again, on both sides: moving them could change which checkpoint is the newest.

The newest checkpoint of the target must stay the newest. So the rest of a thread is moved only if it is older than
everything that the target added: the history of a thread that was started again is put before it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from threadmark.store.contract import rank_after
from threadmark.types import CheckpointRef

_Key = tuple[str, str, str]
"""Thread, namespace, checkpoint."""

Ranks = Mapping[_Key, str]
"""The sort keys of the checkpoints that do not simply sort after their parents."""

RESTARTED = (
    "the source has history, the target started the thread again, and what the source has is not older: to keep the "
    "target's, leave it as it is; to take the source's, delete the thread in the target and move again"
)
WENT_ON = (
    "the thread went on in the source and in the target since it was moved: to keep the target's, leave it as it is; "
    "to take the source's, delete the thread in the target and move again"
)


def conflicts(
    source: Iterable[CheckpointRef], target: Iterable[CheckpointRef], ranks: Ranks, ranks_there: Ranks
) -> dict[str, str]:
    """Return the threads of which nothing more can be moved, with the reasons."""
    theirs, ours = _ranks(source, ranks), _ranks(target, ranks_there)
    own, missing = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    oldest = _by_namespace(own, ours, min)
    newest = _by_namespace(missing, theirs, max)
    refused = {
        thread_id for thread_id, ns in oldest.keys() & newest.keys() if newest[thread_id, ns] > oldest[thread_id, ns]
    }
    moved_before = {thread_id for thread_id, _, _ in theirs.keys() & ours.keys()}
    return {thread_id: WENT_ON if thread_id in moved_before else RESTARTED for thread_id in refused}


def parents_first(refs: Iterable[CheckpointRef]) -> Iterator[CheckpointRef]:
    """Yield checkpoints by thread and ascending id, but never before their parents, whatever the clocks said."""
    waiting = {ref[:3]: ref for ref in sorted(refs, key=lambda ref: ref[:3])}
    for ref in list(waiting.values()):
        line: list[CheckpointRef] = []
        ancestor: CheckpointRef | None = ref
        while ancestor is not None and ancestor[:3] in waiting:
            line.append(waiting.pop(ancestor[:3]))
            ancestor = waiting.get((ancestor.thread_id, ancestor.ns, ancestor.parent or ""))
        yield from reversed(line)


def _ranks(refs: Iterable[CheckpointRef], known: Ranks) -> dict[_Key, str]:
    """Return the sort key that each checkpoint has in a Threadmark saver."""
    ranks: dict[_Key, str] = {}
    for ref in parents_first(refs):
        parent = ranks.get((ref.thread_id, ref.ns, ref.parent)) if ref.parent else None
        ranks[ref[:3]] = known.get(ref[:3]) or rank_after(parent, ref.id)
    return ranks


def _by_namespace(
    keys: Iterable[_Key], ranks: Mapping[_Key, str], choose: Callable[[list[str]], str]
) -> dict[tuple[str, str], str]:
    """Return the smallest or greatest rank of each namespace."""
    grouped: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        grouped[key[:2]].append(ranks[key])
    return {namespace: choose(found) for namespace, found in grouped.items()}
