"""A message that was deleted is in no row of any table; and the queries of an append."""

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from postgres.proxy import Proxy
from postgres.steps import APIS
from threadmark import Conversations, Saver
from threadmark_postgres import PostgresSaver

TALK = {"thread_id": "talk", "user_id": "ada"}
MARK = "saffron-heliotrope"
_APPEND, _PAGE = 4, 11
"""To append, the thread is locked, the change is judged and then added, and all of it is committed. Whose the thread is
is asked with each part of a page, and the last two of these count the messages, so that none is missing unseen."""
_CHECK = 1
"""A connection that was idle for a while is tried first."""


def _rows_with(tables: psycopg.Connection[Any], mark: str) -> int:
    """How many rows have a text in them, in any column of any table."""
    names = tables.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'threadmark_%'").fetchall()
    found = 0
    for (name,) in names:
        for (row,) in tables.execute(f'SELECT t::text FROM "{name}" AS t'.encode()):
            found += mark in row or mark.encode().hex() in row
    return found


def test_a_message_that_was_removed_is_in_no_row(url: str, tables: psycopg.Connection[Any]) -> None:
    with PostgresSaver(url) as saver:
        talk = Conversations(saver)
        talk.put_messages(TALK, [{"id": "m", "content": f"{MARK}, {MARK}"}, {"id": "s", "content": MARK}])
        talk.put_messages(TALK, [{"id": "kept", "content": "x"}])
        assert _rows_with(tables, MARK) == 2
        talk.put_messages(TALK, [{"id": "m", "content": "another"}])
        assert _rows_with(tables, MARK) == 1
        assert talk.delete_message(TALK, "s") is True
        assert _rows_with(tables, MARK) == 0
        assert [message["id"] for message in talk.get_messages(TALK)] == ["m", "kept"]


@pytest.mark.parametrize("api", APIS)
def test_an_append_and_a_page_take_a_few_round_trips_whatever_the_length(
    proxy: Proxy, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        host, slash, database = url.rpartition("/")
        proxied = f"{host.rpartition(':')[0]}:{proxy.port}{slash}{database}?sslmode=disable"
        async with PostgresSaver(proxied) as saver:
            talk = api(Conversations(saver))  # type: ignore[arg-type]  # it wraps the methods of any object
            counts = []
            for length in (20, 20, 400):  # the first time, statements are prepared
                await talk.aput_messages(TALK, [{"content": "x" * 200} for _ in range(length)])
                before = proxy.round_trips
                await talk.aput_messages(TALK, [{"content": "y" * 200}])
                appended = proxy.round_trips
                await talk.aget_messages(TALK, limit=10)
                counts.append((appended - before, proxy.round_trips - appended))
            assert all(append <= _APPEND + _CHECK and page <= _PAGE + _CHECK for append, page in counts[1:]), counts

    asyncio.run(body())
