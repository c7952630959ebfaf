"""The threads of a backend: their rows, their listing and their leases.

A thread's row holds the fields that are rarely set. Fields that change with every step (time of update, status, size)
are computed on request, so that a put writes no row that others wait for. The one row that every put updates is the
head of its namespace. A thread has a head for the namespace "" from its beginning to its end, and listings go along an
index of those.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from threadmark.errors import CorruptDataError
from threadmark.format.digests import CHECK_SIZE, HOW_TO_OPEN, HOW_TO_SEAL, NOT_OPENED, NOT_SEALED, row_check
from threadmark.format.header import UNFINISHED_TAG
from threadmark.format.stored import after_digest, before_literal
from threadmark.model import ThreadStatus
from threadmark.program import Program
from threadmark.sealing import MARK
from threadmark.store.formats import FormatStore

SortKey = Literal["updated", "created", "id"]

_HOW_TO_WRITE = "`update_thread` with all four of them, on a saver that is no view of an owner, writes them again"


class ThreadRow(NamedTuple):
    """The fields of a live thread that callers set. Times are microseconds since 1970."""

    thread_id: str
    created_at: int
    owner: str | None = None
    title: str | None = None
    metadata: str | None = None
    """JSON text, or None if none was ever set."""
    expires_at: int | None = None
    check: bytes = b""
    """Binds everything except `created_at` to the thread; empty if nothing was set."""


def thread_row(row: ThreadRow) -> ThreadRow:
    """Return the row with its check."""
    return row._replace(check=_check(row))


def is_sound_thread(row: ThreadRow) -> bool:
    """Return whether a thread's row is as it was written."""
    return row.check == _check(row)


def expect_sound_thread(row: ThreadRow) -> None:
    """Raise CorruptDataError if a thread's row is not as it was written."""
    if row.check == NOT_SEALED:
        raise CorruptDataError(f"its own row is not sealed: {HOW_TO_SEAL}", f"thread {row.thread_id!r}")
    if len(row.check) > CHECK_SIZE:
        raise CorruptDataError(f"its own row is sealed: {HOW_TO_OPEN}", f"thread {row.thread_id!r}")
    if row.check == NOT_OPENED:
        raise CorruptDataError(
            "its own row, with owner, title, metadata and expiry, is damaged, or sealed with a key that is not on the "
            f"keyring: if it is damaged, {_HOW_TO_WRITE}",
            f"thread {row.thread_id!r}",
        )
    if not is_sound_thread(row):
        raise CorruptDataError(
            f"its owner, title, metadata or expiry is not as it was written: {_HOW_TO_WRITE}",
            f"thread {row.thread_id!r}",
        )


def _check(row: ThreadRow) -> bytes:
    thread_id, _, *values, _ = row
    return row_check("thread", thread_id, *values) if any(value is not None for value in values) else b""


class Beginning(NamedTuple):
    """The fields of a thread that begins with a change."""

    owner: str | None = None
    expires_at: int | None = None
    check: bytes = b""
    """The check of the thread's row."""


def beginning(thread_id: str, owner: str | None, expires_at: int | None) -> Beginning:
    """Return it with the check."""
    if owner is None and expires_at is None:
        return NO_BEGINNING
    return Beginning(owner, expires_at, thread_row(ThreadRow(thread_id, 0, owner, expires_at=expires_at)).check)


NO_BEGINNING = Beginning()


class ThreadOutline(NamedTuple):
    """The fields of a thread by which listings sort and filter."""

    row: ThreadRow
    updated_at: int
    """The time at which a checkpoint of the namespace "", or a change that touches the thread (`store.Change.touches`),
    was last stored; without any, the time at which the thread was created. A removal does not set it back."""


class ThreadCounts(NamedTuple):
    """The fields of a thread in a listing that are computed."""

    thread_id: str
    checkpoints: int
    namespaces: int
    """The number of namespaces that have checkpoints."""
    bytes: int
    """The stored bytes of its segments, and of its checkpoints' and writes' bodies and metadata."""
    newest: str | None
    """The id of the newest checkpoint of the namespace ""."""
    leased: bool
    failed: bool
    """Whether a task of that checkpoint wrote an error (`model.SPECIAL_WRITES`)."""
    interrupted: bool
    """Whether one wrote an interrupt."""
    unfinished: bool
    """Whether nodes are still to run after that checkpoint (`is_unfinished`)."""
    damage: str = ""
    """The reason why nothing of it could be counted."""


