"""The operations whose answers are lost: the needs of each, its result, and all that it leaves in the database."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

import threadmark
from postgres.steps import Blocking
from threadmark import Saver
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_store import Store

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LONG = 3600.0


class Place(NamedTuple):
    """A saver whose answers may be lost, and the thread of one attempt."""

    saver: Saver
    api: Callable[[Any], Any]
    name: str

    @property
    def calls(self) -> Any:
        """The saver's methods, awaitable."""
        return self.api(self.saver)

    @property
    def other(self) -> str:
        """The name of a second thread."""
        return f"{self.name} other"

    @property
    def store(self) -> Any:
        """The store's methods, awaitable."""
        return self.api(Store(self.saver))


class Operation(NamedTuple):
    """An operation of a saver."""

    call: Callable[[Place, Any], Awaitable[Any]]
    """Takes the result of `prepare`. Returns the answer to compare."""
    prepare: Callable[[Place], Awaitable[Any]]
    backends: str = "memory sqlite postgres redis"


async def put(place: Place, number: int, **options: Any) -> Any:
    """Put the checkpoint of this number as the next one of the thread."""
    values = {"log": list(range(number + 1)), "text": f"{number} " * 100}
    made = checkpoint(values, dict.fromkeys(values, number + 1), checkpoint_id=early_id(number + 1))
    parent = at(place.name, "", early_id(number) if number else None)
    parent["configurable"] |= options
    metadata = {"n": number, "run_id": f"{place.name} {number}"}
    return await place.calls.aput(parent, made, metadata, dict.fromkeys(values, number + 1))


async def write(place: Place, number: int, task: str) -> Any:
    """Put writes for the checkpoint of this number."""
    writes = [("log", number), ("text", "w" * 100)]
    return await place.calls.aput_writes(at(place.name, "", early_id(number + 1)), writes, task)


async def three(place: Place) -> None:
    """A thread of three checkpoints with writes."""
    for number in range(3):
        await put(place, number)
        await write(place, number, "task")


async def nothing(_: Place) -> None:
    """Nothing is prepared."""


async def _owned(place: Place) -> None:
    for number in range(3):
        await put(place, number, user_id=place.name)


async def _leased(place: Place) -> Any:
    await three(place)
    return await _taken(place)


async def _taken(place: Place, on_busy: Any = "reject") -> Any:
    lease = place.saver.lease(place.name, ttl=_LONG, on_busy=on_busy, holder="client")
    await (asyncio.to_thread(lease.__enter__) if place.api is Blocking else lease.__aenter__())
    return lease


async def _leave(place: Place, lease: Any) -> None:
    """End the block of a lease."""
    if place.api is Blocking:
        await asyncio.to_thread(lease.__exit__, None, None, None)
    else:
        await lease.__aexit__(None, None, None)


def _taking(on_busy: str) -> Callable[[Place, Any], Awaitable[Any]]:
    async def take(place: Place, _: Any) -> Any:
        lease = await _taken(place, on_busy)
        found = dict(lease.config["configurable"])
        written = await put(place, 3, lease_token=found.pop("lease_token"))
        del written["configurable"]["lease_token"]
        await place.api(lease).arenew()
        return found, written, await place.api(lease).arelease(), lease.lost.is_set()

    return take


async def _rolled_back(place: Place, _: Any) -> Any:
    lease = await _taken(place, "rollback")
    found = dict(lease.config["configurable"])
    found.pop("lease_token")
    return found, await place.api(lease).arelease()


async def _interrupted(place: Place) -> Any:
    """A lease that another client holds, whose run has put a checkpoint."""
    lease = await _leased(place)
    await put(place, 3, lease_token=lease.token)
    return lease


async def _begun_by_another(place: Place) -> Any:
    """A lease of another client that has begun the thread."""
    lease = await _taken(place)
    await put(place, 0, lease_token=lease.token)
    return lease


async def _renew(place: Place, lease: Any) -> Any:
    return await place.api(lease).arenew()


async def _release(place: Place, lease: Any) -> Any:
    return await place.api(lease).arelease(), lease.lost.is_set()


