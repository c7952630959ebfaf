"""Redis' data for replication: a change's own script on one server, and a cluster's data in other slots."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest

from postgres.steps import play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.drivers import running
from redis_backend.places import PLACES, saver_at
from redis_backend.processes import RedisProcess
from threadmark import Saver, ThreadmarkError
from threadmark.errors import CorruptDataError
from threadmark.program import Program, Step, Transaction
from threadmark.store.contract import ANYONE, Change, CheckpointRow, Outline
from threadmark.store.replica import Copied, Entry, Replica, ReplicaStore, StaleTermError, Waiting, sum_of_marks
from threadmark_conformance.recording import Recording
from threadmark_redis import RedisSaver, pending, repair
from threadmark_redis.columns import unpack
from threadmark_redis.index import Settings
from threadmark_redis.keys import pending_key, replica_keys, thread_keys
from threadmark_redis.steps import Run

_MANY = 1000


class DiedError(Exception):
    """The process is killed here."""


def _ask(saver: Saver, method: Callable[..., Program[Any]], *args: Any) -> Any:
    program = partial(getattr(saver._store, method.__name__), *args)
    return saver._driver.run(Transaction(program, writes=True))


def _recorded(saver: RedisSaver, term: int | None = None) -> Recording:
    """Let a saver record its changes."""
    recording = Recording(term)
    saver._store = recording.store(saver._store)
    saver._context = saver._new_context()
    return recording


def _between(saver: RedisSaver, script: str, act: Callable[[], object], *, after: bool = False) -> None:
    """Do something once, before the saver sends a script, or after it was run."""
    router = saver._redis._router
    answer = router.answer
    acts = [act]

    def answered(step: Step, retries: Any) -> Any:
        is_met = isinstance(step, Run) and step.script.name == script
        if is_met and not after and acts:
            acts.pop()()
        reply = yield from answer(step, retries)
        if is_met and after and acts:
            acts.pop()()
        return reply

    router.answer = answered  # type: ignore[method-assign]  # a fault is put between a saver and its servers


def _die() -> None:
    raise DiedError


def test_a_put_that_is_not_replicated_has_the_keys_and_arguments_that_it_always_had(saver: RedisSaver) -> None:
    sent: list[tuple[int, int]] = []
    answer = saver._redis._router.answer

    def answered(step: Step, retries: Any) -> Any:
        if isinstance(step, Run) and step.script.name == "add":
            sent.append((len(step.keys), len(unpack(cast("bytes", step.args[0])))))
        return (yield from answer(step, retries))

    saver._redis._router.answer = answered  # type: ignore[method-assign]  # the test looks at each command
    config = play(saver, "one", 1)
    _recorded(saver)
    saver.put(config, *step(1))
    assert sent == [(10, 17)] * (len(sent) - 1) + [(13, 20)]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("script", ["announce", "add", "commit"])
def test_who_is_killed_beside_a_change_in_a_cluster_leaves_nothing_that_is_not_found(
    prefix: str, monkeypatch: pytest.MonkeyPatch, script: str, moment: str
) -> None:
    monkeypatch.setattr(pending, "GRACE", 0)
    with saver_at("cluster", prefix) as dying, saver_at("cluster", prefix) as other:
        config = play(other, "one", 1)
        _recorded(dying)
        _between(dying, script, _die, after=moment == "after")
        with pytest.raises(DiedError):
            dying.delete_thread("one") if script == "commit" else dying.put(config, *step(1))
        is_made = moment == "after" and script != "announce"
        assert len(_ask(other, ReplicaStore.outbox, "one", _MANY)) == is_made
        for _ in range(2):
            assert [entry.thread_id for entry in _ask(other, ReplicaStore.outbox, None, _MANY)] == ["one"] * is_made
            assert _ask(other, ReplicaStore.waiting).entries == is_made
        assert other.verify().problems == []


def test_a_thread_that_has_nothing_is_named_for_a_while_and_a_change_under_way_stays_named(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with saver_at("cluster", prefix) as slow, saver_at("cluster", prefix) as other:
        config = play(other, "one", 1)
        _recorded(slow)
        named: list[int] = []

        def settle_and_tidy() -> None:
            for grace in (pending.GRACE, 0):
                monkeypatch.setattr(pending, "GRACE", grace)
                _ask(other, ReplicaStore.settle, "one", 2**53)
                assert _ask(other, ReplicaStore.waiting) == Waiting(0, 0)
                named.append(_named(other))

        _between(slow, "add", settle_and_tidy)
        slow.put(config, *step(1))
        assert named == [1, 0]
        assert len(_ask(other, ReplicaStore.outbox, None, _MANY)) == 1


def _named(saver: Saver) -> int:
    def program() -> Program[int]:
        batch = yield from pending._walk(cast("Any", saver._store).settings).next_batch(_MANY)
        return len(batch)

    return saver._driver.run(Transaction(program, writes=False))


@pytest.mark.parametrize("place", PLACES)
def test_a_put_under_a_term_that_is_raised_meanwhile_is_not_acknowledged(prefix: str, place: str) -> None:
    with saver_at(place, prefix) as slow, saver_at(place, prefix) as other:
        config = play(other, "one", 1)
        recording = _recorded(slow, term=1)
        _between(slow, "add", partial(_ask, other, ReplicaStore.set_replica, Replica(2, "{}")))
        with pytest.raises(ThreadmarkError):
            slow.put(config, *step(1))
        (call,) = recording.calls
        assert (call.answer.refused, call.answer.position) == ("term", 0)
        # In a cluster it was made, because the term is elsewhere: then it is to be copied as well.
        is_made = place == "cluster"
        assert len(_ask(other, ReplicaStore.outbox, None, _MANY)) == is_made
        assert len(list(other.list(thread("one")))) == 1 + is_made


@pytest.mark.parametrize("place", PLACES)
def test_a_transaction_under_a_term_that_is_raised_meanwhile_is_not_acknowledged(prefix: str, place: str) -> None:
    with saver_at(place, prefix) as slow, saver_at(place, prefix) as other:
        play(other, "one", 1)
        store: Any = slow._store
        answers: list[int | None] = []

        def program() -> Program[None]:
            if (yield from store.lock("one")) is not None:
                yield from store.drop("one", 0)
            answers.append((yield from store.record("one", b"dropped", 1)))
            if answers[-1] is None:
                raise StaleTermError

        _between(slow, "commit", partial(_ask, other, ReplicaStore.set_replica, Replica(2, "{}")))
        with pytest.raises(StaleTermError):
            slow._driver.run(Transaction(program, writes=True))
        is_made = place == "cluster"
        assert answers[1:] == [None] * (not is_made)
        assert (other.get_tuple(thread("one")) is None) is is_made
        assert len(_ask(other, ReplicaStore.outbox, None, _MANY)) == is_made


def test_a_transaction_that_has_read_the_term_is_run_again_when_it_was_raised(saver: RedisSaver) -> None:
    store: Any = saver._store
    terms: list[int] = []

    def program() -> Program[None]:
        terms.append((yield from store.replica()).term)
        yield from store.lock("one")
        yield from store.set_copied("one", Copied(7, 8))

    _between(saver, "commit", partial(_ask, saver, ReplicaStore.set_replica, Replica(2, "{}")))
    saver._driver.run(Transaction(program, writes=True))
    assert terms == [0, 2]
    assert _ask(saver, ReplicaStore.copied, ["one"]) == {"one": Copied(7, 8)}


def test_a_transaction_sees_the_entries_that_it_adds_and_removes(saver: RedisSaver) -> None:
    store: Any = saver._store
    first = _ask(saver, ReplicaStore.record, "one", b"first", 0)

    def program() -> Program[list[list[Entry]]]:
        seen = []
        yield from store.lock("one")
        second = yield from store.record("one", b"second", 0)
        seen.append((yield from store.outbox("one", _MANY)))
        yield from store.settle("one", first)
        seen.append((yield from store.outbox("one", _MANY)))
        assert (yield from store.positions(["one"])) == {"one": second}
        yield from store.settle("one", 2**53)
        seen.append((yield from store.outbox("one", _MANY)))
        yield from store.record("one", b"third", 0)
        seen.append((yield from store.outbox("one", _MANY)))
        return seen

    bodies = [[entry.body for entry in each] for each in saver._driver.run(Transaction(program, writes=True))]
    assert bodies == [[b"first", b"second"], [b"second"], [], [b"third"]]
    assert [entry.body for entry in _ask(saver, ReplicaStore.outbox, None, _MANY)] == [b"third"]
    assert _ask(saver, ReplicaStore.waiting).entries == 1


@pytest.mark.parametrize("read", ["heads", "find"])
def test_a_position_is_never_ahead_of_rows_that_were_read_before_it(
    saver: RedisSaver, server: RedisProcess, prefix: str, read: str
) -> None:
    _recorded(saver)
    config = play(saver, "one", 1)
    store: Any = saver._store
    attempts: list[Any] = []
    before = _ask(saver, ReplicaStore.positions, ["one"])
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as other:
        _recorded(other)

        def program() -> Program[Any]:
            attempts.append((yield from (store.heads("one", "") if read == "heads" else store.find("one", "", None))))
            if len(attempts) == 1:
                other.put(config, *step(1))
            first = yield from store.positions(["one"])
            return first, (yield from store.positions(["one"]))

        found = saver._driver.run(Transaction(program, writes=False))
    after = _ask(saver, ReplicaStore.positions, ["one"])
    assert after["one"] > before["one"]
    assert (found, len(attempts)) == (((before, after), 1) if read == "heads" else ((after, after), 2))


def test_what_is_to_be_copied_outlives_the_memory_of_a_thread(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    _recorded(saver)
    play(saver, "one", 1)
    saver.delete_thread("one")
    keys, outbox = thread_keys(prefix.encode(), "one"), replica_keys(prefix.encode(), "one").outbox
    assert server.client.pttl(keys.head) == -1
    (*_, last) = _ask(saver, ReplicaStore.outbox, "one", _MANY)
    _ask(saver, ReplicaStore.settle, "one", last.position - 1)
    assert server.client.pttl(keys.head) == -1
    _ask(saver, ReplicaStore.settle, "one", last.position)
    assert 0 < server.client.pttl(keys.head) <= 86_400_000
    assert not server.client.exists(outbox, pending_key(prefix.encode()))
    assert _ask(saver, ReplicaStore.positions, ["one"]) == {"one": last.position}
    _ask(saver, ReplicaStore.record, "one", b"again", 0)
    assert server.client.pttl(keys.head) == -1


def test_what_is_to_be_copied_does_not_expire_with_its_thread(server: RedisProcess, prefix: str) -> None:
    with RedisSaver(server.url, prefix=prefix, ttl=timedelta(hours=1), **OPTIONS) as saver:
        _recorded(saver)
        play(saver, "one", 1)
        keys, outbox = thread_keys(prefix.encode(), "one"), replica_keys(prefix.encode(), "one").outbox
        assert all(server.client.pttl(key) > 0 for key in keys if server.client.exists(key))
        assert server.client.pttl(outbox) == -1
        server.client.delete(*keys)  # as when it expires
        (entry, *_) = _ask(saver, ReplicaStore.outbox, None, _MANY)
        assert _ask(saver, ReplicaStore.record, "one", b"later", 0) > entry.position


@pytest.mark.parametrize("place", ["single", "cluster"])
def test_an_index_that_lacks_threads_is_named_and_made_anew(prefix: str, place: str) -> None:
    with saver_at(place, prefix) as saver, saver_at(place, prefix) as other:
        _recorded(saver)
        for name in ("one", "two"):
            play(saver, name, 2)
        saver.delete_thread("two")
        before = _ask(saver, ReplicaStore.outbox, None, _MANY)
        assert {entry.thread_id for entry in before} == {"one", "two"}
        other._driver.run(running("return redis.call('DEL', KEYS[1])", [pending_key(prefix.encode())]))
        assert [problem.problem.split(":")[0] for problem in other.verify().problems] == [
            "2 threads have changes that are to be copied to another database, and are not listed there",
        ]
        assert other.verify(repair=True).problems == []
        assert _ask(other, ReplicaStore.outbox, None, _MANY) == before
        assert _ask(other, ReplicaStore.waiting) == Waiting(len(before), before[0].position)


def test_a_change_that_is_made_or_settled_while_a_database_is_verified_is_no_damage(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = repair._stored
    with saver_at("cluster", prefix) as saver, saver_at("cluster", prefix) as other:
        configs = {name: play(saver, name, 1) for name in ("one", "two")}
        _recorded(other)
        other.put(configs["two"], *step(1))

        def stored_late(settings: Settings) -> Any:
            other.put(configs["one"], *step(1))
            found = yield from stored(settings)
            _ask(other, ReplicaStore.settle, "two", 2**53)
            return found

        monkeypatch.setattr(repair, "_stored", stored_late)
        assert saver.verify().problems == []


def test_a_transaction_is_run_again_when_others_have_added_something_before_its_commit(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    config = play(saver, "one", 4, 100)
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as other:
        _between(saver, "commit", lambda: other.put(config, *step(4, 100)))
        saver.prune(["one"], keep_last=1)
        assert [found.checkpoint["channel_values"]["count"] for found in other.list(thread("one"))] == [4]
        assert other.verify().problems == []


def test_a_position_is_greater_than_the_last_one_although_the_clock_is_behind(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    _recorded(saver)
    config = play(saver, "one", 1)
    ahead = _ask(saver, ReplicaStore.positions, ["one"])["one"] + 3600 * 1_000_000
    server.client.hset(thread_keys(prefix.encode(), "one").head, "p", str(ahead))
    saver.put(config, *step(1))
    assert _ask(saver, ReplicaStore.positions, ["one"]) == {"one": ahead + 1}


@pytest.mark.parametrize("limit", [1, 7, 40, 1000])
def test_the_first_entries_of_many_threads_come_in_order(saver: RedisSaver, limit: int) -> None:
    names = [f"thread {number % 37}" for number in range(0, 500, 7)]
    recorded = [Entry(name, _ask(saver, ReplicaStore.record, name, b"body", 0), b"body") for name in names]
    recorded.sort(key=lambda entry: (entry.position, entry.thread_id))
    assert _ask(saver, ReplicaStore.outbox, None, limit) == recorded[:limit]


def test_sums_are_exact_where_the_numbers_of_a_script_are_not(saver: RedisSaver) -> None:
    checks = [b"\xff" * 12] * 300 + [b"\xff" * 7, b"\x01\xff", b"\x80" + b"\0" * 6]
    rows = [
        CheckpointRow(Outline("one", "", f"{number:04}", f"{number:04}", None, 5, "{}"), b"header", check, None)
        for number, check in enumerate(checks)
    ]
    change = Change("one", None, 5, {}, rows, [], None, tuple, token=ANYONE)
    _ask(saver, ReplicaStore.add, change)
    (summary,) = _ask(saver, ReplicaStore.summaries, "", 10)
    assert summary.digest == sum_of_marks([check[-7:] for check in checks])
    assert summary[3:6] == (f"{len(checks) - 1:04}", len(checks), 0)


def test_a_damaged_row_is_summed_up_as_another_one_and_stops_nothing(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    config = play(saver, "one", 2)
    saver.put_writes(config, [("__error__", "failed")], "task")
    play(saver, "two", 1)
    before = _ask(saver, ReplicaStore.summaries, "", 10)
    keys = thread_keys(prefix.encode(), "one")
    for key in (keys.checkpoints, keys.writes):
        names: Any = server.client.hkeys(key)
        field = min(name for name in names if not name.startswith(b"\xff"))
        for damaged in (b"", b"\xc1", b"\x00\x05", b"\x96" * 3, b"\x00\x94\x01\x02\x03\x04"):
            server.client.hset(key, field, damaged)
            one, two = _ask(saver, ReplicaStore.summaries, "", 10)
            assert one.digest != before[0].digest
            assert two == before[1]
            assert len(_ask(saver, ReplicaStore.marks, "one").checkpoints) == 2


def test_an_error_of_a_transaction_that_has_seen_half_of_a_deletion_is_not_raised(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    play(saver, "one", 2)
    tries: list[bool] = []

    def program() -> Program[bool]:
        before = yield from saver._store.find("one", "", None)
        if not tries:
            other.delete_thread("one")
        tries.append(before is not None)
        after = yield from saver._store.find("one", "", None)
        if (before is None) != (after is None):
            raise CorruptDataError("the newest checkpoint is missing")
        return after is not None

    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as other:
        assert not saver._driver.run(Transaction(program))
    assert tries == [True, False]