def is_unfinished(header: bytes, check: bytes) -> bool:
    """Return whether nodes are still to run after a checkpoint, by its stored header, which may be sealed."""
    if not check:
        return header.startswith(UNFINISHED.sealed)
    return header.startswith(UNFINISHED.literal) if header[:1] == b"\0" else header.endswith(UNFINISHED.end)


class UnfinishedHeader(NamedTuple):
    """The bytes by which a stored header says that nodes are still to run."""

    sealed: bytes
    """Begins a sealed one, whose row has an empty check."""
    literal: bytes
    """Begins one that stands in its row, like all that begin with NUL."""
    end: bytes
    """Ends any other one."""


UNFINISHED = UnfinishedHeader(MARK, before_literal(UNFINISHED_TAG), after_digest(UNFINISHED_TAG))


def status_of(counts: ThreadCounts) -> ThreadStatus:
    """Return the activity of a thread."""
    if counts.leased:
        return "busy"
    if counts.failed or counts.interrupted:
        return "error" if counts.failed else "interrupted"
    return "unfinished" if goes_on(counts) else "idle"


def goes_on(counts: ThreadCounts) -> bool:
    """Return whether nodes of a thread are still to run, or run now, and wait for no person."""
    return counts.unfinished and not (counts.failed or counts.interrupted)


def expect_counted(counts: ThreadCounts) -> None:
    """Raise CorruptDataError if nothing of a thread could be counted."""
    if counts.damage:
        raise CorruptDataError(counts.damage, f"thread {counts.thread_id!r}")


class ThreadScope(NamedTuple):
    """Which threads to list, and in which order. None leaves a part open.

    Like those of a `store.Scope`, `fragments` are texts that the metadata of every wanted thread contains; a backend
    may ignore them, and `text`.
    """

    owner: str | None = None
    status: ThreadStatus | None = None
    fragments: Sequence[str] = ()
    text: str | None = None
    """Only threads with this text in the title, ignoring case (`str.casefold`), or exactly in the id."""
    since: int | None = None
    """The smallest `updated_at`."""
    until: int | None = None
    """`updated_at` is smaller."""
    expired: int | None = None
    """`expires_at` is not greater."""
    sort: SortKey = "updated"
    descending: bool = True


def in_scope(scope: ThreadScope, outline: ThreadOutline) -> bool:
    """Return whether a thread is in the scope by its row and its time of update, for a backend that has to read it.

    Its status needs its newest checkpoint, and the saver looks at its text and metadata.
    """
    row, updated_at = outline
    return (
        scope.owner in (None, row.owner)
        and (scope.since is None or updated_at >= scope.since)
        and (scope.until is None or updated_at < scope.until)
        and (scope.expired is None or (row.expires_at is not None and row.expires_at <= scope.expired))
    )


class ThreadPlace(NamedTuple):
    """The place where a page of a listing begins: after this thread."""

    value: int
    """The sort value of the listing; 0 if it is the id."""
    thread_id: str


class LeaseRow(NamedTuple):
    """The last lease of a thread, whether it still lives or not."""

    token: int
    """The greatest token that was issued or taken back; 0 if there never was a lease."""
    left: int = 0
    """Microseconds until it ends, by the clock of the database; 0 if none lives."""
    holder: str = ""
    began: str | None = None
    """The id of the newest checkpoint of the namespace "" when it was taken, None if there was none."""
    outlasts: bool = False
    """Whether it would live for longer than was asked for, because another clock gave it; `lock_lease` bounds it."""


class ThreadStore(FormatStore, Protocol):
    """The operations of a backend on threads themselves."""

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        """Return a live thread."""

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        """Return the outlines of those of these threads that are live, in any order."""

    def set_thread(self, row: ThreadRow) -> Program[None]:
        """Write all fields of a live, locked thread except `created_at`. Listings by owner follow."""

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        """Return the next live threads by (sort key, thread_id), both in the direction of the scope."""

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        """Return how many live threads are in the scope."""

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        """Return the computed fields of these threads, in any order. Threads that are not live are left out."""

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        """Return the last lease. No one else can change it or add to the thread until the transaction ends.

        A thread that has no row gets one that is not live: no listing has it, and the first change begins it.
        """

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        """Write a lease to a locked thread. It lives for `left` microseconds from now; 0 ends it at once.

        Its token becomes the next one: greater by one than the last one, or the microseconds of the database's clock,
        whichever is greater. So tokens grow even if a deleted thread's row has been forgotten. Returns the lease.
        """

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        """Extend the lease of this token to `left` microseconds from now. Returns whether it is still the last."""

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        """Return the last lease of a thread, None for one without a row."""