async def _block(place: Place, _: Any) -> Any:
    if place.api is Blocking:
        return await asyncio.to_thread(_blocking_block, place)
    async with place.saver.transaction() as block:
        inner = place._replace(saver=block.saver)
        await put(inner, 3)
        await write(inner, 3, "task")
        await Store(block.saver).aput((place.name,), "item", {"n": 1})
    return None


def _blocking_block(place: Place) -> None:
    made = checkpoint({"log": [3]}, {"log": 4}, checkpoint_id=early_id(4))
    with place.saver.transaction() as block:
        config = block.saver.put(at(place.name, "", early_id(3)), made, {"n": 3}, {"log": 4})
        block.saver.put_writes(config, [("log", 3)], "task")
        Store(block.saver).put((place.name,), "item", {"n": 1})


async def _items(place: Place) -> None:
    for key in ("one", "two", "three"):
        await place.store.aput((place.name,), key, {"n": 1, "text": key * 20})


async def _batch(place: Place, _: Any) -> Any:
    from langgraph.store.base import GetOp, PutOp, SearchOp

    namespace = (place.name,)
    operations = [
        GetOp(namespace, "one"),
        PutOp(namespace, "one", {"n": 2}),
        PutOp(namespace, "two", None),
        SearchOp(namespace),
    ]
    one, *others, found = await place.store.abatch(operations)
    return one.value, others, [(item.key, item.value) for item in found]


async def _search(place: Place, _: Any) -> Any:
    return [(item.key, item.value) for item in await place.store.asearch((place.name,), filter={"n": 1})]


def info(thread: Any) -> Any:
    """A thread as it is compared: without its times."""
    return thread and (thread.id, thread.owner, thread.title, thread.metadata, thread.status, thread.checkpoints)


async def _create(place: Place, _: Any) -> Any:
    return info(await place.calls.acreate_thread(place.name, title="A title", metadata={"a": 1}))


async def _update(place: Place, _: Any) -> Any:
    return info(await place.calls.aupdate_thread(place.name, title="A title", metadata={"a": 1}))


async def _retention(place: Place, _: Any) -> Any:
    found = await place.calls.aapply_retention(keep_last=1, owner=place.name)
    return found._replace(seconds=0)


async def _idle(place: Place, _: Any) -> Any:
    await asyncio.sleep(0.002)
    found = await place.calls.aapply_retention(idle_for=timedelta(milliseconds=1), owner=place.name)
    return found._replace(seconds=0)


async def _fork(place: Place, _: Any) -> Any:
    return await place.calls.afork(at(place.name, "", early_id(2)), {"log": ["forked"]})


async def _fork_thread(place: Place, _: Any) -> Any:
    return await place.calls.afork(at(place.name, "", early_id(2)), as_thread=place.other)


async def _state(place: Place, _: Any) -> Any:
    return await place.api(threadmark.States(place.saver)).asave(place.name, {"moves": ["e4"]})


async def _states(place: Place) -> Any:
    return await place.api(threadmark.States(place.saver)).asave(place.name, {"moves": []})


def _conversation(place: Place) -> Any:
    return {"configurable": {"thread_id": place.name}}


async def _messages(place: Place, _: Any = None) -> Any:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    return await place.api(threadmark.Conversations(place.saver)).aput_messages(_conversation(place), messages)


async def _delete_message(place: Place, ids: Any) -> Any:
    return await place.api(threadmark.Conversations(place.saver)).adelete_message(_conversation(place), ids[0])


async def _put_state(place: Place, _: Any) -> Any:
    return await place.api(threadmark.Conversations(place.saver)).aput_state(_conversation(place), {"mood": "good"})


async def _clear_state(place: Place, _: Any) -> Any:
    return await place.api(threadmark.Conversations(place.saver)).aclear_state(_conversation(place))


async def _stated(place: Place) -> Any:
    await _put_state(place, None)


async def _get(place: Place, _: Any) -> Any:
    return await place.calls.aget_tuple(at(place.name))


