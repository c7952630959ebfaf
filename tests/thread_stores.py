"""Random operations on threads, done to the memory store and to another one: both give the same answers.

Values of a store's clock are compared by their meaning: tokens and epochs by their order, the rest of a lease by
whether there is any. Leases last an hour, or are over before the next look.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from threadmark.format.digests import segment_key
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Driver, Program, Transaction
from threadmark.store.contract import (
    ANYONE,
    TOMBSTONE_MICROSECONDS,
    Added,
    Change,
    CheckpointRow,
    Found,
    Key,
    Outline,
    Scope,
    Store,
    WriteRow,
)
from threadmark.store.threads import (
    LeaseRow,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    beginning,
    is_sound_thread,
    thread_row,
)
from threadmark_conformance import Backend

THREADS = ("ada:1", "b\x00", "Ünï", "01990f2a-7a51-7cd9-8000-1f2e3d4c5b6a", "\ud800x")
OWNERS = (None, "ada", "bob")
NAMESPACES = ("", "", "child:1")
TIMED_IDS = tuple(f"1f1e501f-9a39-6dfa-aadb-00000000000{digit}" for digit in "1234")
IDS = (*TIMED_IDS, "plain", "1F1E501F")
TITLES = (None, "Straße", "STRASSE and plan", "")
METADATA = (None, '{"k":"v"}', '{"k":"w","n":1}')
TEXTS = ("strasse", "PLAN", "a", "Ün")
HOUR = 3600 * 1_000_000
AT_ONCE = 1
"""The microseconds of a lease that is over when the next operation begins."""
LONG = 2**31 - 1

T = TypeVar("T")


class Side:
    """One store, and the numbers it has issued, for each thread: its epochs and its tokens, in their order."""

    def __init__(self, store: Store, driver: Driver) -> None:
        self.store = store
        self._driver = driver
        self._epochs: dict[str, list[int]] = {name: [0] for name in THREADS}
        self.tokens: dict[str, list[int]] = {name: [0] for name in THREADS}

    def run(self, program: Callable[[Store], Program[T]], *, writes: bool = True) -> T:
        """Run a program of the store in a transaction."""
        return self._driver.run(Transaction(program, (self.store,), writes=writes))

    def epoch(self, thread_id: str, place: int | None) -> int | None:
        """The epoch that stands at this place."""
        known = self._epochs[thread_id]
        return None if place is None else known[place % len(known)]

    def token(self, thread_id: str, place: int | None) -> int | None:
        """The token that stands at this place."""
        known = self.tokens[thread_id]
        return place if place in (None, ANYONE) else known[place % len(known)]

    def place_of_epoch(self, thread_id: str, epoch: int | None) -> int | None:
        """The place of an epoch."""
        return None if epoch is None else _place(self._epochs[thread_id], epoch)

    def lease(self, thread_id: str, lease: LeaseRow | None) -> tuple[int, bool, str, str | None] | None:
        """A lease, as it is compared. A new token is greater than all before."""
        if lease is None:
            return None
        known = self.tokens[thread_id]
        assert lease.token in known or lease.token > known[-1]
        return _place(known, lease.token), lease.left > 0, lease.holder, lease.began


def _place(known: list[int], number: int) -> int:
    if number not in known:
        known.append(number)
    return known.index(number)


class _Pair(NamedTuple):
    """The two stores."""

    memory: Side
    other: Side

    def same(self, operation: Callable[[Side], T]) -> T:
        """Do it to both. Returns the common result."""
        expected, found = operation(self.memory), operation(self.other)
        assert found == expected, f"it gives {found}, and the memory store {expected}"
        return found


def check_agreement(backend: Backend, folder: Path, seed: int, rounds: int) -> None:
    """Do random operations to a new memory store and to one of the backend, and compare all that they answer."""
    with backend(folder) as open_saver, open_saver() as saver:
        pair = _Pair(Side(MemoryStore(), MemoryDriver()), Side(saver._context.store, saver._driver))
        walk = _Walk(pair, random.Random(seed))
        for _ in range(rounds):
            walk.step()
        walk.compare_everything()


def check_tokens_of_a_deletion(backend: Backend, folder: Path) -> None:
    """Delete a thread by the clock of a caller that is a year ahead: its next token comes from the store's own clock.

    A mark is forgotten by a caller's clock as well. The next token comes from the store's clock then, and must be the
    greater one.
    """
    with backend(folder) as open_saver, open_saver() as saver:
        side = Side(saver._context.store, saver._driver)
        change = Change("t", None, time.time_ns() // 1000, {}, [], [], None, beginning=beginning("t", None, None))
        side.run(lambda store: store.add(change))
        first = side.run(lambda store: store.set_lease("t", LeaseRow(0, HOUR, "worker")))
        ahead = time.time_ns() // 1000 + 365 * 24 * HOUR
        side.run(lambda store: store.drop("t", ahead))
        last = side.run(lambda store: store.lock_lease("t"))
        assert first.token < last.token < ahead


class _Walk:
    """A random sequence of operations."""

    def __init__(self, pair: _Pair, chance: random.Random) -> None:
        self._pair = pair
        self._chance = chance
        self._now = time.time_ns() // 1000 + 2 * HOUR  # a store's own clock is never mistaken for it
        self._operations = (
            *(self._change,) * 14,
            *(self._take_lease,) * 3,
            self._renew,
            self._set_thread,
            self._set_thread,
            self._remove,
            self._drop,
            self._list,
            self._list,
            self._look,
        )

    def step(self) -> None:
        """Do one operation to one thread, and look at the thread afterwards."""
        self._now += self._chance.randrange(1000)
        thread_id = self._chance.choice(THREADS)
        self._chance.choice(self._operations)(thread_id)
        self._pair.same(lambda side: _about(side, thread_id))
        self._pair.same(_together)

    def compare_everything(self) -> None:
        """Every listing in every order, and every thread."""
        for owner in OWNERS:
            for status in (None, "idle", "busy", "interrupted", "error"):
                for sort in ("updated", "created", "id"):
                    for descending in (False, True):
                        scope = ThreadScope(owner, status, sort=sort, descending=descending)
                        self._pair.same(partial(_listing, scope=scope, limit=2, offset=0))
        for thread_id in THREADS:
            self._look(thread_id)

    def _change(self, thread_id: str) -> None:
        chance = self._chance
        ns, checkpoint_id = chance.choice(NAMESPACES), chance.choice(IDS)
        token = chance.choice((None, None, -1, -1, -1, -1, -2, ANYONE, ANYONE))
        epoch = chance.choice((None, None, None, -1, -1, -2))
        segments = {segment_key(data): data for data in (chance.randbytes(chance.randrange(9)),) if data}
        checkpoints = [self._checkpoint(thread_id, ns, checkpoint_id)] if chance.random() < 0.7 else []
        if not checkpoints:  # Postgres reads the ids of such writes only if a head's rank tells no time
            checkpoint_id = chance.choice(TIMED_IDS)
        begins = beginning(thread_id, chance.choice(OWNERS), chance.choice((None, None, self._now + HOUR)))
        place = chance.choice((None,) * 6 + ("", IDS[3], max(IDS))) if checkpoints else None
        change = Change(
            thread_id,
            None,
            self._now - chance.choice((0, 0, 3000)),
            segments,
            checkpoints,
            self._writes(ns, checkpoint_id),
            chance.choice((None, None, None, checkpoint_id, chance.choice(IDS))),
            beginning=begins,
            only_owner=chance.random() < 0.2,
            expects=place,
            sorts_last=bool(checkpoints) and chance.random() < 0.2,
            touches=chance.random() < 0.3 and not (checkpoints and ns == ""),
        )

        def make(side: Side) -> Any:
            made = change._replace(token=side.token(thread_id, token), epoch=side.epoch(thread_id, epoch))
            added = side.run(lambda store: store.add(made))
            outcome = _outcome(side, thread_id, added)
            if added.exists:
                replaced = side.run(lambda store: store.replace(made))
                return outcome, _outcome(side, thread_id, replaced)
            return outcome

        self._pair.same(make)

    def _checkpoint(self, thread_id: str, ns: str, checkpoint_id: str) -> CheckpointRow:
        chance = self._chance
        created_at = self._now - chance.choice((0, 0, 0, 5000, HOUR))
        outline = Outline(thread_id, ns, checkpoint_id, checkpoint_id, None, created_at, '{"s":"é"}')
        return CheckpointRow(outline, chance.randbytes(chance.randrange(4)), b"check", None)

    def _writes(self, ns: str, checkpoint_id: str) -> list[WriteRow]:
        indexes = sorted({*self._chance.sample((-1, -3, -3, -4, 0, 1), self._chance.choice((0, 0, 1, 2)))})
        value = self._chance.randbytes(3)
        return [WriteRow(ns, checkpoint_id, "task", idx, "", "channel", value, b"check") for idx in indexes]

    def _take_lease(self, thread_id: str) -> None:
        left = self._chance.choice((HOUR, HOUR, AT_ONCE, 0, 0))
        given = LeaseRow(0, left, "w\x00rker", self._chance.choice((None, IDS[0]))) if left else LeaseRow(0)

        def take(side: Side) -> Any:
            def program(store: Store) -> Program[tuple[LeaseRow, LeaseRow]]:
                before = yield from store.lock_lease(thread_id)
                return before, (yield from store.set_lease(thread_id, given))

            before, after = side.run(program)
            assert after.left <= left
            while left == AT_ONCE and _has_lease(side, thread_id):
                pass
            return side.lease(thread_id, before), side.lease(thread_id, after._replace(left=left))

        self._pair.same(take)

    def _renew(self, thread_id: str) -> None:
        place = self._chance.choice((-1, -1, -2))

        def renew(side: Side) -> bool:
            token = side.token(thread_id, place) or -1
            return side.run(lambda store: store.renew_lease(thread_id, token, HOUR))

        self._pair.same(renew)

    def _set_thread(self, thread_id: str) -> None:
        chance = self._chance
        owner, title, metadata = chance.choice(OWNERS), chance.choice(TITLES), chance.choice(METADATA)
        row = thread_row(ThreadRow(thread_id, 0, owner, title, metadata, chance.choice((None, self._now))))

        def set_thread(side: Side) -> bool:
            def program(store: Store) -> Program[bool]:
                if (yield from store.lock(thread_id)) is None:
                    return False
                yield from store.set_thread(row)
                return True

            return side.run(program)

        self._pair.same(set_thread)

    def _remove(self, thread_id: str) -> None:
        keys: list[Key] = [(self._chance.choice(NAMESPACES), key) for key in self._chance.sample(IDS, 6)]
        all_of_them = self._chance.random() < 0.2

        def remove(side: Side) -> int | None:
            def program(store: Store) -> Program[int | None]:
                if (yield from store.lock(thread_id)) is None:
                    return None
                segments = yield from store.segment_sizes(thread_id)
                doomed = [(ns, key) for ns in dict.fromkeys(NAMESPACES) for key in IDS] if all_of_them else keys
                return (yield from store.remove(thread_id, doomed, sorted(segments)[:1]))

            return side.place_of_epoch(thread_id, side.run(program))

        self._pair.same(remove)

    def _drop(self, thread_id: str) -> None:
        forgets = self._chance.random() < 0.2
        self._now = -(-self._now // 1000) * 1000  # at such a moment every backend forgets all that it may
        if forgets:
            self._now += TOMBSTONE_MICROSECONDS + HOUR

        def drop(side: Side) -> int | None:
            return side.place_of_epoch(thread_id, side.run(lambda store: store.drop(thread_id, self._now)))

        self._pair.same(drop)
        if forgets:  # the next tokens come from the clock alone: let it go on by more than its resolution
            time.sleep(0.002)

    def _list(self, _: str) -> None:
        chance = self._chance
        scope = ThreadScope(
            chance.choice(OWNERS),
            chance.choice((None, None, "idle", "busy", "interrupted", "error")),
            since=chance.choice((None, None, self._now - HOUR)),
            until=chance.choice((None, None, self._now - 100)),
            expired=chance.choice((None, None, None, self._now)),
            sort=chance.choice(("updated", "created", "id")),
            descending=chance.random() < 0.5,
        )
        self._pair.same(partial(_listing, scope=scope, limit=chance.choice((1, 2, 3)), offset=chance.choice((0, 1))))
        self._pair.same(lambda side: side.run(lambda store: store.count_threads(scope), writes=False))
        self._pair.same(partial(_search, scope=scope, text=chance.choice(TEXTS), fragments=[]))
        self._pair.same(partial(_search, scope=scope, text=None, fragments=['"k":"v"', '"k"'][: chance.randrange(3)]))

    def _look(self, thread_id: str) -> None:
        owned = Scope(owner=self._chance.choice(OWNERS))

        def look(side: Side) -> Any:
            heads = sorted(side.run(lambda store: store.heads(thread_id, None), writes=False))
            assert heads == sorted(side.run(lambda store: store.counted_heads(thread_id, None), writes=False))
            outlines = side.run(lambda store: store.page(owned, None, LONG), writes=False)
            return heads, outlines, side.run(lambda store: store.threads("", LONG), writes=False)

        self._pair.same(look)


def _about(side: Side, thread_id: str) -> Any:
    """The rows of one thread."""
    thread = side.run(lambda store: store.thread(thread_id), writes=False)
    assert thread is None or is_sound_thread(thread.row)
    return (
        thread,
        side.run(lambda store: store.thread_counts([thread_id, "not there"]), writes=False),
        side.lease(thread_id, side.run(lambda store: store.lease(thread_id), writes=False)),
        side.place_of_epoch(thread_id, side.run(lambda store: store.epoch(thread_id), writes=False)),
        [_found(side, thread_id, ns) for ns in dict.fromkeys(NAMESPACES)],
    )


def _together(side: Side) -> Any:
    """The answers for all threads at once, which equal those for each."""
    outlines = side.run(lambda store: store.thread_outlines([*THREADS, "not there"]), writes=False)
    each = [side.run(partial(lambda store, name: store.thread(name), name=name), writes=False) for name in THREADS]
    assert sorted(outlines) == sorted(filter(None, each))
    for ns in dict.fromkeys(NAMESPACES):
        newest = side.run(partial(lambda store, ns: store.newest([*THREADS, "not there"], ns), ns=ns), writes=False)
        assert not any(found.writes or found.segments for found in newest.values())
        told = {name: _told(found) for name, found in newest.items()}
        alone = {name: _found(side, name, ns) for name in THREADS}
        assert told == {name: (*found[:2], [], *found[3:]) for name, found in alone.items() if found is not None}
    sizes = {name: side.run(partial(lambda store, name: store.segment_sizes(name), name=name)) for name in THREADS}
    wanted = {name: [*held, b"not there..."] for name, held in sizes.items()}
    segments = side.run(lambda store: store.segments_of(wanted), writes=False)
    assert {name: {key: len(data) for key, data in some.items()} for name, some in segments.items()} == sizes
    return segments


def _found(side: Side, thread_id: str, ns: str) -> Any:
    """The newest checkpoint of a namespace, and the facts about its thread."""
    found: Found | None = side.run(lambda store: store.find(thread_id, ns, None), writes=False)
    return None if found is None else _told(found)


def _told(found: Found) -> Any:
    assert found.row is not None
    writes = sorted(found.writes)
    return found.row.outline, found.row.header, writes, found.newest, found.owner, found.expires_at


def _has_lease(side: Side, thread_id: str) -> bool:
    lease = side.run(lambda store: store.lease(thread_id), writes=False)
    return lease is not None and lease.left > 0


def _outcome(side: Side, thread_id: str, added: Added) -> Any:
    replaced_writes = sorted(added.replaced_writes)
    return added._replace(epoch=side.place_of_epoch(thread_id, added.epoch) or 0, replaced_writes=replaced_writes)


def _page(side: Side, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int) -> list[ThreadOutline]:
    return side.run(lambda store: store.thread_page(scope, after, offset, limit), writes=False)


def _listing(side: Side, scope: ThreadScope, limit: int, offset: int) -> list[ThreadOutline]:
    """All pages of a listing; they give the same as one page."""
    whole = _page(side, scope, None, 0, LONG)
    listed = _page(side, scope, None, offset, limit)
    after = listed[-1] if listed else None
    while after is not None:
        values = {"updated": after.updated_at, "created": after.row.created_at, "id": 0}
        some = _page(side, scope, ThreadPlace(values[scope.sort], after.row.thread_id), 0, limit)
        listed += some
        after = some[-1] if some else None
    assert listed == whole[offset:]
    return whole


def _search(side: Side, scope: ThreadScope, text: str | None, fragments: list[str]) -> list[ThreadOutline]:
    """The threads that a search finds. A store may ignore the text, and leaves nothing out."""
    found = _page(side, scope._replace(text=text, fragments=fragments), None, 0, LONG)
    return [outline for outline in found if _matches(outline.row, text, fragments)]


def _matches(row: ThreadRow, text: str | None, fragments: list[str]) -> bool:
    has_text = text is None or text.casefold() in (row.title or "").casefold() or text in row.thread_id
    return has_text and all(fragment in (row.metadata or "") for fragment in fragments)
