"""The operations of a backend: coarse operations on rows, each a program.

A backend knows rows, not meaning: bytes here are opaque, checks are made and compared in `saver`, and each backend
chooses the order of its statements. An operation that writes happens in a transaction whose driver rolls back on any
error, so that no operation has to tidy up.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol

from threadmark.program import Program
from threadmark.store.threads import NO_BEGINNING, Beginning, ThreadStore

TOMBSTONE_MICROSECONDS = 24 * 3600 * 1_000_000
"""How long a deleted thread is remembered: longer than a run that was going on then."""

NO_NUMBER = (1 << 63) - 1
"""The result for a number that is damaged to something else. As a time, it never comes."""


Key = tuple[str, str]
"""(namespace, checkpoint_id)"""


def now() -> int:
    """Return microseconds since 1970, by the clock of this process."""
    return time.time_ns() // 1000


def rank_after(parent_rank: str | None, checkpoint_id: str) -> str:
    """Return the rank of a checkpoint: its id, unless that would sort it before its parent.

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


class Outline(NamedTuple):
    """A checkpoint without its state: enough to list, search and choose."""

    thread_id: str
    ns: str
    id: str
    rank: str
    parent: str | None
    created_at: int
    """Microseconds since 1970, by the clock of the process that stored it."""
    metadata: str
    """JSON text."""

    @property
    def key(self) -> Key:
        """Its key in its thread."""
        return self.ns, self.id

    @property
    def parent_key(self) -> Key | None:
        """The key of the checkpoint that it follows."""
        return (self.ns, self.parent) if self.parent else None

    @property
    def order(self) -> tuple[str, str, str]:
        """The sort key of listings, descending."""
        return self.rank, self.thread_id, self.ns


class CheckpointRow(NamedTuple):
    """A checkpoint as it is stored."""

    outline: Outline
    header: bytes
    """The header in its stored form (`stored.Stored`)."""
    check: bytes
    run_id: str | None
    """The run that made it, for a backend with an index of runs. It may be missing in a row that was read."""


class WriteRow(NamedTuple):
    """A pending write as it is stored, or several in one row (from `PACK` on).

    `idx` numbers the writes of a task, and is negative for the special channels.
    """

    ns: str
    checkpoint_id: str
    task_id: str
    idx: int
    task_path: str
    channel: str
    value: bytes
    """The value in its stored form (`stored.Stored`)."""
    check: bytes


class Found(NamedTuple):
    """A checkpoint, its writes, and those segments that the backend could fetch at the same time."""

    epoch: int
    row: CheckpointRow | None
    """None if the newest was requested, `newest` is recorded, and there is no checkpoint at all."""
    writes: Sequence[WriteRow]
    segments: Mapping[bytes, bytes]
    newest: str | None = None
    """The greatest rank that is recorded for the namespace, or None if a specific checkpoint was asked for."""
    owner: str | None = None
    expires_at: int | None = None


class Head(NamedTuple):
    """The number of checkpoints in a namespace and their greatest rank, as recorded or as counted."""

    thread_id: str
    ns: str
    newest: str
    checkpoints: int


class Scope(NamedTuple):
    """Which checkpoints to list. None leaves a part open.

    `fragments` are texts that the metadata of every wanted checkpoint contains. A backend may leave out rows that
    lack one, or ignore them.
    """

    thread_id: str | None = None
    ns: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    """Only checkpoints with a smaller rank."""
    fragments: Sequence[str] = ()
    run_id: str | None = None
    """The run that made them. A backend may leave out the checkpoints of others, or ignore it."""
    owner: str | None = None
    """The owner of the threads. The checkpoints of other threads are left out."""


Refusal = Literal["owner", "busy", "lost", "conflict", "term", "behind"]
"""Why a change was refused: the thread has another owner, another holder has a lease, the change's lease was lost,
another checkpoint is the newest, the database has a greater term, or the thread lacks data of another database."""


class Follows(NamedTuple):
    """The position of a change from another database after the earlier changes of the thread from there."""

    previous: int
    """The position up to which the thread must have been copied; `NEVER` if it must not have been copied at all."""
    position: int
    """The position up to which it is copied with the change (`replica.Copied`)."""
    epoch: int
    """The thread's epoch there. It must be the epoch with which the thread was copied, or something was removed there
    of which this database does not know."""


NEVER = -1
"""A `Follows.previous` of a thread that never came from the other database."""


