"""`Store`: LangGraph's interface to items, over a Threadmark saver and in its database."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from threadmark.backends import ConfigError, CorruptDataError, Program, now, short_repr
from threadmark.program import Flow, Operation, aplay, arun, play, read, run, write
from threadmark.runtime.refusals import REFUSALS
from threadmark.saver.kit import check_keyring, checked_count
from threadmark_store.backends import checked_saver
from threadmark_store.batches import Answer, Batch, Found, Get, ListNamespaces, Put, Request, Search, key_of
from threadmark_store.calls import Call
from threadmark_store.contract import ItemStore
from threadmark_store.filters import check_filter
from threadmark_store.moving import Move, copy, export, migrate
from threadmark_store.namespaces import joined, labels_of
from threadmark_store.operating import OnItems, existing, rows_of, stats, verify
from threadmark_store.over_saver import OverSaver
from threadmark_store.pairs.items import PairItems
from threadmark_store.resealing import expect_same_keys
from threadmark_store.searching import Searching
from threadmark_store.shapes import MINUTE, Match, StoreMoved, StoreReport, StoreStats, StoreVerifyReport, time_of
from threadmark_store.sweeping import Sweeper
from threadmark_store.tasks import Target, companion_of
from threadmark_store.tasks import answered as answers_in
from threadmark_store.values import named

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

_SWEPT_AT_ONCE = 1000
_SWEEP_INTERVAL = 5
"""Minutes, as in LangGraph's stores."""
_LONGEST_TTL = 1_000_000_000
"""Minutes: so the end is a time, before the year 4000."""


