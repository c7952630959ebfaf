"""How often a saver asks its server: counted on the wire, not assumed."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from postgres.proxy import Proxy
from postgres.steps import APIS, aplay, play, step, thread
from threadmark import Checkpoint, Saver
from threadmark.program import Transaction
from threadmark.store.threads import SortKey, ThreadScope
from threadmark_postgres import PostgresSaver


def through(proxy: Proxy, url: str, more: str = "", **options: Any) -> PostgresSaver:
    host, slash, database = url.rpartition("/")
    return PostgresSaver(f"{host.rpartition(':')[0]}:{proxy.port}{slash}{database}?sslmode=disable{more}", **options)


AS_MOST_SERVERS = "&options=-c%20default_transaction_isolation%3Dread%5C%20committed"
"""With another isolation level, a deletion and a put that expects the newest checkpoint ask once more."""


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("prepare", [True, False])
def test_a_step_of_a_run_takes_one_round_trip_for_each_call(
    proxy: Proxy, url: str, api: Callable[[Saver], Any], *, prepare: bool
) -> None:
    async def body() -> None:
        async with through(proxy, url, prepare=prepare) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 12, 100)
            before = proxy.round_trips
            config = await calls.aput(config, *step(12, 100))
            assert proxy.round_trips - before == 1
            await calls.aput_writes(config, [("messages", "a write " * 1000), ("count", 1)], "task")
            assert proxy.round_trips - before == 2
            newest = await calls.aget_tuple(thread("one"))
            assert proxy.round_trips - before == 3
            assert newest.checkpoint["channel_values"]["count"] == 12

    asyncio.run(body())


def test_what_is_remembered_of_the_newest_checkpoint_does_not_come_again(url: str) -> None:
    with PostgresSaver(url) as saver, PostgresSaver(url) as other, PostgresSaver(url, cache_bytes=0) as cold:
        for _ in range(2):
            config = play(saver, "one", 3, 100)
            saver.put_writes(config, [("messages", "another text " * 1000)], "task")
            everything, of_writes = _fetched(cold), _fetched(saver)
            assert of_writes < everything == _fetched(other)
            assert of_writes
            assert other.get_tuple(thread("one")) == cold.get_tuple(thread("one"))
            assert _fetched(other) == of_writes
            saver.delete_thread("one")


def _fetched(saver: PostgresSaver) -> set[bytes]:
    """The segments that a get of the newest checkpoint brings along."""
    context = saver._context
    find = partial(context.store.find, "one", "", None, partial(context.encoding_cache.newest_held, "one", ""))
    found = saver._driver.run(Transaction(find, writes=False))
    assert found is not None
    return set(found.segments)


@pytest.mark.parametrize("api", APIS)
def test_a_new_thread_starts_with_one_round_trip(proxy: Proxy, url: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with through(proxy, url) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("unknown"))
            before = proxy.round_trips
            await calls.aput(thread("new"), *step(3))
            assert proxy.round_trips - before == 1

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_the_newest_checkpoint_takes_one_round_trip_when_nothing_is_remembered(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with PostgresSaver(url) as other:
            await aplay(other, "one", 12, 100)
            expected = await other.aget_tuple(thread("one"))
        async with through(proxy, url) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("unknown"))
            before = proxy.round_trips
            found = await calls.aget_tuple(thread("one"))
            assert proxy.round_trips - before == 1
            assert found == expected
            assert found.pending_writes

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_deletion_takes_two_round_trips(proxy: Proxy, url: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with through(proxy, url, AS_MOST_SERVERS) as saver:
            calls = api(saver)
            await aplay(calls, "one", 12, 100)
            before = proxy.round_trips
            await calls.adelete_thread("one")
            assert proxy.round_trips - before <= 2
            assert await calls.aget_tuple(thread("one")) is None

    asyncio.run(body())


def test_an_older_checkpoint_takes_three_round_trips(proxy: Proxy, url: str) -> None:
    with PostgresSaver(url) as other:
        config = thread("one")
        configs = [config := other.put(config, *step(number, 100)) for number in range(12)]
    with through(proxy, url) as saver:
        saver.get_tuple(thread("unknown"))
        before = proxy.round_trips
        found = saver.get_tuple(configs[5])
        assert proxy.round_trips - before <= 3
        assert found
        assert found.checkpoint["channel_values"]["count"] == 5


def test_a_short_listing_takes_four_round_trips(proxy: Proxy, url: str) -> None:
    """The page with its rows, the head, the writes, and the end of the transaction."""
    with through(proxy, url) as saver:
        play(saver, "one", 12)
        before = proxy.round_trips
        found = list(saver.list(thread("one"), limit=10))
        assert proxy.round_trips - before == 4
    assert [each.metadata["step"] for each in found] == list(range(11, 1, -1))
    assert all(each.pending_writes for each in found)


@pytest.mark.parametrize(("others", "trips_of_cold"), [(0, 4), (80, 5)])
@pytest.mark.parametrize("api", APIS)
def test_the_history_of_a_delta_channel_takes_five_round_trips_however_long_it_is(
    proxy: Proxy, url: str, api: Callable[[Saver], Any], others: int, trips_of_cold: int
) -> None:
    """Four if the headers stand in their rows, being short, or are remembered."""
    versions_of_others = {f"channel {number}": 1 for number in range(others)}

    async def body() -> None:
        async with through(proxy, url) as warm, through(proxy, url) as cold:
            config = await aplay(warm, "one", 1, 100)
            for number in range(1, 30):
                checkpoint, metadata, versions = step(number, 100)
                del checkpoint["channel_values"]["messages"], versions["messages"]
                checkpoint["channel_versions"] |= versions_of_others
                config = await api(warm).aput(config, checkpoint, metadata, versions)
                await warm.aput_writes(config, [("deltas", f"written {number} " * 200)], f"task-{number}")
            for saver, trips in ((warm, 4), (cold, trips_of_cold)):
                calls = api(saver)
                await calls.aget_tuple(thread("unknown"))
                before = proxy.round_trips
                history = await calls.aget_delta_channel_history(config=config, channels=["deltas"])
                assert len(history["deltas"]["writes"]) == 28
                assert proxy.round_trips - before == trips

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_pruned_thread_and_its_copy_are_read_in_one_round_trip(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with PostgresSaver(url) as other:
            await aplay(other, "one", 12, 100)
            await other.aprune(["one"])
            await other.acopy_thread("one", "copy")
            expected = await other.aget_tuple(thread("one"))
            assert expected is not None
        async with through(proxy, url) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("unknown"))
            for name in ("one", "copy"):
                before = proxy.round_trips
                found = await calls.aget_tuple(thread(name))
                assert proxy.round_trips - before == 1
                assert found.checkpoint == expected.checkpoint

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_prune_takes_few_round_trips_however_many_checkpoints_lose_their_parent(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        # Preparing a statement, at its fifth use, takes a separate round trip.
        async with through(proxy, url, prepare=False) as saver:
            calls = api(saver)
            for number in (2, 20, 200):
                root = await saver.aput(thread(f"{number}"), *step(0))
                for _ in range(number):
                    await saver.aput(root, *step(1))
                before = proxy.round_trips
                removed = await calls.aprune([f"{number}"], keep_last=number)
                assert proxy.round_trips - before <= 14
                assert removed.checkpoints == 1

    asyncio.run(body())


@pytest.mark.parametrize("sort", get_args(SortKey))
def test_a_page_of_threads_and_what_is_counted_of_them_take_one_round_trip_each(
    proxy: Proxy, url: str, sort: SortKey
) -> None:
    with through(proxy, url) as saver:
        names = [f"thread {number:02}" for number in range(25)]
        for name in names:
            play(saver, name, 1)
        store, driver = saver._context.store, saver._driver
        scope = ThreadScope(sort=sort)
        before = proxy.round_trips
        page = driver.run(Transaction(lambda: store.thread_page(scope, None, 0, 20), writes=False))
        assert proxy.round_trips - before == 1
        assert [outline.row.thread_id for outline in page] == names[:-21:-1]
        counts = driver.run(Transaction(lambda: store.thread_counts(names), writes=False))
        assert proxy.round_trips - before == 2
        assert sorted(each.checkpoints for each in counts) == [1] * 25
        assert driver.run(Transaction(lambda: store.count_threads(scope), writes=False)) == 25
        assert proxy.round_trips - before == 3


def chat(number: int) -> tuple[Checkpoint, dict[str, Any], dict[str, int]]:
    """A step with twenty messages, and a text that no compression makes shorter."""
    checkpoint, metadata, versions = step(number, 20)
    checkpoint["channel_values"]["blob"] = random.Random(number).randbytes(300_000)
    checkpoint["channel_versions"]["blob"] = versions["blob"] = number + 1
    return checkpoint, metadata, versions


@pytest.mark.parametrize("api", APIS)
def test_a_part_takes_three_round_trips_and_no_bytes_of_other_channels(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with PostgresSaver(url) as other:
            config = other.put(thread("one"), *chat(12))
            other.put_writes(config, [("blob", random.Random(1).randbytes(100_000))], "task")
        async with through(proxy, url, prepare=False, cache_bytes=0) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("unknown"))
            for name, most in (("one", 3), (config, 4)):  # the newest comes with the segments of its header
                trips, answered = proxy.round_trips, proxy.bytes_answered
                assert await calls.aextract(name, "messages[-1]") == "message 239 of this thread"
                assert proxy.round_trips - trips <= most
                assert proxy.bytes_answered - answered < 20_000
                page = await calls.aextract_items(name, limit=2)
                assert (len(page.messages), page.before, page.total) == (2, 238, 240)
                assert proxy.bytes_answered - answered < 40_000

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_page_of_threads_with_their_last_messages_takes_five_round_trips_however_many_there_are(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with PostgresSaver(url) as other:
            for number in range(12):
                other.put(thread(f"thread {number:02}"), *chat(number + 1))
        async with through(proxy, url, prepare=False) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("unknown"))
            for limit in (1, 12):
                before, answered = proxy.round_trips, proxy.bytes_answered
                page = await calls.alist_threads(sort="-id", limit=limit, extract={"last": "messages[-1]"})
                assert proxy.round_trips - before <= 5
                assert proxy.bytes_answered - answered < limit * 6_000 + 4_000
                expected = [f"message {20 * number - 1} of this thread" for number in range(12, 12 - limit, -1)]
                assert [info.extracted["last"] for info in page.threads] == expected

    asyncio.run(body())


def test_a_thread_that_lost_its_newest_checkpoint_is_still_read(url: str) -> None:
    with PostgresSaver(url) as saver:
        config = thread("one")
        for number in range(4):
            config = saver.put(config, *step(number, 100))
        saver.delete_for_runs(["run-3"])
        found = saver.get_tuple(thread("one"))
        assert found
        assert found.checkpoint["channel_values"]["count"] == 2
    with PostgresSaver(url) as cold:
        assert cold.get_tuple(thread("one")) == found
