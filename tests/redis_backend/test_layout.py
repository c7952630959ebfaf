"""How rows stand in keys: in one slot, in the order of Python's text, and the same whichever way they were added."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from redis.crc import key_slot

from redis_backend.backends import OPTIONS
from redis_backend.processes import RedisProcess
from threadmark.program import Program, Transaction
from threadmark.store.contract import Added, Change, CheckpointRow, Follows, Outline, Store, WriteRow
from threadmark.store.replica import Replica
from threadmark.store.threads import beginning
from threadmark_redis import RedisSaver
from threadmark_redis.columns import member_of, range_of, to_bytes
from threadmark_redis.keys import pending_key, replica_keys, term_key, thread_keys
from threadmark_redis.outbox import POSITION_DIGITS
from threadmark_redis.writes import INLINE

ODD_IDS = ["", "a", "{", "}", "{}", "{a}b{c}", "\0", "\ud800", "\U0010ffff", "ä" * 300, "*?[a]\\"]
ALPHABET = "\0\x01\x02 /0aZ~\x7f\x80\u07ff\u0800\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff"


def test_all_keys_of_a_thread_are_in_one_slot_and_no_two_threads_share_one() -> None:
    every = [thread_keys(b"prefix:", thread_id) for thread_id in ODD_IDS]
    assert all(len({key_slot(key) for key in keys}) == 1 for keys in every)
    assert len({key for keys in every for key in keys}) == 5 * len(ODD_IDS)
    outboxes = [replica_keys(b"prefix:", thread_id).outbox for thread_id in ODD_IDS]
    assert [key_slot(outbox) for outbox in outboxes] == [key_slot(keys.head) for keys in every]
    assert key_slot(term_key(b"prefix:")) == key_slot(pending_key(b"prefix:"))


def test_places_sort_as_python_sorts_ranks_and_a_namespace_holds_its_own_only(
    server: RedisProcess, prefix: str
) -> None:
    chance = random.Random(1)
    names = ["", "a", "a|b", "\0", "\uffff", "\U0010ffff"]
    ranks = {ns: {_text(chance) for _ in range(60)} for ns in names}
    members = [member_of(ns, rank) for ns in names for rank in ranks[ns]]
    server.client.zadd(prefix, dict.fromkeys(members, 0))
    for ns in names:
        found = server.client.zrangebylex(prefix, *range_of(ns))
        assert found == [member_of(ns, rank) for rank in sorted(ranks[ns])]


@pytest.mark.parametrize("seed", range(6))
def test_a_script_and_a_transaction_that_has_locked_the_thread_store_the_same(
    server: RedisProcess, prefix: str, seed: int
) -> None:
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver:
        store: Any = saver._context.store

        def run(program: Any) -> Any:
            return saver._driver.run(Transaction(program, writes=True))

        run(partial(store.set_replica, Replica(2, "{}")))
        for script, locked in zip(_changes("one", seed), _changes("other", seed), strict=True):
            assert _comparable(run(partial(store.add, script))) == _comparable(run(partial(_locked, store, locked)))
    one, other = (_raw(server, prefix, name) for name in ("one", "other"))
    assert len(one["checkpoints"]) > 10
    assert max(map(len, one["writes"].values())) > INLINE
    assert len(one["outbox"]) > (5 if seed % 2 else -1)
    assert (b"f" in one["head"]) is (seed % 2 == 0)
    assert one == other


def _locked(store: Store, change: Change) -> Program[Added]:
    yield from store.lock(change.thread_id)
    return (yield from store.add(change))


def _comparable(added: Added) -> tuple[Any, ...]:
    has_entry, has_previous = added.position > 0, added.previous > 0
    written = [row._replace(check=b"") for row in added.replaced_writes]
    return added._replace(replaced_writes=written, position=has_entry, previous=has_previous)


def _changes(thread_id: str, seed: int) -> Iterator[Change]:
    """Changes of all kinds, some of which are refused; the same for the same seed, whatever the thread.

    With an odd seed they have entries for the outbox, with an even one they come from another database.
    """
    chance = random.Random(seed)
    tasks = ["1f1e501f-9a39-6dfa-aadb-0123456789ab", "task", "\0"]
    for number in range(90):
        ns = chance.choice(["", "", "inner", "\0"])
        checkpoint_id = f"{chance.randrange(40):04}"
        rank = chance.choice([checkpoint_id, f"{checkpoint_id}\x0200000001.{checkpoint_id}"])
        segments = {chance.randbytes(12): chance.randbytes(20) for _ in range(chance.randrange(3))}
        rows, writes = [], []
        if chance.random() < 0.6:
            outline = Outline(thread_id, ns, checkpoint_id, rank, None, 1000 + number * chance.choice([1, -1]), "{}")
            rows = [CheckpointRow(outline, chance.randbytes(30), b"check", None)]
        else:
            task = chance.choice(tasks)
            for idx in chance.sample([-4, -3, -1, 0, 1, 2, 1 << 30], chance.randrange(1, 6)):
                value = chance.randbytes(chance.choice([3, 300, 900]))
                writes.append(WriteRow(ns, checkpoint_id, task, idx, "path", f"channel {idx}", value, b"check"))
        follows = chance.choice([None, None, Follows(-1, 5, 7), Follows(5, 5, 8)]) if seed % 2 == 0 else None
        yield Change(
            thread_id,
            None,
            1000 + number,
            segments,
            rows,
            writes,
            None,
            lambda segments=tuple(segments): segments,  # type: ignore[misc]  # a default binds it
            token=chance.choice([None, None, None, 7]),
            beginning=beginning("whoever", chance.choice(["ada", "bob"]), 2**60),
            only_owner=chance.random() < 0.3,
            expects=chance.choice([None, None, "0001"]) if rows else None,
            sorts_last=bool(rows) and chance.random() < 0.2,
            touches=chance.random() < 0.2,
            term=chance.choice([None, None, 2, 3, 3, 3, 1]),
            entry=b"%d" % number if seed % 2 and chance.random() < 0.8 else None,
            copied=follows,
        )


def _raw(server: RedisProcess, prefix: str, thread_id: str) -> dict[str, Any]:
    keys = thread_keys(to_bytes(prefix), thread_id)
    found: dict[str, Any] = {
        name: server.client.hgetall(getattr(keys, name)) for name in ("head", "checkpoints", "writes", "segments")
    }
    # The id, the revision, the last commit, the place in the index, and the position, which is a time.
    for field in (b"i", b"r", b"c", b"y", b"p"):
        found["head"].pop(field, None)
    entries = server.client.zrange(replica_keys(to_bytes(prefix), thread_id).outbox, 0, -1)
    outbox = [member[POSITION_DIGITS:] for member in entries]
    return {**found, "ranks": server.client.zrange(keys.ranks, 0, -1), "outbox": outbox}


def _text(chance: random.Random) -> str:
    return "".join(chance.choice(ALPHABET) for _ in range(chance.randrange(5)))
