"""A walk along the shards of the index, in one order over all of them."""

from threadmark.backends import Program
from threadmark_redis.steps import Command, commands

Entry = tuple[int, bytes]
"""A score and a member. By id all have the score 0."""

_LEAST = 16


class Walk:
    """Reads sorted sets side by side, a few entries at a time, and merges them."""

    def __init__(self, keys: list[bytes], *, by_score: bool, descending: bool) -> None:
        self._keys = keys
        self._by_score = by_score
        self._descending = descending
        self._cursors: list[Entry | None] = [None] * len(keys)
        self._found: list[list[Entry]] = [[] for _ in keys]
        self._is_over = [False] * len(keys)

    def start(self, after: Entry) -> None:
        """Begin after an entry."""
        self._cursors = [after] * len(self._keys)

    def next_batch(self, number: int) -> Program[list[Entry]]:
        """Return the next entries, at least one unless there are none."""
        batch: list[Entry] = []
        while len(batch) < number:
            yield from self._fill(max(_LEAST, number // len(self._keys) + 1))
            fronts = [(found[0], shard) for shard, found in enumerate(self._found) if found]
            if not fronts:
                break
            entry, shard = max(fronts) if self._descending else min(fronts)
            self._found[shard].pop(0)
            batch.append(entry)
        return batch

    def _fill(self, number: int) -> Program[None]:
        """Read more from those shards whose entries are used up."""
        while empty := [shard for shard, found in enumerate(self._found) if not found and not self._is_over[shard]]:
            replies = yield from commands([self._command(shard, number) for shard in empty])
            for shard, reply in zip(empty, replies, strict=True):
                entries = _entries(reply, by_score=self._by_score)
                self._is_over[shard] = len(entries) < number
                self._found[shard] = [each for each in entries if self._is_behind(each, self._cursors[shard])]
                if entries:
                    self._cursors[shard] = entries[-1]
            number *= 2  # many entries may have the score of the cursor, and must be passed

    def _is_behind(self, entry: Entry, cursor: Entry | None) -> bool:
        if cursor is None:
            return True
        return entry < cursor if self._descending else entry > cursor

    def _command(self, shard: int, number: int) -> Command:
        key, cursor = self._keys[shard], self._cursors[shard]
        if self._by_score:
            if self._descending:
                start: bytes | int = b"+inf" if cursor is None else cursor[0]
                return (b"ZREVRANGEBYSCORE", key, start, b"-inf", b"WITHSCORES", b"LIMIT", 0, number)
            start = b"-inf" if cursor is None else cursor[0]
            return (b"ZRANGEBYSCORE", key, start, b"+inf", b"WITHSCORES", b"LIMIT", 0, number)
        if self._descending:
            least = b"+" if cursor is None else b"(" + cursor[1]
            return (b"ZREVRANGEBYLEX", key, least, b"-", b"LIMIT", 0, number)
        least = b"-" if cursor is None else b"(" + cursor[1]
        return (b"ZRANGEBYLEX", key, least, b"+", b"LIMIT", 0, number)


def _entries(reply: list[bytes], *, by_score: bool) -> list[Entry]:
    if not by_score:
        return [(0, member) for member in reply]
    return [(int(float(score)), member) for member, score in zip(reply[::2], reply[1::2], strict=True)]
