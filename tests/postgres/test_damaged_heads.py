"""A head that does not know the newest checkpoint, so that adding it once more is not found out by its rank."""

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from postgres.steps import APIS, step, thread
from threadmark import Saver
from threadmark_postgres import PostgresSaver


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("options", [{}, {"combine": False}, {"prepare": False}])
def test_a_checkpoint_that_its_damaged_head_does_not_know_is_replaced(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any], options: dict[str, Any]
) -> None:
    """The call fails then, and has not counted it twice."""
    heads = "SELECT rank, checkpoints FROM threadmark_head"
    second = step(1)

    async def body() -> None:
        with PostgresSaver(url, **options) as saver:
            calls = api(saver)
            first = await calls.aput(thread("one"), *step(0))
            await calls.aput(first, *second)
            before = tables.execute(heads).fetchall()
            tables.execute("UPDATE threadmark_head SET rank = '1'")
            await calls.aput(first, *second)
            assert tables.execute(heads).fetchall() == before
            assert [found.metadata["step"] for found in saver.list(thread("one"))] == [1, 0]

    asyncio.run(body())
