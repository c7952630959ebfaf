"""A store around another store that shows only one owner's threads.

The saver above does not know of it, so no method can bypass it: any request for another owner's thread is answered as
if there were none. If the owner is not part of the one question that a method asks (`add`, `find`, and the listings),
it is asked for first, in the same transaction.

The owner of sealed rows is proven by the thread's row (`SealedStore(owner=...)`): someone who can change the database
but has no key cannot give a thread away. That is one more statement for each `add` and `find`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from threadmark.errors import ThreadNotFoundError
from threadmark.program import Program
from threadmark.store.contract import (
    Added,
    Change,
    CheckpointRow,
    Found,
    Head,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
    nothing_held,
)
from threadmark.store.threads import (
    LeaseRow,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    beginning,
    expect_sound_thread,
)

T = TypeVar("T")

_BY_ID = ThreadScope(sort="id", descending=False)
_PAGE = 256


class OwnedStore(Store):
    """Another store, as far as it belongs to one owner."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner

    def find(
        self, thread_id: str, ns: str, checkpoint_id: str | None, held: Callable[[], str | None] = nothing_held
    ) -> Program[Found | None]:
        found = yield from self._store.find(thread_id, ns, checkpoint_id, held)
        return found if found is not None and found.owner == self._owner else None

    def segments(self, thread_id: str, keys: Sequence[bytes]) -> Program[dict[bytes, bytes]]:
        return self._if_own(thread_id, lambda: self._store.segments(thread_id, keys), {})

    def newest(self, thread_ids: Sequence[str], ns: str) -> Program[dict[str, Found]]:
        found = yield from self._store.newest(thread_ids, ns)
        return {thread_id: each for thread_id, each in found.items() if each.owner == self._owner}

    def segments_of(self, requested: Mapping[str, Collection[bytes]]) -> Program[dict[str, dict[bytes, bytes]]]:
        own = yield from self._own(requested)
        return (yield from self._store.segments_of({thread_id: requested[thread_id] for thread_id in own}))

    def page(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[Outline]]:
        return self._store.page(scope._replace(owner=self._owner), after, limit)

    def page_of_rows(self, scope: Scope, after: Outline | None, limit: int) -> Program[list[CheckpointRow] | None]:
        return (yield from self._store.page_of_rows(scope._replace(owner=self._owner), after, limit))

    def rows(self, thread_id: str, keys: Sequence[Key]) -> Program[list[CheckpointRow]]:
        return self._if_own(thread_id, lambda: self._store.rows(thread_id, keys), [])

    def writes(self, thread_id: str, keys: Sequence[Key] | None) -> Program[list[WriteRow]]:
        return self._if_own(thread_id, lambda: self._store.writes(thread_id, keys), [])

    def chain(self, thread_id: str, ns: str, checkpoint_id: str | None, limit: int) -> Program[list[CheckpointRow]]:
        return self._if_own(thread_id, lambda: self._store.chain(thread_id, ns, checkpoint_id, limit), [])

    def epoch(self, thread_id: str) -> Program[int | None]:
        return self._if_own(thread_id, lambda: self._store.epoch(thread_id), None)

    def lock(self, thread_id: str) -> Program[int | None]:
        epoch = yield from self._store.lock(thread_id)
        return epoch if (yield from self._is_own(thread_id)) else None

    def add(self, change: Change) -> Program[Added]:
        return self._store.add(self._as_owner(change))

    def replace(self, change: Change) -> Program[Added]:
        return self._store.replace(self._as_owner(change))

    def rewrite(self, thread_id: str, rows: Sequence[CheckpointRow]) -> Program[None]:
        yield from self._expect_own(thread_id)
        yield from self._store.rewrite(thread_id, rows)

    def heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._heads(self._store.heads, thread_id, ns)

    def counted_heads(self, thread_id: str | None, ns: str | None) -> Program[list[Head]]:
        return self._heads(self._store.counted_heads, thread_id, ns)

    def damage(self) -> Program[list[tuple[str, str]]]:
        """Return nothing: rows that belong to no thread belong to no owner."""
        yield from ()
        return []

    def mend(self) -> Program[None]:
        """Do nothing: rows of no thread belong to no owner."""
        yield from ()

    def segment_sizes(self, thread_id: str) -> Program[dict[bytes, int]]:
        return self._if_own(thread_id, lambda: self._store.segment_sizes(thread_id), {})

    def remove(self, thread_id: str, keys: Sequence[Key], segments: Sequence[bytes]) -> Program[int]:
        yield from self._expect_own(thread_id)
        return (yield from self._store.remove(thread_id, keys, segments))

    def forget(self, thread_id: str, keys: Sequence[Key], *, removes: bool) -> Program[None]:
        return self._if_own(thread_id, lambda: self._store.forget(thread_id, keys, removes=removes), None)

    def drop(self, thread_id: str, now: int) -> Program[int | None]:
        return self._if_own(thread_id, lambda: self._store.drop(thread_id, now), None)

    def copy_segments(self, source: str, target: str) -> Program[None]:
        yield from self._expect_own(source)
        yield from self._expect_own(target)
        yield from self._store.copy_segments(source, target)

    def threads(self, after: str, limit: int) -> Program[list[str]]:
        found = yield from self.thread_page(_BY_ID, ThreadPlace(0, after), 0, limit)
        return [outline.row.thread_id for outline in found]

    def sample(self) -> Program[tuple[bytes, bytes] | None]:
        return self._store.sample()

    def has_only_langgraph_data(self) -> Program[bool]:
        return self._store.has_only_langgraph_data()

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        found = yield from self._store.thread(thread_id)
        return found if found is not None and found.row.owner == self._owner else None

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        found = yield from self._store.thread_outlines(thread_ids)
        return [outline for outline in found if outline.row.owner == self._owner]

    def set_thread(self, row: ThreadRow) -> Program[None]:
        yield from self._expect_own(row.thread_id)
        if row.owner != self._owner:
            raise ThreadNotFoundError(f"only the threads of {self._owner!r} are here: no other owner can have one")
        yield from self._store.set_thread(row)

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        if scope.owner not in (None, self._owner):
            return []
        return (yield from self._store.thread_page(scope._replace(owner=self._owner), after, offset, limit))

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        if scope.owner not in (None, self._owner):
            return 0
        return (yield from self._store.count_threads(scope._replace(owner=self._owner)))

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        own = yield from self._own(thread_ids)
        return (yield from self._store.thread_counts(own))

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        """Lock it, too, if there is no thread of this id: the first taker of a lease may begin it.

        The holder of such a lease stays hidden.
        """
        lease = yield from self._store.lock_lease(thread_id)
        found = yield from self._store.thread(thread_id)
        if found is None:
            return lease._replace(holder="")
        if not self._belongs(found):
            raise self._not_found(thread_id)
        return lease

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        return self._store.set_lease(thread_id, lease)  # of a thread that `lock_lease` has locked

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        """Renew it, even if there is no thread yet; if it has another owner by now, the lease is lost."""
        found = yield from self._store.thread(thread_id)
        if found is not None and not self._belongs(found):
            return False
        return (yield from self._store.renew_lease(thread_id, token, left))

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        return self._if_own(thread_id, lambda: self._store.lease(thread_id), None)

    def _as_owner(self, change: Change) -> Change:
        begins = beginning(change.thread_id, self._owner, change.beginning.expires_at)
        return change._replace(only_owner=True, beginning=begins)

    def _belongs(self, outline: ThreadOutline) -> bool:
        """Whether a thread is the owner's. Raises CorruptDataError if its row was changed."""
        if outline.row.owner != self._owner:
            return False
        expect_sound_thread(outline.row)
        return True

    def _is_own(self, thread_id: str) -> Program[bool]:
        """Whether a thread is there and the owner's. Raises CorruptDataError if its row was changed."""
        found = yield from self._store.thread(thread_id)
        return found is not None and self._belongs(found)

    def _not_found(self, thread_id: str) -> ThreadNotFoundError:
        return ThreadNotFoundError(f"there is no thread {thread_id!r} of {self._owner!r}")

    def _expect_own(self, thread_id: str) -> Program[None]:
        if not (yield from self._is_own(thread_id)):
            raise self._not_found(thread_id)

    def _if_own(self, thread_id: str, ask: Callable[[], Program[T]], otherwise: T) -> Program[T]:
        if (yield from self._is_own(thread_id)):
            return (yield from ask())
        return otherwise

    def _heads(
        self, ask: Callable[[str | None, str | None], Program[list[Head]]], thread_id: str | None, ns: str | None
    ) -> Program[list[Head]]:
        if thread_id is not None:
            return (yield from ask(thread_id, ns)) if (yield from self._is_own(thread_id)) else []
        found: list[Head] = []
        own = yield from self._all_own()
        for name in own:
            found += yield from ask(name, ns)
        return found

    def _all_own(self) -> Program[list[str]]:
        own: list[str] = []
        page = [outline.row.thread_id for outline in (yield from self.thread_page(_BY_ID, None, 0, _PAGE))]
        while page:
            own += page
            page = yield from self.threads(page[-1], _PAGE)
        return own

    def _own(self, thread_ids: Iterable[str]) -> Program[list[str]]:
        """Return those of the threads that are the owner's. Raises CorruptDataError as `_is_own` does."""
        found = yield from self._store.thread_outlines(list(thread_ids))
        return [outline.row.thread_id for outline in found if self._belongs(outline)]