class Change(NamedTuple):
    """Rows to add to one thread, all or none."""

    thread_id: str
    epoch: int | None
    """The epoch in which the rows' other segments (those not in `segments`) existed, or None if there are no others."""
    now: int
    segments: Mapping[bytes, bytes]
    checkpoints: Sequence[CheckpointRow]
    writes: Sequence[WriteRow]
    continues: str | None
    """The checkpoint that the rows belong to or follow. If it was deleted with its thread, the rows are refused."""
    needs: Callable[[], Sequence[bytes]] = tuple
    """The segments needed to read the one checkpoint. A backend may record them in order to fetch them all at once."""
    token: int | None = None
    """The token of the lease under which it is made. A token other than the thread's last is refused as "lost", and
    None is refused as "busy" while a lease lives, by the clock of the database."""
    beginning: Beginning = NO_BEGINNING
    only_owner: bool = False
    """Whether it is refused if the thread exists and has another owner than `beginning` says."""
    expects: str | None = None
    """The greatest rank that its checkpoint's namespace must have, "" for none at all; None for any. If the checkpoint
    exists already, this does not matter: it may be a second attempt."""
    sorts_last: bool = False
    """Whether the namespace must have no greater rank than that of its first checkpoint; it is refused as "conflict"
    otherwise, like one that expects another checkpoint."""
    touches: bool = False
    """Whether the thread counts as updated at `now`, unless it was later: its checkpoints belong to another namespace
    than that by which listings know when a thread was updated."""
    term: int | None = None
    """If the database has a greater term, the change is refused as "term", before anything else is checked. None for a
    change of a database that is not replicated, which skips the check."""
    entry: bytes | None = None
    """The entry to record in the outbox, as `record` does, if the change is made."""
    copied: Follows | None = None
    """Set if the change was made in another database, and has no entry. It is refused as "behind" if the thread is not
    copied as far as this says, or has entries in the outbox itself."""

    @property
    def has_place(self) -> bool:
        """Whether it matters which checkpoint is the newest of the namespace."""
        return self.sorts_last or self.expects is not None

    def may_follow(self, newest: str) -> bool:
        """Return whether its first checkpoint may follow the one with this rank, which is "" if there is none."""
        if self.sorts_last and self.checkpoints[0].outline.rank <= newest:
            return False
        return self.expects in (None, newest)


ANYONE = 2**63 - 1
"""A `Change.token` with which a change is accepted despite any lease: the thread's own upkeep has it."""


class Added(NamedTuple):
    """The result of a Change."""

    epoch: int
    """The thread's epoch afterwards. If it is not the epoch that the change relied on, nothing was added."""
    refused: Refusal | None = None
    """Nothing was added."""
    too_late: bool = False
    """The thread was deleted together with the checkpoint that the change continues. Nothing was added."""
    exists: bool = False
    """A checkpoint of the change exists already. Nothing was added; use `replace`."""
    replaced: bool = False
    """A checkpoint replaced one with another header, and the epoch ended: no one may rely on the old one."""
    replaced_writes: Sequence[WriteRow] = ()
    """Writes of the change that replaced others, each with the value of the other one."""
    renewal: int = 0
    """The microseconds for which the change's lease was taken, if less than half of them is left; else 0."""
    expires_at: int | None = None
    """When the thread expires."""
    position: int = 0
    """The position of the entry of a change that was made, 0 if it has none."""
    previous: int = 0
    """The thread's last position before that one, 0 if there was none."""
    pack_left_out: bool = False
    """Whether a row of the change with the idx `PACK` was left out, because its task had one already."""


def was_added(change: Change, added: Added) -> bool:
    """Whether a change was made: it was neither refused, nor too late, nor to be prepared again."""
    refused = added.refused is not None or added.too_late or added.exists
    return not refused and change.epoch in (None, added.epoch)


def nothing_held() -> None:
    """The argument `held` of `Store.find` for a caller that has read nothing yet."""


def all_held() -> None:
    """Another `held` for `Store.find`: the caller asks for each segment that it needs, wherever it is."""


