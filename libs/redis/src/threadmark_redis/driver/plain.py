"""One server, blocking: a transaction's steps are sent as they come."""

import asyncio
import random
import time
from functools import partial
from typing import Any, TypeVar

import redis

from threadmark.errors import ClosedError, StoreError, TransientStoreError
from threadmark.program import Step, Transaction, play
from threadmark_redis.steps import AllKeys, Commands, Run, RunEach
from threadmark_redis.transactions import ATTEMPTS, ChangedError, in_transaction

T = TypeVar("T")

_LONGEST_PAUSE = 0.05


class PlainDriver:
    """Runs programs on one server, through one client with a pool of connections."""

    def __init__(self, client: Any, *, grace: int) -> None:
        self._client: Any = client
        self._grace = grace
        client.response_callbacks.clear()  # replies as they come

    def __str__(self) -> str:
        return "a Redis server"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        for attempt in range(ATTEMPTS):
            try:
                return play(in_transaction(transaction.program, attempt, grace=self._grace), self._execute)
            except ChangedError:
                time.sleep(random.random() * min(_LONGEST_PAUSE, 0.001 * 2**attempt))  # noqa: S311 - no secret
            except redis.RedisError as error:
                raise StoreError(f"{self}: {error}") from error
        raise TransientStoreError(f"{self}: a thread was changed {ATTEMPTS} times meanwhile; try again")

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        return await asyncio.to_thread(partial(self.run, transaction))

    def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _execute(self, step: Step) -> Any:
        client = self._client
        if client is None:
            raise ClosedError
        if isinstance(step, Run):
            return self._evaluated(client, step.script.sha, step.script.text, [*step.keys], [*step.args])
        if isinstance(step, Commands):
            pipeline = client.pipeline(transaction=False)
            for command in step.commands:
                pipeline.execute_command(*command)
            return list(pipeline.execute())
        if isinstance(step, RunEach):
            script = step.script
            return [self._evaluated(client, script.sha, script.text, [*keys], [*args]) for keys, args in step.calls]
        if isinstance(step, AllKeys):
            return self._all_keys(client, step.pattern)
        raise TypeError(f"the Redis backend has no {type(step).__name__}")

    def _all_keys(self, client: Any, pattern: bytes) -> list[bytes]:
        found: dict[bytes, None] = {}
        cursor = b""
        while cursor != b"0":
            cursor, keys = client.execute_command("SCAN", cursor or b"0", "MATCH", pattern, "COUNT", 1000)
            found.update(dict.fromkeys(keys))
        return list(found)

    def _evaluated(self, client: Any, sha: str, text: str, keys: list[Any], args: list[Any]) -> Any:
        try:
            return client.execute_command("EVALSHA", sha, len(keys), *keys, *args)
        except redis.exceptions.NoScriptError:
            return client.execute_command("EVAL", text, len(keys), *keys, *args)
