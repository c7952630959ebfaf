"""Transactions as exchanges with servers: a program runs step by step, and again if another client was faster."""

import random
from functools import partial
from typing import Any

from threadmark.backends import Pause, Program, Transaction, TransientStoreError
from threadmark_redis.driver.failures import Retries
from threadmark_redis.driver.router import Router
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import Conversation
from threadmark_redis.transactions import ATTEMPTS, ChangedError, in_transaction

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1


def conversation(router: Router, settings: Settings, transaction: Transaction[Any]) -> Conversation:
    """Run a program as a transaction. Returns its result.

    If a thread that it has read was changed before its own changes were made, it is run again after a random pause,
    which grows with each attempt.
    """
    retries = router.retries()
    clustered = settings.servers.layout == "cluster"
    for attempt in range(ATTEMPTS):
        program = partial(in_transaction, transaction.begin, attempt, grace=settings.grace, clustered=clustered)
        try:
            return (yield from _played(program(), router, retries))
        except ChangedError:
            if not retries.left:
                break
        longest = min(_FIRST_PAUSE * 2 ** min(attempt, 10), _LONGEST_PAUSE)
        yield Pause(random.uniform(0, longest))  # noqa: S311 - spreads callers, hides nothing
    raise TransientStoreError(
        f"{settings}: others kept changing the thread while this transaction read it ({attempt + 1} times); try again"
    )


def _played(program: Program[Any], router: Router, retries: Retries) -> Conversation:
    try:
        step = next(program)
        while True:
            step = program.send((yield from router.answer(step, retries)))
    except StopIteration as stop:
        return stop.value
    finally:
        program.close()
