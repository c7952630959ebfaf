"""read_from="replica": listings come from a standby that is fresh enough, and else from the primary."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from cli.running import in_pipe
from patience import wait_until
from postgres.cluster import Cluster
from postgres.steps import play, step, thread
from threadmark import ConfigError, SchemaError, StoreError, TransientStoreError
from threadmark_postgres import PostgresSaver

Servers = tuple[Cluster, Cluster]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A primary and its standby, which has replayed everything."""
    with Cluster(durable=True) as primary, Cluster(primary=primary) as standby:
        yield primary, standby


def _both(servers: Servers, database: str) -> str:
    primary, standby = servers
    return f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{database}"


@pytest.fixture
def both(servers: Servers, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a new database on both of them, which has the tables."""
    primary, standby = servers
    name = f"of {request.node.name}".translate({ord(c): " " for c in "[]"}).strip().replace(" ", "_")
    primary.execute(f'CREATE DATABASE "{name}"')
    url = _both(servers, name)
    with PostgresSaver(f"{url}?target_session_attrs=read-write") as saver:
        saver.setup()
    _wait_for_standby(servers)
    yield url
    standby.execute("SELECT pg_wal_replay_resume()")


def _wait_for_standby(servers: Servers) -> None:
    primary, standby = servers
    with psycopg.connect(primary.url) as one, psycopg.connect(standby.url, autocommit=True) as other:
        position = one.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        query = "SELECT pg_last_wal_replay_lsn() >= %s"
        wait_until(lambda: other.execute(query, position).fetchone() == (True,), "the standby stands still")


Count = Callable[[PostgresSaver], int]


def _count(saver: PostgresSaver) -> int:
    """How many checkpoints of the thread a listing has, after a count of the threads, of which there is one."""
    assert saver.count_threads() == 1
    return len(list(saver.list(thread("thread"))))


def _acount(saver: PostgresSaver) -> int:
    """Like `_count`, with asyncio."""

    async def counted() -> int:
        assert await saver.acount_threads() == 1
        return len([item async for item in saver.alist(thread("thread"))])

    return asyncio.run(counted())


@pytest.mark.parametrize("count", [_count, _acount])
def test_a_standby_is_read_for_as_long_as_it_may_be_behind(servers: Servers, both: str, count: Count) -> None:
    _, standby = servers
    with (
        PostgresSaver(f"{both}?target_session_attrs=read-write") as writer,
        PostgresSaver(both, read_from="replica", max_staleness=2.0) as reader,
        PostgresSaver(both, read_from="replica", max_staleness=None) as patient,
    ):
        config = play(writer, "thread", 3)
        _wait_for_standby(servers)
        assert count(reader) == 3
        standby.execute("SELECT pg_wal_replay_pause()")
        writer.put(config, *step(3))
        assert count(reader) == 3, "it was read from the primary, though the standby was fresh enough"
        wait_until(lambda: count(reader) == 4, "an old standby is read")
        assert count(patient) == 3
        standby.execute("SELECT pg_wal_replay_resume()")
        _wait_for_standby(servers)
        assert count(patient) == 4
        assert count(reader) == 4


def test_a_standby_that_has_caught_up_is_read_again_and_the_log_tells(
    servers: Servers, both: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, standby = servers
    caplog.set_level(logging.INFO, logger="threadmark.postgres")
    with (
        PostgresSaver(f"{both}?target_session_attrs=read-write") as writer,
        PostgresSaver(both, read_from="replica", max_staleness=0.4) as reader,
    ):
        config = play(writer, "thread", 1)
        standby.execute("SELECT pg_wal_replay_pause()")
        config = writer.put(config, *step(1))
        wait_until(lambda: "reading from the primary" in _told(caplog, reader), "nothing was logged")
        standby.execute("SELECT pg_wal_replay_resume()")
        wait_until(lambda: "has caught up" in _told(caplog, reader), "nothing was logged")


def _told(caplog: pytest.LogCaptureFixture, reader: PostgresSaver) -> str:
    reader.count_threads()
    return caplog.text


def test_what_writes_is_refused(both: str) -> None:
    with PostgresSaver(both, read_from="replica") as reader:
        with pytest.raises(StoreError, match="read-only"):
            reader.create_thread("one")
        with pytest.raises(StoreError, match="read-only"):
            asyncio.run(reader.aput(thread("one"), *step(0)))
        reader.setup()  # there is nothing to be done
        assert reader.count_threads() == 0
        assert "from a replica" in repr(reader)


def test_a_database_without_tables_is_told_apart(servers: Servers) -> None:
    primary, _ = servers
    primary.execute("CREATE DATABASE bare")
    _wait_for_standby(servers)
    with PostgresSaver(_both(servers, "bare"), read_from="replica") as reader:
        assert not reader.has_tables()
        with pytest.raises(SchemaError, match="has no tables"):
            reader.count_threads()


@pytest.mark.parametrize("count", [_count, _acount])
def test_where_no_standby_is_the_primary_is_read(both: str, servers: Servers, count: Count) -> None:
    primary, _ = servers
    with PostgresSaver(f"{both}?target_session_attrs=read-write") as writer:
        play(writer, "thread", 2)
    alone = f"postgresql://postgres@127.0.0.1:{primary.port}/{both.rpartition('/')[2]}"
    with PostgresSaver(alone, read_from="replica") as reader:
        assert count(reader) == 2


def test_a_standby_that_ends_is_left_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadmark_postgres.driver import replica

    monkeypatch.setattr(replica, "_LOOK_AGAIN", 0.1)
    with Cluster(durable=True) as primary, Cluster(primary=primary) as standby:
        url = _both((primary, standby), "postgres")
        with (
            PostgresSaver(f"{url}?target_session_attrs=read-write") as writer,
            PostgresSaver(url, read_from="replica", application_name="a reader") as reader,
        ):
            config = play(writer, "thread", 1)
            _wait_for_standby((primary, standby))
            assert _count(reader) == 1
            standby.stop()
            writer.put(config, *step(1))
            assert _count(reader) == 2
            standby.start()
            wait_until(lambda: _count(reader) == 2 and _sessions(standby, "a reader"), "it is not used again")


def _sessions(server: Cluster, application: str) -> int:
    with psycopg.connect(server.url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        ((number,),) = connection.execute(query, (application,)).fetchall()
        found: int = number
        return found


def test_without_a_primary_only_a_reader_without_a_bound_goes_on() -> None:
    with Cluster(durable=True) as primary, Cluster(primary=primary) as standby:
        url = _both((primary, standby), "postgres")
        with PostgresSaver(f"{url}?target_session_attrs=read-write") as writer:
            play(writer, "thread", 2)
        _wait_for_standby((primary, standby))
        with (
            PostgresSaver(url, read_from="replica", timeout=0.3, max_staleness=0.2) as bounded,
            PostgresSaver(url, read_from="replica", timeout=0.3, max_staleness=None) as patient,
        ):
            assert bounded.count_threads() == patient.count_threads() == 1
            primary.stop()
            assert patient.count_threads() == 1
            with pytest.raises(TransientStoreError, match="could not be used"):
                wait_until(lambda: not bounded.count_threads(), "the bound does not hold")


def test_the_command_takes_the_options(servers: Servers, both: str) -> None:
    _, standby = servers
    with PostgresSaver(f"{both}?target_session_attrs=read-write") as writer:
        play(writer, "before", 1)
        _wait_for_standby(servers)
        standby.execute("SELECT pg_wal_replay_pause()")
        play(writer, "after", 1)
    listed = in_pipe("threads", "-o", "read_from=replica", "-o", "max_staleness=null", both)
    assert "before" in listed.out
    assert "after" not in listed.out


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"read_from": "standby"}, "read_from must be 'primary' or 'replica'"),
        ({"read_from": "replica", "max_staleness": -1}, "max_staleness must be a number of seconds"),
        ({"read_from": "replica", "max_staleness": "10"}, "max_staleness must be a number of seconds"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        PostgresSaver("postgresql://localhost/db", **options)


def test_a_connection_that_was_given_leads_to_one_server(url: str) -> None:
    with psycopg.connect(url) as connection, pytest.raises(ConfigError, match="needs a URL that names the primary"):
        PostgresSaver(connection, read_from="replica")


@pytest.mark.parametrize("count", [_count, _acount])
def test_a_standby_of_a_primary_that_was_replaced_is_not_read_however_far_it_has_come(
    divided: Servers, count: Count
) -> None:
    both = _both(divided, "postgres")
    with PostgresSaver(both, read_from="replica", max_staleness=2.0) as reader:
        assert count(reader) == 4


@pytest.fixture(scope="module")
def divided() -> Iterator[Servers]:
    """A new primary, and a standby that has more of the old one's log than the new one had."""
    with (
        Cluster(durable=True) as first,
        Cluster(primary=first) as promoted,
        Cluster(primary=first) as astray,
        PostgresSaver(promoted.url) as writer,
    ):
        with PostgresSaver(first.url) as saver:
            config = play(saver, "thread", 3)
        for standby in (promoted, astray):
            _wait_for_standby((first, standby))
        promoted.stop()
        for _ in range(2):
            first.execute("SELECT pg_switch_wal()")
            first.execute("SELECT pg_create_restore_point('not in the other one')")
        _wait_for_standby((first, astray))
        first.stop()
        promoted.start()
        promoted.promote()
        writer.put(config, *step(3))
        yield promoted, astray
