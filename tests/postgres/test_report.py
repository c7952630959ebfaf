"""The report of a Postgres saver about its server and database."""

import asyncio

import psycopg
import pytest

from postgres.cluster import Cluster
from threadmark.runtime import compiled
from threadmark_postgres import PostgresSaver


@pytest.mark.parametrize("schema", [None, 'it\'s "ours"'])
def test_a_report_says_what_is_known(url: str, schema: str | None) -> None:
    with PostgresSaver(url, schema=schema) as saver:
        assert saver.report().format is None  # and made no tables
        assert not saver.has_tables()
        saver.create_thread("one")
        found = saver.report()
        assert found == asyncio.run(saver.areport())
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT current_database(), current_setting('server_version')").fetchall()
    assert rows == [(found.database, found.server)]
    assert found.format is not None
    assert found.bytes is not None
    assert found.bytes > 0
    assert found.in_recovery is False
    assert found.langgraph_tables == ()
    assert found.implementation == compiled.implementation()


def test_a_report_names_the_tables_of_langgraphs_saver(url: str, tables: psycopg.Connection) -> None:
    tables.execute("CREATE TABLE checkpoint_writes (thread_id text)")
    with PostgresSaver(url) as saver:
        saver.setup()
        assert saver.report().langgraph_tables == ("checkpoint_writes",)


def test_a_report_warns_of_what_may_lose_commits(url: str) -> None:
    with PostgresSaver(f"{url}?options=-csynchronous_commit%3Doff") as saver:
        saver.setup()
        found = saver.report()
    assert [warning for warning in found.warnings if "synchronous_commit" in warning]


def test_a_server_that_keeps_everything_gives_no_warning() -> None:
    with Cluster(durable=True) as server, PostgresSaver(server.database("kept")) as saver:
        saver.setup()
        found = saver.report()
        assert (found.warnings, found.fsync, found.synchronous_commit) == ((), "on", "on")
