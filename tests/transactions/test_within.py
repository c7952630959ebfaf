"""Calls in a transaction of the user's own: committed and rolled back with their rows, on SQLite and Postgres."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest

from threadmark import (
    ClosedError,
    ConfigError,
    ConflictError,
    Keyring,
    Saver,
    SchemaError,
    StoreError,
    TransientStoreError,
)
from threadmark_langgraph import wrap
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from transactions.databases import APIS, OF_USERS, THREAD, Calls, LeftError, checkpoint, opened, run, url_of


@pytest.fixture(params=OF_USERS)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    with opened(request.param, tmp_path) as saver:
        yield saver


@pytest.fixture(params=APIS)
def calls(request: pytest.FixtureRequest) -> Calls:
    return Calls(request.param)


def test_a_checkpoint_and_rows_of_yours_are_committed_together(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            config = await calls.put(bound, "one")
            await calls(bound, "put_writes", config, [("text", "two")], "task")
            assert await calls.text(saver) is None
            await mine.commit()
            assert await mine.orders() == [1]
        assert await calls.text(saver) == "one"
        assert saver.verify().problems == []

    run(case())


def test_both_are_rolled_back_together(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        first = await calls.put(saver, "before")
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            second = await calls.put(bound, "inside", first, version=2)
            await calls.put(bound, "inside, too", second, version=3)
            await mine.rollback()
            assert await mine.orders() == []
            await mine.rollback()
            assert await calls.text(saver) == "before"
            # The same saver in the next transaction remembers nothing of the one before.
            await mine.order(2)
            await calls.put(bound, "inside", first, version=2)
            await mine.commit()
            assert await mine.orders() == [2]
        assert await calls.text(saver) == "inside"
        assert saver.verify().problems == []

    run(case())


def test_after_a_savepoint_of_yours_was_undone_nothing_counts_on_it(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            first = await calls.put(bound, "first")
            await mine.execute("SAVEPOINT yours")
            second = await calls.put(bound, "second", first, version=2)
            await mine.execute("ROLLBACK TO SAVEPOINT yours")
            assert await calls.text(bound) == "first"
            await calls.put(bound, "third, which is not unlike the second", second, version=3)
            await mine.commit()
        assert await calls.text(saver) == "third, which is not unlike the second"
        assert saver.verify().problems == []

    run(case())


def test_sealed_threads_begin_again_after_a_rollback(saver: Saver, calls: Calls, tmp_path: Path) -> None:
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    sealed: Saver = (
        PostgresSaver(url_of(saver), keyring=keyring)
        if isinstance(saver, PostgresSaver)
        else SqliteSaver(tmp_path / "threads.db", keyring=keyring)
    )

    async def case() -> None:
        async with calls.connection(saver) as mine:
            bound = sealed.within(mine.connection)
            await mine.order(1)
            await mine.execute("SAVEPOINT yours")
            await calls.put(bound, "first life")
            assert await calls.text(bound) == "first life"
            await mine.execute("ROLLBACK TO SAVEPOINT yours")
            config = await calls.put(bound, "second life")
            await calls(bound, "put_writes", config, [("a", 1)], "task")
            await mine.commit()
        assert await calls.text(sealed) == "second life"
        assert sealed.verify().problems == []

    with sealed:
        run(case())


def test_a_call_that_is_refused_leaves_your_transaction_as_it_was(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        first = await calls.put(saver, "first")
        await calls.put(saver, "second", first, version=2)
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            with pytest.raises(ConflictError):
                await calls(bound, "put", first, checkpoint("late", 2), {}, {"text": 2}, expect_newest=True)
            await mine.order(2)
            await mine.commit()
            assert await mine.orders() == [1, 2]
        assert await calls.text(saver) == "second"

    run(case())


def test_everything_else_works_there(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        config: Any = THREAD
        for version in range(1, 6):
            config = await calls.put(saver, f"text {version}", config, version=version)
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            assert (await calls(bound, "prune", ["trip"], keep_last=2)).checkpoints == 3
            await calls(bound, "copy_thread", "trip", "copy")
            assert await calls(bound, "count_threads") == 2
            assert (await calls(bound, "verify")).problems == []
            await calls(bound, "delete_thread", "trip")
            await mine.commit()
        assert [thread.id for thread in saver.list_threads().threads] == ["copy"]
        assert saver.verify().problems == []

    run(case())


def test_closing_the_bound_saver_leaves_the_connection_open(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.order(1)
            await calls.put(bound, "one")
            await calls(bound, "close")
            with pytest.raises(ClosedError):
                await calls.put(bound, "two")
            await mine.commit()
            assert await mine.orders() == [1]
        assert await calls.text(saver) == "one"

    run(case())


def test_the_connection_keeps_its_settings(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver) as mine:
            connection = mine.connection
            bound = saver.within(connection)
            names = ("row_factory", "text_factory", "isolation_level", "autocommit", "total_changes")
            kept = [name for name in names if hasattr(connection, name) and name != "total_changes"]
            before = [getattr(connection, name) for name in kept]
            await mine.order(1)
            await calls.put(bound, "one")
            assert await calls.text(bound) == "one"
            assert [getattr(connection, name) for name in kept] == before
            await mine.commit()

    run(case())


def test_a_checkpointer_works_there_too(saver: Saver) -> None:
    config: Any = THREAD

    async def case() -> None:
        async with Calls("blocking").connection(saver) as mine:
            checkpointer = wrap(saver).within(mine.connection)
            await mine.order(1)
            checkpointer.put(config, checkpoint("one"), {}, {"text": 1})
            await mine.rollback()
        assert wrap(saver).get_tuple(config) is None

    run(case())


def test_items_of_a_store_belong_to_your_transaction(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        Store(saver).setup()
        connection = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
        for end in ("ROLLBACK", "COMMIT"):
            connection.execute("BEGIN IMMEDIATE")
            items = Store(saver.within(connection))
            items.put(("users",), "ada", {"end": end})
            assert items.get(("users",), "ada") is not None
            connection.execute(end)
            assert (Store(saver).get(("users",), "ada") is not None) == (end == "COMMIT")
        connection.close()


def test_a_connection_without_a_transaction_is_refused(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver, autocommit=True) as mine:
            bound = saver.within(mine.connection)
            with pytest.raises(StoreError, match="has no open transaction"):
                await calls.put(bound, "one")
            with pytest.raises(StoreError, match="has no open transaction"):
                await calls.text(bound)
            await mine.execute("BEGIN ISOLATION LEVEL READ COMMITTED" if isinstance(saver, PostgresSaver) else "BEGIN")
            await calls.put(bound, "one")
            await mine.execute("ROLLBACK")
        assert await calls.text(saver) is None

    run(case())


def test_a_closed_connection_is_an_error(saver: Saver, calls: Calls) -> None:
    async def case() -> None:
        async with calls.connection(saver) as mine:
            bound = saver.within(mine.connection)
            await mine.call("close")
            with pytest.raises((ClosedError, StoreError), match=r"closed|not open|cannot be used"):
                await calls.put(bound, "one")

    run(case())


def test_another_kind_of_connection_is_refused(saver: Saver) -> None:
    for wrong in (None, "connection", object()):
        with pytest.raises(ConfigError, match=r"expected a (psycopg|sqlite3 or aiosqlite) connection"):
            saver.within(wrong)


def test_tables_are_not_made_in_a_transaction_of_yours(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        connection = sqlite3.connect(tmp_path / "threads.db")
        connection.execute("CREATE TABLE orders (number integer)")
        bound = saver.within(connection)
        with pytest.raises(SchemaError, match=r"call setup\(\) of the saver before"):
            bound.put(THREAD, checkpoint("one"), {}, {"text": 1})
        connection.rollback()
        saver.setup()
        with connection:
            bound.put(THREAD, checkpoint("one"), {}, {"text": 1})
        connection.close()
        assert saver.get(THREAD) is not None


# SQLite


def test_a_connection_to_another_file_is_refused_with_both_names(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "ours.db") as saver:
        saver.setup()
        yours = sqlite3.connect(tmp_path / "yours.db")
        yours.execute("CREATE TABLE orders (number integer)")
        with pytest.raises(ConfigError, match=r"yours\.db.*ours\.db"):
            saver.within(yours)
        yours.close()
        memory = sqlite3.connect(":memory:")
        with pytest.raises(ConfigError, match=r"in memory.*ours\.db"):
            saver.within(memory)
        memory.close()
        linked = tmp_path / "link.db"
        linked.symlink_to(tmp_path / "ours.db")
        same = sqlite3.connect(linked)
        saver.within(same).put(THREAD, checkpoint("one"), {}, {"text": 1})
        same.commit()
        same.close()
        assert saver.get(THREAD) is not None


def test_another_file_is_refused_on_an_event_loop(tmp_path: Path) -> None:
    async def case(saver: Saver) -> None:
        async with aiosqlite.connect(tmp_path / "yours.db") as yours:
            await yours.execute("CREATE TABLE orders (number integer)")
            await yours.execute("BEGIN")
            with pytest.raises(ConfigError, match=r"yours\.db.*ours\.db"):
                await saver.within(yours).aput(THREAD, checkpoint("one"), {}, {"text": 1})

    with SqliteSaver(tmp_path / "ours.db") as saver:
        saver.setup()
        run(case(saver))


def test_a_database_in_memory_is_only_on_its_own_connection() -> None:
    connection = sqlite3.connect(":memory:")
    with SqliteSaver(connection) as saver:
        saver.setup()
        other = sqlite3.connect(":memory:")
        with pytest.raises(ConfigError, match="only on its own"):
            saver.within(other)
        other.close()
        saver.within(connection).put(THREAD, checkpoint("one"), {}, {"text": 1})
        connection.rollback()
        assert saver.get(THREAD) is None
        saver.within(connection).put(THREAD, checkpoint("two"), {}, {"text": 1})
        connection.commit()
        assert saver.get(THREAD) is not None
    connection.close()


def test_a_transaction_that_began_to_read_too_early_cannot_write(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        saver.setup()
        connection = sqlite3.connect(tmp_path / "threads.db", isolation_level=None)
        connection.execute("BEGIN")
        bound = saver.within(connection)
        assert bound.get(THREAD) is None
        saver.put(THREAD, checkpoint("other"), {}, {"text": 1})
        with pytest.raises(StoreError, match="begin it with BEGIN IMMEDIATE"):
            bound.put(THREAD, checkpoint("one"), {}, {"text": 1})
        connection.execute("ROLLBACK")
        connection.close()


def test_a_read_only_connection_reads(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        saver.put(THREAD, checkpoint("one"), {}, {"text": 1})
        connection = sqlite3.connect(f"file:{tmp_path / 'threads.db'}?mode=ro", uri=True, isolation_level=None)
        connection.execute("BEGIN")
        bound = saver.within(connection)
        assert bound.get(THREAD) is not None
        with pytest.raises(StoreError, match="read-only"):
            bound.put(THREAD, checkpoint("two"), {}, {"text": 1})
        connection.close()


def test_a_read_only_saver_stores_nothing_in_your_transaction(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        saver.put(THREAD, checkpoint("one"), {}, {"text": 1})
    with SqliteSaver(f"sqlite:///{tmp_path / 'threads.db'}?mode=ro") as reader:
        connection = sqlite3.connect(tmp_path / "threads.db")
        with pytest.raises(StoreError, match="read-only"):
            reader.within(connection).put(THREAD, checkpoint("two"), {}, {"text": 1})
        with pytest.raises(StoreError, match="read-only"), reader.transaction():
            pass
        connection.close()


def test_a_transaction_that_sqlite_rolled_back_is_not_gone_on_with(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        saver.setup()
        connection = sqlite3.connect(tmp_path / "threads.db")
        connection.execute("CREATE TABLE orders (number integer)")
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        bound = saver.within(connection)
        connection.execute("INSERT INTO orders VALUES (1)")
        big = checkpoint("x")
        big["channel_values"]["text"] = "".join(map(str, range(200_000)))
        with pytest.raises(StoreError, match="full"):
            bound.put(THREAD, big, {}, {"text": 1})
        if not connection.in_transaction:
            with pytest.raises(StoreError, match="rolled the whole transaction back"):
                bound.put(THREAD, checkpoint("small"), {}, {"text": 1})
        connection.rollback()
        assert connection.execute("SELECT * FROM orders").fetchall() == []
        connection.close()


def test_a_saver_on_an_aiosqlite_connection_has_blocks(tmp_path: Path) -> None:
    async def case() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection, SqliteSaver(connection) as saver:
            async with saver.transaction() as tx:
                await tx.saver.aput(THREAD, checkpoint("one"), {}, {"text": 1})
                with pytest.raises(ConfigError, match="use the saver of the transaction"):
                    await saver.aget(THREAD)
            assert await Calls("asyncio").text(saver) == "one"
            with suppress(LeftError):
                async with saver.transaction() as tx:
                    await tx.saver.aput(THREAD, checkpoint("two"), {}, {"text": 1})
                    raise LeftError
            assert await Calls("asyncio").text(saver) == "one"

            def on_thread() -> None:
                with saver.transaction() as tx:
                    tx.saver.put(THREAD, checkpoint("three"), {}, {"text": 1})

            await asyncio.to_thread(on_thread)
            assert await Calls("asyncio").text(saver) == "three"
            await connection.execute("BEGIN")
            await saver.within(connection).aput(THREAD, checkpoint("four"), {}, {"text": 1})
            await connection.rollback()
            assert await Calls("asyncio").text(saver) == "three"

    run(case())


# Postgres


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PostgresSaver]:
    with opened("postgres", tmp_path) as saver:
        assert isinstance(saver, PostgresSaver)
        yield saver


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"], ids="postgres {}".format)
def test_a_transaction_that_sees_no_change_of_others_only_reads(postgres: PostgresSaver, level: str) -> None:
    postgres.put(THREAD, checkpoint("one"), {}, {"text": 1})
    with psycopg.connect(url_of(postgres)) as connection:
        connection.isolation_level = psycopg.IsolationLevel[level]
        bound = postgres.within(connection)
        with pytest.raises(StoreError, match="begin it with READ COMMITTED"):
            bound.put(THREAD, checkpoint("two"), {}, {"text": 1})
        found = bound.get(THREAD)
    assert found is not None
    assert found["channel_values"]["text"].startswith("one")


@pytest.mark.parametrize("place", ["postgres"])
def test_a_failed_transaction_and_a_pipeline_are_refused(postgres: PostgresSaver, place: str) -> None:
    assert place in str(postgres).lower()
    with psycopg.connect(url_of(postgres)) as connection:
        bound = postgres.within(connection)
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(StoreError, match="roll it back"):
            bound.get(THREAD)
        connection.rollback()
        with connection.pipeline(), pytest.raises(StoreError, match="in a pipeline"):
            bound.get(THREAD)
        connection.rollback()
        assert bound.get(THREAD) is None


@pytest.mark.parametrize("place", ["postgres"])
def test_the_row_of_another_client_is_seen_by_the_second_attempt(postgres: PostgresSaver, place: str) -> None:
    assert place in str(postgres).lower()
    made = checkpoint("one")
    with psycopg.connect(url_of(postgres)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        bound = postgres.within(connection)
        assert bound.get(THREAD) is None
        postgres.put(THREAD, made, {}, {"text": 1})
        bound.put(THREAD, made, {}, {"text": 1})
    assert len(list(postgres.list(THREAD))) == 1
    assert postgres.verify().problems == []


@pytest.mark.parametrize("place", ["postgres"])
def test_a_saver_on_a_connection_of_yours_has_blocks(postgres: PostgresSaver, place: str) -> None:
    assert place in str(postgres).lower()

    async def case() -> None:
        connection = await psycopg.AsyncConnection.connect(url_of(postgres))
        saver = PostgresSaver(connection)
        async with saver.transaction() as tx:
            await tx.saver.aput(THREAD, checkpoint("one"), {}, {"text": 1})
        with pytest.raises(ConfigError, match="use `async with`"), saver.transaction():
            pass
        assert await Calls("asyncio").text(saver) == "one"
        await connection.close()
        with psycopg.connect(url_of(postgres)) as blocking:
            saver = PostgresSaver(blocking)
            with saver.transaction() as tx:
                tx.saver.put(THREAD, checkpoint("two"), {}, {"text": 1})
            async with saver.transaction() as tx:
                await tx.saver.aput(THREAD, checkpoint("three"), {}, {"text": 1})
        assert len(list(postgres.list(THREAD))) == 3

    run(case())


@pytest.mark.parametrize("api", ["blocking, postgres", "asyncio, postgres"])
def test_a_lost_connection_ends_the_block_and_nothing_of_it_is_tried_again(postgres: PostgresSaver, api: str) -> None:
    calls = Calls(api.partition(",")[0])

    async def lose(*, at_commit: bool) -> None:
        async with calls.block(postgres) as tx:
            await calls.put(tx.saver, "inside")
            _end_sessions(postgres)
            if not at_commit:
                await calls.put(tx.saver, "inside, too")

    async def case() -> None:
        for at_commit in (False, True):
            with pytest.raises(TransientStoreError, match="repeat"):
                await lose(at_commit=at_commit)
            assert await calls.text(postgres) is None
        async with calls.block(postgres) as tx:
            await calls.put(tx.saver, "again")
        assert await calls.text(postgres) == "again"

    run(case())


def _end_sessions(saver: PostgresSaver) -> None:
    """Have the server end every other session of the database."""
    with psycopg.connect(url_of(saver), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
