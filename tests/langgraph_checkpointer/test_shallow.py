"""The shallow savers: the newest checkpoints alone, with LangGraph's names and constructors."""

import asyncio
import uuid
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from langgraph_parity.backends import cluster
from threadmark_langgraph import AsyncShallowPostgresSaver, PostgresSaver, ShallowPostgresSaver

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


@pytest.fixture
def schema() -> str:
    """A schema for the tables of one test."""
    name = f"shallow_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(cluster().url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    return name


def test_only_the_newest_checkpoint_stays(schema: str) -> None:
    with ShallowPostgresSaver.from_conn_string(cluster().url, pipeline=True, schema=schema) as saver:
        saver.setup()
        config = THREAD
        for step in range(4):
            config = saver.put(config, {**empty_checkpoint(), "id": f"{step}"}, {"step": step}, {})
            saver.put_writes(config, [("a", step)], "task")
            assert [found.metadata["step"] for found in saver.list(THREAD)] == [step]
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert (found.config, found.parent_config, found.pending_writes) == (config, None, [("task", "a", 3)])
        # A checkpoint that is gone is not there, whatever is in its place.
        assert saver.get_tuple({"configurable": {**THREAD["configurable"], "checkpoint_id": "2"}}) is None
        assert saver.stats().checkpoints == 1


def test_the_same_for_asyncio(schema: str) -> None:
    async def main() -> None:
        async with AsyncShallowPostgresSaver.from_conn_string(cluster().url, schema=schema) as saver:
            await saver.setup()
            config = THREAD
            for step in range(4):
                config = await saver.aput(config, empty_checkpoint(), {"step": step}, {})
            assert [found.metadata["step"] async for found in saver.alist(THREAD)] == [3]

    asyncio.run(main())


def test_another_number_keeps_as_many(schema: str) -> None:
    with ShallowPostgresSaver.from_conn_string(cluster().url, schema=schema, keep_last=3) as saver:
        config = THREAD
        for step in range(6):
            config = saver.put(config, empty_checkpoint(), {"step": step}, {})
        assert [found.metadata["step"] for found in saver.list(THREAD)] == [5, 4, 3]


def test_it_is_the_saver_that_keeps_everything_but_for_that(schema: str) -> None:
    with psycopg.connect(cluster().url) as connection:
        assert isinstance(ShallowPostgresSaver(connection, schema=schema), PostgresSaver)
