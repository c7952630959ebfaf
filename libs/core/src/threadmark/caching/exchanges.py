"""What becomes of a transaction of a cached saver: which parts the cache answers, and which the database.

Rows always come from the database, so it alone says which checkpoint is the newest. Segments come from the cache as far
as it has them. They never change, and each is proven when it is read, so they may be older or younger than the rows.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from threadmark.caching.access import Access
from threadmark.caching.cache import Filling, Wanted
from threadmark.caching.places import Places
from threadmark.caching.programs import (
    Begun,
    Done,
    Segments,
    answer_to,
    fetched,
    lacking,
    noting_removals,
    until_segments,
    wanted_by,
    wants_segments,
    with_segments,
)
from threadmark.caching.proving import SegmentProof, proven
from threadmark.caching.steps import Exchange, on_database
from threadmark.deferred import resolved
from threadmark.program import Program, Transaction
from threadmark.store import Store

T = TypeVar("T")


class Exchanges:
    """Makes exchanges of transactions, for one saver."""

    def __init__(self, store: Store, access: Access, places: Places, proof: SegmentProof) -> None:
        self._store = store
        self._access = access
        self._places = places
        self._proof = proof

    def exchange(self, transaction: Transaction[T]) -> Exchange[T]:
        """Run a transaction."""
        if transaction.writes:
            return self._write(transaction)
        if transaction.proves or not self._access.is_open:
            return on_database(resolved(transaction, self._store))
        return self._read(transaction)

    def forget_pending(self) -> Exchange[None]:
        """Have the cache forget what it still has to, if it can be asked."""
        return self._access.forget(())

    def _write(self, transaction: Transaction[T]) -> Exchange[T]:
        """Run a transaction that writes. The cache forgets what it removed, or may have removed where it failed."""
        shortened: set[str] = set()
        noted = transaction._replace(program=partial(noting_removals, transaction.program, shortened))
        try:
            result = yield from on_database(resolved(noted, self._store))
        except Exception:
            yield from self._access.forget(self._places_of(shortened))
            raise
        except BaseException:  # an interrupt, or a cancellation
            self._access.forget_later(self._places_of(shortened))
            raise
        if shortened:
            yield from self._access.forget(self._places_of(shortened))
        return result

    def _read(self, transaction: Transaction[T]) -> Exchange[T]:
        begun: Begun[T] | Done[T] | None = yield _like(
            transaction, partial(until_segments, transaction.program, self._store)
        )
        if begun is None:  # there are no tables
            return None  # type: ignore[return-value]  # as every driver answers then
        if isinstance(begun, Done):
            whole: T = begun.value
            return whole
        loader = _SegmentLoader(self._store, self._access, self._places, self._proof, begun.epochs)
        try:
            done = yield from self._continued(begun, loader)
        finally:
            begun.steps.close()
        if done is None:
            done = yield _like(transaction, partial(with_segments, transaction.program, self._store, loader.found))
            if done is None:
                return None  # type: ignore[return-value]  # as above
            loader.add(done.read)
        yield from loader.fill()
        return done.value

    def _continued(self, begun: Begun[T], loader: "_SegmentLoader") -> Exchange[Done[T] | None]:
        """Continue a program after its transaction. Returns None where all of it must run again, in a new one.

        That is so where it asks for more than segments, and where the cache has no segment of the checkpoint that is
        read, which the database then returns whole.
        """
        call = begun.call
        try:
            while call is not None:
                if wants_segments(call):
                    yield from loader.ask_cache(wanted_by(call))
                    if begun.finds and not any(loader.found.values()):
                        return None
                    if not (yield from loader.ask_database(wanted_by(call))):
                        return None
                    answer = answer_to(call, loader.found)
                elif (known := begun.answered(call)) is not None:
                    (answer,) = known
                else:
                    return None
                call = begun.next_call(answer)
        except StopIteration as stop:
            return Done(stop.value, {})
        return None

    def _places_of(self, thread_ids: Collection[str]) -> list[bytes]:
        return [self._places.place(thread_id) for thread_id in thread_ids]


def _like(transaction: Transaction[Any], program: Callable[[], Program[Any]]) -> Transaction[Any]:
    """Return a transaction with another program."""
    return transaction._replace(program=program)


class _SegmentLoader:
    """The segments that one transaction needs, as they are found."""

    def __init__(
        self, store: Store, access: Access, places: Places, proof: SegmentProof, epochs: Mapping[str, int]
    ) -> None:
        self.found: dict[str, dict[bytes, bytes]] = {}
        self._store = store
        self._access = access
        self._places = places
        self._proof = proof
        self._epochs = epochs
        self._tokens: dict[str, bytes] = {}
        self._new: dict[str, dict[bytes, bytes]] = {}

    def ask_cache(self, wanted: Mapping[str, Collection[bytes]]) -> Exchange[None]:
        """Find segments in the cache."""
        keys = lacking(wanted, self.found)
        places = {self._places.place(thread_id): thread_id for thread_id in keys}
        asked = {place: Wanted(self._epochs.get(name, 0), keys[name]) for place, name in places.items()}
        found = (yield from self._access.get(asked)) if asked else {}
        for place, got in found.items():
            thread_id = places[place]
            self._tokens.setdefault(thread_id, got.token)
            self.found.setdefault(thread_id, {}).update(proven(self._proof, thread_id, got.entries))

    def ask_database(self, wanted: Mapping[str, Collection[bytes]]) -> Exchange[bool]:
        """Read the segments that are not found yet. Returns whether all are there."""
        keys = lacking(wanted, self.found)
        if keys:
            self.add((yield from on_database(Transaction(partial(fetched, self._store, keys), writes=False))))
        return not lacking(wanted, self.found)

    def add(self, read: Segments) -> None:
        """Add what was read from the database."""
        for thread_id, segments in read.items():
            self.found.setdefault(thread_id, {}).update(segments)
            self._new.setdefault(thread_id, {}).update(segments)

    def fill(self) -> Exchange[None]:
        """Give the cache what it did not have."""
        fillings = {}
        for thread_id, segments in self._new.items():
            token = self._tokens.get(thread_id)
            entries = proven(self._proof, thread_id, segments) if token else {}
            if token and entries:
                fillings[self._places.place(thread_id)] = Filling(token, entries)
        yield from self._access.set(fillings)
