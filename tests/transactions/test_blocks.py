"""A block of several calls is stored whole or not at all, with the items of a store, on every backend and both APIs."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from patience import wait_until
from threadmark import ClosedError, ConfigError, ConflictError, Keyring, MemorySaver, Saver
from threadmark_langgraph import wrap
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from transactions.databases import APIS, OF_USERS, PLACES, THREAD, Calls, LeftError, checkpoint, opened, run


@pytest.fixture(params=PLACES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    with opened(request.param, tmp_path) as saver:
        yield saver


@pytest.fixture(params=APIS)
def calls(request: pytest.FixtureRequest) -> Calls:
    return Calls(request.param)


def test_a_block_that_ends_well_is_stored(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.block(saver) as tx:
            config = await calls.put(tx.saver, "one")
            await calls(tx.saver, "put_writes", config, [("text", "two"), ("more", 3)], "task")
            assert await calls.text(tx.saver) == "one"
        found = await calls(saver, "get_tuple", THREAD)
        assert found.checkpoint["channel_values"]["text"].rstrip(".") == "one"
        assert sorted(write[1:] for write in found.pending_writes) == [("more", 3), ("text", "two")]
        assert saver.verify().problems == []

    run(case())


def test_nothing_is_left_of_a_block_that_raises(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        config = await calls.put(saver, "before")
        with suppress(LeftError):
            async with calls.block(saver) as tx:
                newer = await calls.put(tx.saver, "inside", config, version=2)
                await calls(tx.saver, "put_writes", newer, [("text", "write " * 999)], "task")
                await calls.put(tx.saver, "elsewhere", {"configurable": {"thread_id": "other", "checkpoint_ns": ""}})
                assert await calls.text(tx.saver) == "inside"
                raise LeftError
        assert await calls.text(saver) == "before"
        assert [thread.id for thread in (await calls(saver, "list_threads")).threads] == ["trip"]
        # A put that shares bytes with the one that was rolled back counts on none of its segments.
        await calls.put(saver, "inside", config, version=2)
        assert await calls.text(saver) == "inside"
        assert saver.verify().problems == []

    run(case())


def test_others_see_nothing_before_the_end(saver: Saver) -> None:
    seen: list[Any] = []
    with saver.transaction() as tx:
        tx.saver.put(THREAD, checkpoint("inside"), {}, {"text": 1})
        reader = threading.Thread(target=lambda: seen.append(saver.get(THREAD)))
        reader.start()
        if not isinstance(saver, MemorySaver) and ":memory:" not in repr(saver):  # their readers wait for the end
            reader.join()
            assert seen == [None]
    reader.join()
    assert len(seen) == 1


@pytest.mark.parametrize("place", OF_USERS)
def test_what_is_read_beside_a_block_lives_no_longer(place: str, tmp_path: Path, calls: Calls) -> None:
    async def case(saver: Saver) -> None:
        store = Store(saver)
        await calls(store, "put", ("users",), "ada", {"n": 1}, ttl=1)
        await calls.put(saver, "before")
        saver.update_thread("trip", expires_at=timedelta(seconds=30))
        async with calls.block(saver) as tx:
            await calls(Store(tx.saver), "put", ("users",), "ada", {"n": 2}, ttl=1)
            assert (await calls(store, "get", ("users",), "ada")).value == {"n": 1}
            assert [item.value for item in await calls(store, "search", ("users",))] == [{"n": 1}]
            assert await calls.text(saver) == "before"
        assert (await calls(store, "get", ("users",), "ada")).value == {"n": 2}

    with opened(place, tmp_path, ttl=60, refresh_on_read=True) as refreshing:
        run(case(refreshing))


def test_a_call_that_is_refused_leaves_the_others_as_they_are(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        first = await calls.put(saver, "first")
        async with calls.block(saver) as tx:
            second = await calls.put(tx.saver, "second", first, version=2)
            late = checkpoint("late", 2)
            with pytest.raises(ConflictError):
                await calls(tx.saver, "put", first, late, {}, {"text": 2}, expect_newest=True)
            await calls.put(tx.saver, "third", second, version=3)
        assert await calls.text(saver) == "third"
        texts = [each.checkpoint["channel_values"]["text"].rstrip(".") for each in saver.list(THREAD)]
        assert texts == ["third", "second", "first"]
        assert saver.verify().problems == []

    run(case())


def test_everything_else_works_inside_a_block(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        config: Any = THREAD
        for version in range(1, 6):
            config = await calls.put(saver, f"text {version}", config, version=version)
        async with calls.block(saver) as tx:
            assert (await calls(tx.saver, "prune", ["trip"], keep_last=2)).checkpoints == 3
            await calls(tx.saver, "copy_thread", "trip", "copy")
            await calls(tx.saver, "update_thread", "copy", title="A copy")
            await calls(tx.saver, "put", config, checkpoint("text 6", 6), {}, {"text": 6})
            assert (await calls(tx.saver, "verify")).problems == []
            await calls(tx.saver, "delete_thread", "copy")
            assert await calls(tx.saver, "get_thread", "copy") is None
        ids = [each.config["configurable"]["checkpoint_id"] for each in saver.list(THREAD)]
        assert ids[1:2] == [config["configurable"]["checkpoint_id"]]
        assert len(ids) == 3
        assert saver.verify().problems == []

    run(case())


def test_two_blocks_of_one_saver_take_turns(saver: Saver) -> None:
    first, entered = threading.Event(), []

    def other() -> None:
        first.wait()
        with saver.transaction() as tx:
            entered.append("other")
            found = tx.saver.get(THREAD)
            tx.saver.put({"configurable": {"thread_id": "b", "checkpoint_ns": ""}}, checkpoint("b"), {}, {"text": 1})
            assert found is None or found["channel_values"]["text"].startswith("one")

    thread = threading.Thread(target=other)
    thread.start()
    with saver.transaction() as tx:
        first.set()
        tx.saver.put(THREAD, checkpoint("one"), {}, {"text": 1})
        entered.append("first")
    thread.join()
    assert sorted(entered) == ["first", "other"]
    assert [each.id for each in saver.list_threads(sort="id").threads] == ["b", "trip"]


def test_many_tasks_may_begin_blocks_at_once(saver: Saver) -> None:
    async def one(number: int) -> None:
        thread: Any = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
        async with saver.transaction() as tx:
            config = await tx.saver.aput(thread, checkpoint(f"text {number}"), {}, {"text": 1})
            await asyncio.sleep(0)
            await tx.saver.aput_writes(config, [("a", number)], "task")

    async def case() -> None:
        await asyncio.gather(*[one(number) for number in range(20)])
        assert await saver.acount_threads() == 20
        assert (await saver.averify()).problems == []

    run(case())


def test_threads_share_the_saver_of_a_block(saver: Saver) -> None:
    with saver.transaction() as tx:
        config = tx.saver.put(THREAD, checkpoint("one"), {}, {"text": 1})

        def write(number: int) -> None:
            tx.saver.put_writes(config, [("a", number)], f"task {number}")

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = saver.get_tuple(THREAD)
    assert found is not None
    assert sorted(value for _, _, value in found.pending_writes or ()) == list(range(8))


def test_a_call_of_the_saver_itself_inside_its_block_is_an_error_and_no_deadlock(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.block(saver) as tx:
            with pytest.raises(ConfigError, match="use the saver of the transaction"):
                await calls.put(saver, "outside")
            if calls.is_blocking:
                with pytest.raises(ConfigError, match="use the saver of the transaction"), saver.transaction():
                    pass
            else:
                with pytest.raises(ConfigError, match="use the saver of the transaction"):
                    await asyncio.to_thread(saver.put, THREAD, checkpoint("outside"), {}, {"text": 1})
            await calls.put(tx.saver, "inside")
        assert await calls.text(saver) == "inside"
        await calls.put(saver, "after")

    run(case())


def test_after_the_end_the_saver_of_a_block_is_closed(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.block(saver) as tx:
            await calls.put(tx.saver, "inside")
            await calls(tx.saver, "close")  # which the block does by itself
        with pytest.raises(ClosedError, match="not open"):
            await calls.put(tx.saver, "late")
        assert await calls.text(saver) == "inside"

    run(case())


def test_a_block_within_a_block_is_refused(saver: Saver) -> None:
    with saver.transaction() as tx:
        with pytest.raises(ConfigError, match=r"transaction\(\) cannot work"):
            tx.saver.transaction()
        with pytest.raises(ConfigError, match=r"lease\(\) cannot work"):
            tx.saver.lease("trip")
        with pytest.raises(ConfigError, match=r"upgrade\(\) cannot work"):
            tx.saver.upgrade()


def test_a_transaction_is_entered_once(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.block(saver) as tx:
            await calls.put(tx.saver, "first")
            with ThreadPoolExecutor(1) as other, pytest.raises(ConfigError, match="entered once"):
                other.submit(tx.__enter__).result()  # on a thread that is not in the block
        assert await calls.text(saver) == "first"
        with pytest.raises(ConfigError, match="entered once"):
            await tx.__aenter__()

    run(case())


def test_views_of_a_saver_have_transactions_too(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.block(saver.for_owner("ada")) as tx:
            await calls.put(tx.saver, "hers")
        assert (await calls(saver, "get_thread", "trip")).owner == "ada"
        assert await calls.text(saver.for_owner("bob")) is None
        async with calls.block(saver) as tx:
            assert await calls.text(tx.saver.for_owner("ada")) == "hers"
            assert await calls.text(tx.saver.for_owner("bob")) is None

    run(case())


@pytest.mark.parametrize("place", PLACES)
def test_sealed_rows_are_part_of_it(place: str, tmp_path: Path, calls: Calls) -> None:
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))

    async def case(saver: Saver) -> None:
        async with calls.block(saver) as tx:
            config = await calls.put(tx.saver, "sealed")
        with suppress(LeftError):
            async with calls.block(saver) as tx:
                await calls.put(tx.saver, "lost", config, version=2)
                raise LeftError
        assert await calls.text(saver) == "sealed"
        await calls.put(saver, "next", config, version=2)
        assert await calls.text(saver) == "next"
        assert saver.verify().problems == []

    with opened(place, tmp_path, keyring=keyring) as saver:
        run(case(saver))


def test_a_task_that_is_cancelled_leaves_nothing(saver: Saver) -> None:
    async def work(begun: asyncio.Event) -> None:
        async with saver.transaction() as tx:
            await tx.saver.aput(THREAD, checkpoint("inside"), {}, {"text": 1})
            begun.set()
            await asyncio.sleep(3600)

    async def case() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(work(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await saver.aget(THREAD) is None
        await saver.aput(THREAD, checkpoint("after"), {}, {"text": 1})

    run(case())


def test_a_checkpointer_has_transactions_under_its_own_name(saver: Saver) -> None:
    checkpointer = wrap(saver)
    config: Any = THREAD
    with checkpointer.transaction() as tx:
        assert type(tx.saver) is type(checkpointer)
        tx.saver.put(config, checkpoint("inside"), {}, {"text": 1})
        with pytest.raises(ConfigError, match="use the saver of the transaction"):
            checkpointer.put(config, checkpoint("outside"), {}, {"text": 1})
    found = checkpointer.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["text"].startswith("inside")


@pytest.mark.parametrize("place", PLACES)
def test_items_of_a_store_are_stored_with_checkpoints_or_not_at_all(place: str, tmp_path: Path) -> None:
    with opened(place, tmp_path) as saver:
        with saver.transaction() as tx:
            tx.saver.put(THREAD, checkpoint("one"), {}, {"text": 1})
            Store(tx.saver).put(("users", "ada"), "hotel", {"name": "Sacher"})
        with suppress(LeftError), saver.transaction() as tx:
            tx.saver.put(THREAD, checkpoint("two"), {}, {"text": 1})
            items = Store(tx.saver)
            items.put(("users", "ada"), "hotel", {"name": "Ritz"})
            assert items.search(("users",))[0].value == {"name": "Ritz"}
            raise LeftError
        found = saver.get(THREAD)
        assert found is not None
        assert found["channel_values"]["text"].startswith("one")
        item = Store(saver).get(("users", "ada"), "hotel")
        assert item is not None
        assert item.value == {"name": "Sacher"}


def test_a_memory_saver_with_a_file_waits_for_a_block_before_it_stores(tmp_path: Path) -> None:
    with MemorySaver(file=tmp_path / "kept") as saver, ThreadPoolExecutor(1) as other:
        with saver.transaction() as tx:
            tx.saver.create_thread("first")
            synced = other.submit(saver.sync)
            with pytest.raises(TimeoutError):
                synced.result(timeout=0.2)
            tx.saver.create_thread("second")
        synced.result()
        assert {thread.id for thread in saver.list_threads().threads} == {"first", "second"}


def test_a_memory_saver_with_a_file_keeps_what_a_block_stored(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with MemorySaver(file=path) as saver:
        with saver.transaction() as tx:
            tx.saver.put(THREAD, checkpoint("one"), {}, {"text": 1})
            for call in (saver.sync, saver.close):
                with pytest.raises(ConfigError, match="use the saver of the transaction"):
                    call()
        saver.sync()
    with MemorySaver(file=path) as saver:
        found = saver.get(THREAD)
        assert found is not None
        assert found["channel_values"]["text"].startswith("one")


def test_writers_of_a_file_wait_for_the_end_of_a_block(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db", timeout=0.05) as hasty:
        saver.setup()
        hasty.setup()
        done: list[str] = []

        def put() -> None:
            saver.put(THREAD, checkpoint("later"), {}, {"text": 1})
            done.append("put")

        thread = threading.Thread(target=put)
        with saver.transaction() as tx:
            thread.start()
            tx.saver.put(THREAD, checkpoint("first"), {}, {"text": 1})
            with pytest.raises(Exception, match=r"locked by another connection for 0\.05 s"):
                hasty.put(THREAD, checkpoint("hasty"), {}, {"text": 1})
            assert not done
        wait_until(lambda: done, "the put never came to its end")
        thread.join()
        texts = [each.checkpoint["channel_values"]["text"].rstrip(".") for each in saver.list(THREAD)]
        assert sorted(texts) == ["first", "later"]