class Store(OverSaver, BaseStore):
    """Keeps items in the database of a saver, and uses its connections, serializer, keyring and owner.

    `saver` is a Threadmark saver, also under LangGraph's name. Values come back with the types that you put. Both APIs
    work on one store, from any thread and any event loop. Closing the store closes the saver only if the store made it.

    `ttl` and `index` are LangGraph's configurations. `index` may have a `model`, the name of the model: without one it
    is that of the embeddings, or their class or function. With `text_search` instead of an `index`, a query finds the
    items that have one of its words in any text of their value, or in one of the fields that you list.

    With `with_tasks`, a put that a task of a graph makes is stored in one transaction with the task's writes. `saver`
    must be the graph's checkpointer, on SQLite, Postgres or memory. docs/how-to/transactions.md has the rules.
    """

    supports_ttl = True

    def __init__(
        self,
        saver: Any,
        *,
        index: IndexConfig | None = None,
        text_search: bool | list[str] = False,
        ttl: TTLConfig | None = None,
        with_tasks: bool = False,
    ) -> None:
        self.saver = checked_saver(saver)
        self._tasks = companion_of(saver) if with_tasks else None
        self.ttl_config = ttl
        self.index_config = index
        self._rows = rows = rows_of(self.saver)
        self._owner, self._values, self._items = rows.owner, rows.values, rows.items
        self._target = Target(self._items, self._batch_of)
        self._searching = Searching(rows, index, text_search)
        self.embeddings = self._searching.index.embeddings if self._searching.index else None
        self._driver = self.saver._driver  # noqa: SLF001 - it works on the saver's database as the saver itself does
        self._is_ready = False
        self._sweeper = Sweeper(self._driver, self._sweep)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer all reads, then make all puts, in one transaction. The results have the order of `ops`."""
        return play(self._batch(tuple(ops)), self._answer)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like `batch`, for asyncio."""
        return await aplay(self._batch(tuple(ops)), self._aanswer)

    def reindex(self) -> int:
        """Compute the vectors or words that items lack, or that are of another model or other fields.

        The fields are those of the item's put, or else the store's. Vectors and words without an item are removed.
        Others may use the store all the time. Returns for how many items something was computed.
        """
        return play(self._reindex(), self._answer)

    async def areindex(self) -> int:
        """Like `reindex`, for asyncio."""
        return await aplay(self._reindex(), self._aanswer)

    def report(self) -> StoreReport:
        """Return how the store searches, and whether it must compute vectors again. `stats` counts items and bytes."""
        return run(self._driver, self._report())

    async def areport(self) -> StoreReport:
        """Like `report`, for asyncio."""
        return await arun(self._driver, self._report())

    def verify(self, *, decode: bool = False, progress: OnItems | None = None) -> StoreVerifyReport:
        """Read all items, with their vectors and words, and report damage and orphans. Creates no tables.

        This compares bytes with the digests that were stored with them, and needs no class of the application. With
        `decode=True` it also decodes every value, and lists in `unreadable` those that this program cannot decode.
        A missing item leaves no trace. `progress` is called with the number of items that are done, and of all.
        """
        return run(self._driver, verify(self._rows, decode=decode, progress=progress))

    async def averify(self, *, decode: bool = False, progress: OnItems | None = None) -> StoreVerifyReport:
        """Like `verify`, for asyncio."""
        return await arun(self._driver, verify(self._rows, decode=decode, progress=progress))

    def stats(self) -> StoreStats:
        """Return how much is stored. Creates no tables."""
        return run(self._driver, stats(self._rows))

    async def astats(self) -> StoreStats:
        """Like `stats`, for asyncio."""
        return await arun(self._driver, stats(self._rows))

    def export(self, target: BaseStore, *, dry_run: bool = False, progress: OnItems | None = None) -> StoreMoved:
        """Copy all items to another store, of Threadmark or of LangGraph.

        Between Threadmark's stores everything is copied exactly, also from one backend to another: values, times, times
        to live, owners, vectors and words. A keyring of the target seals them again. LangGraph's stores keep JSON only,
        so items with other types are listed in `problems`, and no owners; those on SQLite and Postgres get the times.
        An item that the target has in the same or in a later version stays as it is, so you can repeat a stopped move.
        """
        return play(self._export(target, Move(dry_run=dry_run, progress=progress)), self._answer)

    async def aexport(self, target: BaseStore, *, dry_run: bool = False, progress: OnItems | None = None) -> StoreMoved:
        """Like `export`, for asyncio."""
        return await aplay(self._export(target, Move(dry_run=dry_run, progress=progress)), self._aanswer)

    def migrate(self, source: BaseStore, *, dry_run: bool = False, progress: OnItems | None = None) -> StoreMoved:
        """Copy all items from a store of LangGraph's, which stays as it is.

        Of `SqliteStore` and `PostgresStore` the times and times to live come along; other stores do not tell times to
        live. If both stores have an `index`, so do the fields that each put chose, and vectors of the same model;
        others are computed. An item that is here in the same or in a later version stays as it is.
        """
        return play(self._migrate(source, Move(dry_run=dry_run, progress=progress)), self._answer)

    async def amigrate(
        self, source: BaseStore, *, dry_run: bool = False, progress: OnItems | None = None
    ) -> StoreMoved:
        """Like `migrate`, for asyncio."""
        return await aplay(self._migrate(source, Move(dry_run=dry_run, progress=progress)), self._aanswer)

    def sweep_ttl(self) -> int:
        """Remove expired items. Returns how many."""
        return run(self._driver, self._sweep())

    async def asweep_ttl(self) -> int:
        """Like `sweep_ttl`, for asyncio."""
        return await arun(self._driver, self._sweep())

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """Remove expired items again and again on a daemon thread, unless one does so already.

        The interval is that of `ttl`, or 5 minutes. The first sweep comes after it. An error is logged, and the next
        sweep tries again. `stop_ttl_sweeper`, closing the store and cancelling the future end it. The future is done
        when it has ended.
        """
        return self._sweeper.start(self._interval(sweep_interval_minutes))

    async def astart_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "asyncio.Task[None]":
        """Like `start_ttl_sweeper`, as a task of the running event loop."""
        return self._sweeper.astart(self._interval(sweep_interval_minutes))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeper after the transaction that runs. Returns whether it ended within `timeout` seconds."""
        return self._sweeper.stop(timeout)

    async def astop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - LangGraph's parameter
        """Like `stop_ttl_sweeper`, for asyncio."""
        return await self._sweeper.astop(timeout)

    def close(self) -> None:
        """End the sweeper, and close the saver if the store made it."""
        self._sweeper.stop()
        super().close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._sweeper.astop()
        await super().aclose()

    def _answer(self, request: Any) -> Any:
        """Answer a request of a flow."""
        return request.answer() if isinstance(request, Call) else self._driver.run(request)

    async def _aanswer(self, request: Any) -> Any:
        return await (request.aanswer() if isinstance(request, Call) else self._driver.arun(request))

    def _prepared(self) -> Operation[None]:
        if not self._is_ready:
            if not (yield from read(self._items.exists)):
                yield from write(self._items.create)
            yield from self._searching.prepare()
            self._is_ready = True

    def _batch(self, ops: Sequence[Op]) -> Flow[Any, list[Result]]:
        requests: Sequence[Request] = [self._request(op) for op in ops]
        if not self._is_ready:
            yield from self._prepared()
        queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        if queries or self._searching.computing:
            requests = yield from self._searching.completed(ops, requests, queries)
        puts = [request.key for request in requests if isinstance(request, Put)]
        if puts:
            yield from self._expect_same_keys()
            if self._searching.is_to_look():
                yield from read(self._searching.look)
        items: ItemStore = self._items
        batch = self._batch_of(requests)
        if isinstance(items, PairItems):
            issued = now()
            items = items.of_call(issued, puts)
            batch.clock = lambda: issued
        task = self._tasks.current() if self._tasks else None
        if task and task.run.begin(task) and (task.run.kept or puts):
            answered = yield from answers_in(task, self._target, batch)
        else:
            answered = yield from (write if puts else read)(batch.answers, items)
        if answered.refreshed:
            with suppress(*REFUSALS):
                yield from write(self._items.refresh, answered.refreshed, now())
        return [_result(op, answer) for op, answer in zip(ops, answered.answers, strict=True)]

    def _expect_same_keys(self) -> Operation[None]:
        """Look at stored items before the first put, once for each saver. Raises ConfigError for other keys."""
        context = self.saver._context  # noqa: SLF001 - as the saver does before its first put
        check = context.keyring_check
        if not check.of_items:
            yield from check_keyring(context, creates_tables=False)  # checkpoints are sealed before there is an item
            yield from expect_same_keys(self._rows)
            check.of_items = True

    def _batch_of(self, requests: Sequence[Request]) -> Batch:
        """Return the transaction that answers checked requests."""
        omits = bool(self.ttl_config and self.ttl_config.get("omit_expired"))
        searching = self._searching
        return Batch(requests, self._values, self._owner, omits, *searching.tables, remove=searching.remove, clock=now)

    def _interval(self, minutes: float | None) -> float:
        """Return the seconds between two sweeps."""
        asked = minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or _SWEEP_INTERVAL
        if isinstance(asked, bool) or not isinstance(asked, (int, float)) or not asked > 0:
            raise ConfigError(f"sweep_interval_minutes must be a number of minutes above 0, not {short_repr(asked)}")
        return asked * 60

    def _reindex(self) -> Flow[Any, int]:
        yield from self._prepared()
        return (yield from self._searching.reindex(self._items, self._values))

    def _export(self, target: BaseStore, move: Move) -> Flow[Any, StoreMoved]:
        if isinstance(target, Store):
            return copy(self._rows, target._rows, target._driver, move)  # noqa: SLF001 - as in its own methods
        return export(self._rows, target, move)

    def _migrate(self, source: BaseStore, move: Move) -> Flow[Any, StoreMoved]:
        if isinstance(source, Store):
            raise ConfigError("the source is a store of Threadmark: source.export(target) copies its items exactly")
        rows = self._rows
        if move.dry_run:
            there = yield from existing(rows)
        else:
            yield from self._prepared()
            yield from self._expect_same_keys()
            vectors, words = self._searching.tables
            there = rows._replace(vectors=vectors and vectors.store, words=words)
        return (yield from migrate(rows, there, self._searching, self._driver, source, move))

    def _report(self) -> Operation[StoreReport]:
        yield from self._prepared()
        return (yield from self._searching.report())

    def _sweep(self, ends: Callable[[], bool] = lambda: False) -> Operation[int]:
        yield from self._prepared()
        removed, last = 0, _SWEPT_AT_ONCE
        while last == _SWEPT_AT_ONCE and not ends():
            last = yield from write(self._swept, now())
            removed += last
        return removed

    def _swept(self, now: int) -> Program[int]:
        keys = yield from self._items.sweep(now, _SWEPT_AT_ONCE)
        yield from self._searching.remove(keys, None)
        return len(keys)

    def _request(self, op: Op) -> Request:
        """Return the request of an operation. Raises an error for arguments that no backend can answer."""
        validate_op_namespace(op)
        if isinstance(op, GetOp):
            return Get(key_of(op.namespace, _checked_key(op.key)), op.refresh_ttl)
        if isinstance(op, PutOp):
            key = key_of(op.namespace, _checked_key(op.key))
            return Put(key, None if op.value is None else self._values.encoded(key, op.value), _microseconds(op.ttl))
        if isinstance(op, SearchOp):
            check_filter({} if op.filter is None else op.filter)
            _check_query(op.query)
            return Search(joined(op.namespace_prefix), op.filter, *_page(op), op.refresh_ttl)
        if isinstance(op, ListNamespacesOp):
            return ListNamespaces(tuple(_matches(op)), op.max_depth, *_page(op))
        raise ValueError(f"unknown operation {short_repr(op)}: give GetOp, PutOp, SearchOp or ListNamespacesOp")


def _matches(op: ListNamespacesOp) -> Iterator[Match]:
    for condition in op.match_conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise ValueError(f"match_type must be 'prefix' or 'suffix', not {short_repr(condition.match_type)}")
        yield Match(condition.match_type, tuple(condition.path))


def _result(op: Op, answer: Answer) -> Result:
    if isinstance(op, SearchOp):
        return [SearchItem(*_fields(each), each.row.score) for each in answer or () if isinstance(each, Found)]
    if isinstance(answer, Found):
        namespace, key, value, created_at, updated_at = _fields(answer)
        return Item(namespace=namespace, key=key, value=value, created_at=created_at, updated_at=updated_at)
    return answer  # type: ignore[return-value]  # namespaces, or None


def _fields(found: Found) -> tuple[tuple[str, ...], str, dict[str, Any], datetime, datetime]:
    """Return the first arguments of `SearchItem`."""
    row, value = found
    try:
        updated_at = time_of(row.updated_at)
        created_at = updated_at if row.created_at == row.updated_at else time_of(row.created_at)
    except CorruptDataError as error:
        raise error.at(named(row.key)) from error
    return labels_of(row.key.namespace), row.key.key, value, created_at, updated_at


def _microseconds(minutes: Any) -> int | None:
    if minutes is None:
        return None
    if not isinstance(minutes, (int, float)):
        raise TypeError(f"a ttl must be a number of minutes, not {short_repr(minutes)}")
    if not abs(minutes) <= _LONGEST_TTL:
        raise ValueError(f"a ttl has at most {_LONGEST_TTL:,} minutes, not {short_repr(minutes)}: None keeps the item")
    return round(minutes * MINUTE)


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key of an item must be text, not {short_repr(key)}")
    return key


def _page(op: SearchOp | ListNamespacesOp) -> tuple[int, int]:
    return checked_count(op.limit, "limit"), checked_count(op.offset, "offset")


def _check_query(query: object) -> None:
    if query is not None and not isinstance(query, str):
        raise TypeError(f"a query must be text, not {short_repr(query)}")
