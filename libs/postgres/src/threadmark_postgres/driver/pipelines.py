"""Pipeline mode for asyncio that a cancelled task can leave at any moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from threadmark.backends import in_spite_of_cancelling


@asynccontextmanager
async def pipeline(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    """A block in which the connection is in pipeline mode.

    psycopg leaves the mode on if a task is cancelled in the middle of entering it. So another task enters it.
    """
    mode = connection.pipeline()
    entering = asyncio.ensure_future(mode.__aenter__())
    try:
        await in_spite_of_cancelling(entering)
        yield
    except BaseException as error:
        if not entering.cancelled() and entering.exception() is None:
            await mode.__aexit__(type(error), error, error.__traceback__)
        raise
    await mode.__aexit__(None, None, None)
