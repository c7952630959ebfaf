"""A read-only saver changes nothing in a Postgres database, in either API."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from postgres import next_format
from threadmark import ConfigError, SchemaError, StoreError
from threadmark_conformance.engine import at, checkpoint
from threadmark_postgres import PostgresSaver
from threadmark_postgres.migrations import CURRENT
from threadmark_store import Store


def test_a_read_only_saver_reads_and_stores_nothing(url: str) -> None:
    with PostgresSaver(url) as saver:
        saver.create_thread("one")
    with PostgresSaver(url, read_only=True) as reader:
        assert [thread.id for thread in reader.list_threads().threads] == ["one"]
        assert [thread.id for thread in asyncio.run(reader.alist_threads()).threads] == ["one"]
        assert reader.report().format == CURRENT
        with pytest.raises(StoreError, match="read-only"):
            reader.create_thread("two")
        with pytest.raises(StoreError, match="read-only"):
            asyncio.run(reader.acreate_thread("two"))
        with pytest.raises(StoreError, match="read-only"):
            reader.delete_thread("one")
        assert reader.count_threads() == 1


def test_what_a_read_only_saver_reads_lives_no_longer(url: str) -> None:
    with PostgresSaver(url, ttl=60) as saver:
        saver.put(at("one"), checkpoint({"a": 1}), {}, {"a": 1})
        saver.update_thread("one", expires_at=timedelta(seconds=30))
        Store(saver).put(("users",), "ada", {"n": 1}, ttl=1)
        ends = saver.get_thread("one")
    with PostgresSaver(url, ttl=60, refresh_on_read=True, read_only=True) as reader:
        assert reader.get(at("one")) is not None
        assert asyncio.run(reader.aget(at("one"))) is not None
        assert reader.get_thread("one") == ends
        store = Store(reader)
        assert store.get(("users",), "ada") is not None
        assert [item.key for item in asyncio.run(store.asearch(("users",)))] == ["ada"]


def test_a_read_only_saver_makes_no_tables(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url, read_only=True) as reader:
        assert not reader.has_tables()
        assert reader.report().format is None
        for read in (reader.list_threads, reader.setup, lambda: asyncio.run(reader.alist_threads())):
            with pytest.raises(SchemaError, match="has no tables of Threadmark"):
                read()
    assert tables.execute("SELECT to_regclass('threadmark_migration')").fetchall() == [(None,)]


def test_a_read_only_saver_leaves_an_older_format_as_it_is(
    url: str, tables: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresSaver(url) as saver:
        saver.setup()
    next_format.install(monkeypatch)
    with (
        PostgresSaver(url, read_only=True) as reader,
        pytest.raises(SchemaError, match=f"format {CURRENT}, and this release reads {next_format.NUMBER}"),
    ):
        reader.list_threads()
    assert tables.execute("SELECT max(number) FROM threadmark_migration").fetchall() == [(CURRENT,)]


def test_read_only_is_a_flag(url: str) -> None:
    with pytest.raises(ConfigError, match="read_only"):
        PostgresSaver(url, read_only="no")  # type: ignore[arg-type]  # the mistake
