"""Clients of a saver whose disk loses power: each works on separate threads, one operation after the other.

Every operation follows from the seed, so that the same client of a saver in memory shows the state that each
acknowledged operation leaves.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

from postgres.steps import Blocking
from threadmark import Saver
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_store import Store

Api = Callable[[Any], Any]

_SIZES = 10, 200, 3000, 3000, 40_000
_LONG = 3600.0


class Client:
    """Each of its operations is one transaction, and changes something that `state_of` shows."""

    def __init__(self, saver: Saver, seed: int, number: int, api: Api) -> None:
        self._saver, self._api, self._number = saver, api, number
        self._random = Random(f"{seed} {number}")
        *self._names, self._copy = names_of(number)
        self._heads: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {}
        self._stored: dict[str, int] = {}
        self._leases: dict[str, Any] = {}
        self._is_copied = False
        self._step = 0

    async def work(self, operations: int) -> AsyncIterator[None]:
        """Do as many operations, and end the leases. Stops before each operation, and after the last one."""
        for _ in range(operations):
            yield
            await self._operate()
        for name in sorted(self._leases):
            yield
            await self._release(name)
        yield

    async def _operate(self) -> None:
        self._step += 1
        name = self._random.choice(self._names)
        leased, stored = name in self._leases, self._stored.get(name, 0)
        kinds: dict[Callable[[str], Awaitable[None]], int] = {
            self._put: 8,
            self._item: 3,
            self._write: 8 if stored else 0,
            self._describe: 2 if stored else 0,
            self._release: 3 if leased else 0,
            self._lease: 2 if stored and not leased else 0,
            self._block: 0 if leased or self._api is Blocking else 3,
            self._prune: 3 if stored > 2 and not leased else 0,
            self._copying: 1 if stored and not leased else 0,
            self._delete: 1 if stored and not leased else 0,
        }
        (operation,) = self._random.choices(list(kinds), list(kinds.values()))
        await operation(name)

    def _config(self, name: str) -> dict[str, Any]:
        config = at(name, "", self._heads.get(name))
        if name in self._leases:
            config["configurable"]["lease_token"] = self._leases[name].token
        return config

    async def _put(self, name: str, saver: Saver | None = None) -> None:
        values = self._values.setdefault(name, {"log": []})
        text = self._random.randbytes(self._random.choice(_SIZES)).hex()
        changed = {"log": [*values["log"][-20:], self._step], "text": text}
        values.update(changed)
        made = checkpoint(values, dict.fromkeys(values, self._step), checkpoint_id=early_id(self._step))
        versions = dict.fromkeys(changed, self._step)
        calls = self._api(saver or self._saver)
        self._heads[name] = (await calls.aput(self._config(name), made, {"n": self._step}, versions))["configurable"][
            "checkpoint_id"
        ]
        self._stored[name] = self._stored.get(name, 0) + 1

    async def _write(self, name: str, saver: Saver | None = None) -> None:
        writes = [("log", self._step), ("text", "w" * self._random.choice((5, 5000)))]
        await self._api(saver or self._saver).aput_writes(self._config(name), writes, f"task {self._step}")

    async def _item(self, _: str, saver: Saver | None = None) -> None:
        value = {"n": self._step, "text": "i" * 300}
        await self._api(Store(saver or self._saver)).aput((self._copy,), f"{self._random.randint(0, 3)}", value)

    async def _block(self, name: str) -> None:
        """A checkpoint, its writes and an item in one transaction."""
        async with self._saver.transaction() as block:
            await self._put(name, block.saver)
            await self._write(name, block.saver)
            await self._item(name, block.saver)

    async def _describe(self, name: str) -> None:
        await self._api(self._saver).aupdate_thread(name, metadata={"n": self._step})

    async def _lease(self, name: str) -> None:
        lease = self._saver.lease(name, ttl=_LONG, on_busy="reject", holder="client")
        await (asyncio.to_thread(lease.__enter__) if self._api is Blocking else lease.__aenter__())
        self._leases[name] = lease

    async def _release(self, name: str) -> None:
        await self._api(self._leases.pop(name)).arelease()

    async def _prune(self, name: str) -> None:
        await self._api(self._saver).aprune([name], keep_last=2)
        self._stored[name] = 2

    async def _copying(self, name: str) -> None:
        """Copy a thread, or delete the copy."""
        calls = self._api(self._saver)
        await (calls.adelete_thread(self._copy) if self._is_copied else calls.acopy_thread(name, self._copy))
        self._is_copied = not self._is_copied

    async def _delete(self, name: str) -> None:
        await self._api(self._saver).adelete_thread(name)
        for known in (self._heads, self._values, self._stored):
            known.pop(name)


def names_of(number: int) -> list[str]:
    """The threads of a client; the last one is its copy of another one, and the namespace of its items."""
    return [f"{number} first", f"{number} second", f"{number} copy"]


def state_of(saver: Saver, number: int) -> str:
    """Everything that can be read of a client's work."""
    found: list[Any] = []
    for name in names_of(number):
        thread = saver.get_thread(name)
        found.append(thread and (thread.status, thread.metadata))
        found += [
            (each.config["configurable"], each.parent_config, each.checkpoint, each.metadata, each.pending_writes)
            for each in saver.list(at(name))
        ]
    items = Store(saver).search((names_of(number)[-1],), limit=100)
    return repr([*found, sorted((each.key, each.value["n"]) for each in items)])