class Store(ThreadStore, Protocol):
    """The operations of a backend."""

    longest_pack: ClassVar[int | None] = None
    """How many bytes of a task's writes share a row, None for any number. A backend has a limit if a long row takes
    more room than several short ones. Every statement of its programs must then be part of one transaction."""

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        """Return the checkpoint with this id, or the newest one, or None if there is none and none is recorded.

        `held` returns the rank of a checkpoint of which the caller has all segments, if there is one: a backend that
        would return them asks, and leaves them out. If `held` is `all_held`, it may leave out any.
        """

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        """Return the stored bytes of these segments. Missing ones are left out."""

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        """Return the result of `find` for the newest checkpoint in each of these threads, without its writes.

        Only the segments of the headers may be included.
        """

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        """Return the result of `segments` for each of these threads."""

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        """Return the next checkpoints of the scope, by descending (rank, thread_id, ns)."""

    def page_of_rows(
        self,
        scope: Scope,  # noqa: ARG002 - of those that answer
        after: Outline | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> Program[list[CheckpointRow] | None]:
        """Return the checkpoints of a page whole, for a caller that reads all of them.

        If this would be no quicker than `rows` after `page`, a backend may leave it as it is. None says so.
        """
        yield from ()
        return None

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        """Return these checkpoints in any order. Missing ones are left out."""

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        """Return the writes of these checkpoints (of the whole thread for None), in any order."""

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        """Return the checkpoint (the newest for None) and then its ancestors, at most `limit` rows."""

    def epoch(self, thread_id: str) -> Program[int | None]:
        """Return the thread's epoch, or None if the thread does not exist."""

    def lock(self, thread_id: str) -> Program[int | None]:
        """Like `epoch`, and no one else adds to the thread or removes from it until the transaction ends.

        Lock two threads in ascending order, or two callers could wait for each other.
        """

    def add(self, change: Change) -> Program[Added]:
        """Add the rows of one change, as `Change` and `Added` describe.

        The refusals come in this order: its term, its position after another database, its epoch, the owner, the lease,
        a deletion, a checkpoint that exists, the checkpoint that it expects.

        A write with a negative `idx` replaces one of the same key, another write leaves the existing one. The heads of
        the namespaces are updated.
        """

    def replace(self, change: Change) -> Program[Added]:
        """Like `add`, but a checkpoint replaces one of the same key. Locks the thread.

        A change that is refused removes nothing.
        """

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        """Write over checkpoints that exist under these ranks, in a thread that is locked.

        Their values are the same as before, so the heads and the epoch stay.
        """

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """Return the heads of a namespace, or of all (None). A namespace without checkpoints has no head."""

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        """Return the same, computed from the checkpoints that exist."""

    def damage(self) -> Program[list[tuple[str, str]]]:
        """Return damage that belongs to no thread, as (location, problem), such as lost rows."""

    def mend(self) -> Program[None]:
        """Rebuild all that can be made from the rows, such as an index that is no part of the transactions.

        A backend that has nothing of the kind leaves this as it is.
        """
        yield from ()

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        """Return the stored size of every segment of the thread."""

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        """Remove checkpoints with their writes, and segments. Returns the new epoch."""

    def forget(
        self,
        thread_id: str,  # noqa: ARG002 - of a pair, which has something to do
        keys: Sequence[Key],  # noqa: ARG002
        *,
        removes: bool,  # noqa: ARG002
    ) -> Program[None]:
        """Keep these checkpoints away until they are put again.

        They are here and are removed next; or `removes` is False, and they were to be removed and are not here. There
        is only something to do if another database may bring them back.
        """
        yield from ()

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        """Remove everything of a thread, and remember for a while up to which checkpoint it was deleted.

        Its owner, title, metadata and expiry are removed, too. Its lease ends, with the next token. Returns the epoch
        that the live thread had, or None if there was none.

        If your program has further steps after this one, lock the thread first: a backend may commit at once if the
        drop is the first step. Such a backend also returns an epoch if the thread was dropped with the same `now`
        before: that was an earlier attempt, whose reply was lost.
        """

    def copy_segments(self, source: str, target: str) -> Program[None]:
        """Copy all segments of the source thread to the target thread, which exists."""

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        """Return the next thread ids greater than `after`, in ascending order: live threads, and those with heads."""

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        """Return the check and the header of some checkpoint, or None if there is none.

        A backend whose rows no other process finds may leave this as it is.
        """
        yield from ()
        return None

    def has_only_langgraph_data(self) -> Program[bool]:
        """Return whether LangGraph's own saver has checkpoints in this database, and this store has none.

        A backend that LangGraph has no saver for leaves this as it is.
        """
        yield from ()
        return False