async def _list(place: Place, _: Any) -> Any:
    if place.api is Blocking:
        return await asyncio.to_thread(lambda: list(place.saver.list(at(place.name))))
    return [each async for each in place.saver.alist(at(place.name))]


async def _verify(place: Place, _: Any) -> Any:
    return await place.calls.averify(place.name)


OPERATIONS: dict[str, Operation] = {
    "put": Operation(lambda place, _: put(place, 3), three),
    "the first put": Operation(lambda place, _: put(place, 0), nothing),
    "put_writes": Operation(lambda place, _: write(place, 2, "another task"), three),
    "delete_thread": Operation(lambda place, _: place.calls.adelete_thread(place.name), three),
    "delete_checkpoint": Operation(
        lambda place, _: place.calls.adelete_checkpoint(at(place.name, "", early_id(3))), three
    ),
    "delete_for_runs": Operation(lambda place, _: place.calls.adelete_for_runs([f"{place.name} 1"]), three),
    "copy_thread": Operation(lambda place, _: place.calls.acopy_thread(place.name, place.other), three),
    "rename_thread": Operation(lambda place, _: place.calls.arename_thread(place.name, place.other), three),
    "prune": Operation(lambda place, _: place.calls.aprune([place.name]), three),
    "prune: delete": Operation(lambda place, _: place.calls.aprune([place.name], strategy="delete"), three),
    "apply_retention": Operation(_retention, _owned),
    "apply_retention: idle": Operation(_idle, _owned),
    "create_thread": Operation(_create, nothing),
    "update_thread": Operation(_update, three),
    "lease": Operation(_taking("reject"), three),
    "lease: wait": Operation(_taking("wait"), three),
    "lease: interrupt": Operation(_rolled_back, _interrupted),
    "lease: rollback": Operation(_rolled_back, _interrupted),
    "lease: rollback to nothing": Operation(_rolled_back, _begun_by_another),
    "renew": Operation(_renew, _leased),
    "release": Operation(_release, _leased),
    "fork": Operation(_fork, three),
    "fork as a thread": Operation(_fork_thread, three),
    "States.save": Operation(_state, _states),
    "put_messages": Operation(_messages, nothing),
    "delete_message": Operation(_delete_message, _messages),
    "put_state": Operation(_put_state, nothing),
    "clear_state": Operation(_clear_state, _stated),
    "a transaction": Operation(_block, three, "sqlite postgres"),
    "Store.put": Operation(lambda place, _: place.store.aput((place.name,), "one", {"n": 2}), _items),
    "Store.delete": Operation(lambda place, _: place.store.adelete((place.name,), "one"), _items),
    "Store.batch": Operation(_batch, _items),
    "Store.search": Operation(_search, _items),
    "get_tuple": Operation(_get, three),
    "list": Operation(_list, three),
    "verify": Operation(_verify, three),
}


def left_by(saver: Saver, place: Place) -> str:
    """All that an operation has left, as another client finds it."""
    found: list[Any] = []
    for name in (place.name, place.other):
        found += [info(saver.get_thread(name)), saver.verify(name)]
        found += [
            (each.config["configurable"], each.parent_config, each.checkpoint, each.metadata, each.pending_writes)
            for each in saver.list(at(name, ""))  # not its messages, which have a random salt
        ]
    conversation = threadmark.Conversations(saver)
    found += [conversation.get_messages(_conversation(place)), conversation.get_state(_conversation(place))]
    found += [(item.key, item.value) for item in Store(saver).search((place.name,))]
    return comparable(found, place)


def clear(saver: Saver, place: Place) -> None:
    """Remove all that an operation has left: some operations look through all threads."""
    saver.prune([place.name, place.other], strategy="delete")
    store = Store(saver)
    for item in store.search((place.name,)):
        store.delete(item.namespace, item.key)


def comparable(found: Any, place: Place) -> str:
    """A text in which the thread has one name, and new ids are numbered."""
    known: dict[str, str] = {}
    text = _ID.sub(lambda match: known.setdefault(match[0], f"id {len(known)}"), repr(found))
    text = re.sub(r"'ts': '[^']*'", "'ts'", text)
    return text.replace(place.name, "thread")
