"""Transactions of several steps: changes by others in the middle are neither lost nor half seen."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from postgres.steps import count, play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.places import saver_at
from redis_backend.processes import RedisProcess
from threadmark import Saver, ThreadBusyError, TransientStoreError
from threadmark.program import Program, Transaction
from threadmark.store.contract import Head, Scope
from threadmark_redis import RedisSaver, transactions
from threadmark_redis.driver import blocking
from threadmark_redis.driver.failures import Lost
from threadmark_redis.driver.topology import Answered, Exchange, Outcome
from threadmark_redis.keys import thread_keys
from threadmark_redis.locked import Locked


@pytest.fixture
def other(server: RedisProcess, prefix: str) -> Iterator[RedisSaver]:
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as opened:
        yield opened


def _run(saver: Saver, program: Callable[[], Program[Any]], *, writes: bool = True) -> Any:
    return saver._driver.run(Transaction(program, writes=writes))


def test_a_thread_that_was_put_to_meanwhile_is_changed_with_what_is_there_then(
    saver: RedisSaver, other: RedisSaver
) -> None:
    config = play(saver, "one", 3)
    store, attempts = saver._context.store, []

    def program() -> Program[int]:
        yield from store.lock("one")
        page = yield from store.page(Scope("one"), None, 100)
        attempts.append(len(page))
        if len(attempts) == 1:
            other.put(config, *step(3))
        return (yield from store.remove("one", [outline.key for outline in page[1:]], ()))

    _run(saver, program)
    assert attempts == [3, 4]
    assert [found.metadata["step"] for found in other.list(thread("one"))] == [3]


def test_what_is_read_is_of_one_epoch(saver: RedisSaver, other: RedisSaver) -> None:
    play(saver, "one", 3)
    store, attempts = saver._context.store, []

    def program() -> Program[tuple[int, int]]:
        page = yield from store.page(Scope("one"), None, 100)
        attempts.append(len(page))
        if len(attempts) == 1:
            other.prune(["one"])
        return len(page), len((yield from store.rows("one", [outline.key for outline in page])))

    assert _run(saver, program, writes=False) == (1, 1)
    assert attempts == [3, 1]


@pytest.mark.parametrize("order", [("heads", "counted_heads"), ("counted_heads", "heads")])
@pytest.mark.parametrize("thread_id", [None, "one"])
@pytest.mark.parametrize("late", [False, True])
def test_recorded_and_counted_heads_are_of_one_moment(
    saver: RedisSaver, other: RedisSaver, order: tuple[str, str], thread_id: str | None, *, late: bool
) -> None:
    config = play(saver, "one", 3)
    store, attempts = saver._context.store, []

    def program() -> Program[tuple[list[Head], list[Head]]]:
        (yield from transactions.the_work()).is_late = late
        first = yield from getattr(store, order[0])(thread_id, None)
        attempts.append(first)
        if len(attempts) == 1:
            other.put(config, *step(3))
        return first, (yield from getattr(store, order[1])(thread_id, None))

    first, second = _run(saver, program, writes=False)
    assert first == second
    assert len(attempts) == (1 if late or thread_id is None else 2)


def test_an_error_about_half_of_what_somebody_did_is_not_raised(saver: RedisSaver, other: RedisSaver) -> None:
    config = play(saver, "one", 3)
    store, attempts = saver._context.store, []

    def program() -> Program[int]:
        heads = yield from store.heads("one", "")
        attempts.append(heads)
        if len(attempts) == 1:
            other.put(config, *step(3))
        counted = yield from store.counted_heads("one", "")
        if heads != counted:
            raise ThreadBusyError
        return sum(head.checkpoints for head in counted)

    assert _run(saver, program, writes=False) == 4
    assert len(attempts) == 2


def test_a_thread_that_never_stands_still_is_given_up_and_left_alone(saver: RedisSaver, other: RedisSaver) -> None:
    config = play(saver, "one", 1)
    store = saver._context.store

    def program() -> Program[None]:
        yield from store.lock("one")
        other.put_writes(config, [("__error__", "again")], "task")
        yield from store.drop("one", 0)

    with pytest.raises(TransientStoreError, match="kept changing"):
        _run(saver, program)
    assert count(saver, "one") == 0


def test_a_thread_that_was_put_to_while_it_moves_moves_with_what_was_put(saver: RedisSaver, other: RedisSaver) -> None:
    config = play(saver, "one", 3)
    store: Any = saver._context.store
    attempts: list[str] = []
    drop = store.drop

    def drop_late(thread_id: str, now: int) -> Program[None]:
        attempts.append(thread_id)
        if len(attempts) == 1:
            other.put(config, *step(3))
        yield from drop(thread_id, now)

    store.drop = drop_late
    assert saver.rename_thread("one", "moved")
    assert len(attempts) == 2
    assert count(other, "moved") == 3
    assert count(other, "one") is None


def test_many_writers_of_one_thread_lose_nothing(server: RedisProcess, prefix: str) -> None:
    with ExitStack() as stack:
        savers = [stack.enter_context(RedisSaver(server.url, prefix=prefix, **OPTIONS)) for _ in range(4)]
        config = play(savers[0], "one", 3)

        def work(number: int) -> None:
            each = savers[number % len(savers)]
            each.put_writes(config, [("messages", number), ("__error__", number)], f"task {number}")
            if number % 8 == 0:
                each.update_thread("one", metadata={f"key {number}": number})
            if number % 16 == 0:
                each.prune(["one"])

        with ThreadPoolExecutor(len(savers)) as pool:
            list(pool.map(work, range(48)))
        found = savers[1].get_tuple(thread("one"))
        assert found is not None
        written = {value for task, channel, value in found.pending_writes or [] if channel == "__error__"}
        assert written == set(range(48))
        about = savers[2].get_thread("one")
        assert about is not None
        assert about.metadata == {f"key {number}": number for number in range(0, 48, 8)}
        assert savers[3].verify("one", decode=True).problems == []


def test_a_put_that_was_prepared_before_a_removal_is_prepared_again(saver: RedisSaver, other: RedisSaver) -> None:
    config = play(saver, "one", 3, 200)
    other.prune(["one"])
    saver.put(config, *step(3, 200))
    with_all = partial(other.verify, "one", decode=True)
    assert with_all().problems == []
    assert count(other, "one") == 3


def test_what_a_server_has_lost_is_stored_again_and_nothing_builds_on_it(
    server: RedisProcess, prefix: str, saver: RedisSaver, other: RedisSaver
) -> None:
    """A replica that takes over may lack the last changes: all that a thread was a moment ago is still consistent."""
    config = play(saver, "one", 3, 100)
    keys = thread_keys(prefix.encode(), "one")
    earlier = {key: server.client.dump(key) or b"" for key in keys}
    config = saver.put(config, *step(3, 100))
    saver.put_writes(config, [("messages", "a text that is long enough for a segment " * 50)], "task")
    for key, dumped in earlier.items():
        server.client.restore(key, 0, dumped, replace=True)
    saver.put_writes(config, [("messages", "a text that is long enough for a segment " * 51)], "another task")
    config = saver.put(config, *step(4, 100))
    assert count(other, "one") == 4
    assert other.verify("one", decode=True).problems == []
    saver.put(config, *step(5, 100))
    assert other.verify("one", decode=True).problems == []


@pytest.mark.parametrize("thread_id", ["one", None])
def test_a_put_between_what_is_recorded_and_what_is_counted_is_no_damage(
    saver: RedisSaver, other: RedisSaver, thread_id: str | None
) -> None:
    configs = [play(saver, "one", 3)]
    store, counted_heads = saver._context.store, saver._context.store.counted_heads

    def counted_late(*args: Any) -> Program[Any]:
        configs.append(other.put(configs[-1], *step(len(configs) + 2)))
        return (yield from counted_heads(*args))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "counted_heads", counted_late)
        listed = list(saver.list(thread(thread_id) if thread_id else None))
    assert len(configs) > 1
    assert len(listed) >= 3


def test_a_source_that_is_put_to_after_its_target_was_stored_on_a_cluster_is_moved_with_what_was_put(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = transactions._committed
    with saver_at("cluster", prefix) as saver, saver_at("cluster", prefix) as other:
        config = play(saver, "one", 3)
        attempts: list[str] = []

        def committed_late(name: bytes, threads: Sequence[Locked], *args: Any, **kwargs: Any) -> Program[None]:
            attempts.extend(each.thread_id for each in threads)
            if attempts == ["moved", "one"]:
                assert count(other, "moved") == 2
                other.put(config, *step(3))
            yield from committed(name, threads, *args, **kwargs)

        monkeypatch.setattr(transactions, "_committed", committed_late)
        assert saver.rename_thread("one", "moved")
        assert attempts == ["moved", "one"] * 2
        assert count(other, "moved") == 3
        assert count(other, "one") is None
        assert other.verify(decode=True).problems == []


def test_a_thread_that_is_gone_and_began_anew_with_the_same_revision_is_another_one(
    saver: RedisSaver, other: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    saver.put(thread("one"), *step(0))
    store, attempts = saver._context.store, []
    keys = thread_keys(prefix.encode(), "one")
    revision = server.client.hget(keys.head, "r")
    assert revision is not None

    def program() -> Program[None]:
        attempts.append((yield from store.lock("one")))
        if len(attempts) == 1:
            server.client.delete(*keys)  # as when it expires
            other.put(thread("one"), *step(7))
            server.client.hset(keys.head, "r", revision)
        yield from store.drop("one", 0)

    _run(saver, program)
    assert len(set(attempts)) == 2
    assert count(other, "one") is None


def test_a_thread_that_lost_a_change_with_its_server_and_got_another_one_was_changed(
    saver: RedisSaver, server: RedisProcess, prefix: str
) -> None:
    config = play(saver, "one", 3)
    replica = {key: server.client.dump(key) for key in server.client.keys(f"{prefix}*")}
    saver.put(config, *step(3))
    store: Any = saver._context.store
    attempts: list[int] = []
    remove = store.remove

    def remove_late(*args: Any) -> Program[int]:
        epoch: int = yield from remove(*args)
        attempts.append(epoch)
        if len(attempts) == 1:  # a replica takes over that has not got the last put
            server.client.delete(*server.client.keys(f"{prefix}*"))
            for key, value in replica.items():
                server.client.restore(key, 0, value or b"")
            with RedisSaver(server.url, prefix=prefix, **OPTIONS) as other:
                other.put(config, *step(7))
        return epoch

    store.remove = remove_late
    saver.prune(["one"])
    assert len(attempts) == 2
    assert [found.metadata["step"] for found in saver.list(thread("one"))] == [7]
    assert saver.verify(decode=True).problems == []


def test_a_commit_whose_reply_was_lost_is_recognised_behind_those_of_others(
    saver: RedisSaver, other: RedisSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = blocking.Connections.exchange
    lost: list[Any] = []

    def exchange_and_lose(connections: blocking.Connections, asked: Exchange) -> Outcome:
        outcome = exchange(connections, asked)
        is_commit = any(transactions.COMMIT[1:][each] in command for command in asked.commands for each in (0, 1))
        if not lost and is_commit and isinstance(outcome, Answered) and outcome.replies == [1]:
            lost.append(outcome)
            for title in ("second", "third", "fourth"):
                other.update_thread("one", title=title)
            return Lost("the connection broke")
        return outcome

    monkeypatch.setattr(blocking.Connections, "exchange", exchange_and_lose)
    saver.create_thread("one", title="first")
    assert lost
    assert [(found.id, found.title) for found in saver.list_threads().threads] == [("one", "fourth")]
