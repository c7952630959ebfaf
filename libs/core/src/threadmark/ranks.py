"""What checkpoints sort by, so that none is older than its ancestors, even where a clock was set back."""

import re


def rank_after(parent_rank: str | None, checkpoint_id: str) -> str:
    """Return what a checkpoint sorts by: its id, unless that would sort it before its parent.

    Ids come from clocks, and clocks are set back. A checkpoint whose id is not greater than its parent's rank gets the
    parent's rank, followed by a counter and its own id, which sorts after the parent and before anything newer.
    """
    if parent_rank is None or checkpoint_id > parent_rank:
        return checkpoint_id
    stepped_back = _STEPPED_BACK.search(parent_rank)
    if stepped_back is None:
        return f"{parent_rank}\x0200000001.{checkpoint_id}"
    count = int(stepped_back[1], 16) + 1
    return f"{parent_rank[: stepped_back.start()]}\x02{count:08x}.{checkpoint_id}"


# An id may look like such a rank, by chance or by malice. The last count must not overflow: it is skipped, so that the
# count before it grows instead.
_STEPPED_BACK = re.compile("\x02(?!ffffffff)([0-9a-f]{8})[.]")
