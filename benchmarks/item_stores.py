"""The store compared with LangGraph's stores, on SQLite files and on Postgres with fsync.

    python benchmarks/item_stores.py [--smoke] [--items N] [--rounds N] [--only DATABASE] [--postgres URL]

Both sides hold the same items: memories of users, 100 in each namespace, about 400 bytes each. For every operation the
sides take turns at each call, so that other work of the machine hits both alike. The table has the median over the
rounds of a round's median in milliseconds, and the ratio, which is above 1 if ours is quicker. Its first line has the
bytes after the items were put: of the whole file, or of the tables of items with their indexes after VACUUM. All calls
come from a thread, as a server makes them. LangGraph's `$gte` compares numbers as text, so all numbers here have three
digits.
"""

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from servers import postgres
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store

_THEIRS, _OURS = "LangGraph", "Threadmark"
_IN_NAMESPACE = 100
_AT_ONCE = 1000
_TEXT = "the a user likes dislikes lives works in on with tea coffee Paris Oslo trains books long short red blue"
_WORDS = _TEXT.split()

_SIZE = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name"
_TABLES = {_THEIRS: ["store"], _OURS: ["threadmark_store_item"]}


class Side(NamedTuple):
    """One of the stores that are compared."""

    name: str
    store: BaseStore
    size: Callable[[], int]


class Operation(NamedTuple):
    """Something that both sides do: `calls` times in a round."""

    name: str
    calls: int
    arguments: Callable[[random.Random], tuple[Any, ...]]
    """Made before the clock runs."""
    call: Callable[..., Any]


def main() -> None:
    """Print a table for each database."""
    parser = argparse.ArgumentParser(description="Our store beside LangGraph's.")
    parser.add_argument("--smoke", action="store_true", help="few items and rounds: the figures mean nothing")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--postgres", help="the URL of an empty database; by default a server is started")
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    asked = parser.parse_args()
    items, rounds = (500, 1) if asked.smoke else (asked.items, asked.rounds)
    for name, opened in (("SQLite", _on_sqlite()), ("Postgres", _on_postgres(asked.postgres))):
        if asked.only not in (None, name.lower()):
            continue
        with opened as sides, ThreadPoolExecutor(1) as worker:
            worker.submit(_compare, name, sides, items, rounds).result()


@contextmanager
def _on_sqlite() -> Iterator[Sequence[Side]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        paths = {name: Path(folder) / f"{name}.db" for name in (_THEIRS, _OURS)}
        theirs = stack.enter_context(SqliteStore.from_conn_string(str(paths[_THEIRS])))
        theirs.setup()
        ours = stack.enter_context(Store(stack.enter_context(SqliteSaver(paths[_OURS]))))
        ours.setup()
        stores: dict[str, BaseStore] = {_THEIRS: theirs, _OURS: ours}
        yield [Side(name, store, partial(_file_size, paths[name])) for name, store in stores.items()]


@contextmanager
def _on_postgres(url: str | None) -> Iterator[Sequence[Side]]:
    with postgres(url) as at, ExitStack() as stack:
        theirs = stack.enter_context(PostgresStore.from_conn_string(at))
        theirs.setup()
        ours = stack.enter_context(Store(stack.enter_context(PostgresSaver(at))))
        ours.setup()
        stores: dict[str, BaseStore] = {_THEIRS: theirs, _OURS: ours}
        yield [Side(name, store, partial(_tables_size, at, _TABLES[name])) for name, store in stores.items()]


def _compare(database: str, sides: Sequence[Side], items: int, rounds: int) -> None:
    loading = _loaded(sides, items)
    sizes = {side.name: float(side.size()) for side in sides}
    _check_answers([side.store for side in sides], items)
    print(f"\n| {database}, {items:,} items | {_THEIRS} | {_OURS} | ratio |\n|---|---:|---:|---:|")
    print(_line("bytes of an item", {name: size / items for name, size in sizes.items()}, ".0f"))
    print(_line(f"put {_AT_ONCE:,} new items", {name: statistics.median(times) for name, times in loading.items()}))
    for operation in _operations(items):
        # The first round is not counted: caches fill, statements are prepared.
        taken = [_round(operation, sides, random.Random(number)) for number in range(rounds + 1)][1:]
        times = {side.name: [each[side.name] for each in taken] for side in sides}
        print(_line(operation.name, {name: statistics.median(each) for name, each in times.items()}), flush=True)


def _operations(items: int) -> Iterator[Operation]:
    def place(chance: random.Random) -> tuple[tuple[str, ...], str]:
        number = chance.randrange(items)
        return _namespace(number), _key(number)

    fresh = random.Random("fresh")
    yield Operation("put a new item", 200, lambda some: (place(some)[0], fresh.randbytes(16).hex(), _value(some)), _put)
    yield Operation("put an item again", 200, lambda some: (*place(some), _value(some)), _put)
    yield Operation("get an item", 1000, place, _get)
    for what, filter_ in (("", None), (", one value", {"kind": "kind 3"}), (", a range", {"score": {"$gte": 700}})):
        search = partial(_search, filter_)
        yield Operation(f"search a namespace{what}", 200, lambda some: (place(some)[0],), search)
        yield Operation(f"search below a namespace{what}", 20, lambda some: (place(some)[0][:2],), search)
        yield Operation(f"search all items{what}", 5, lambda _: ((),), search)


def _put(store: BaseStore, namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
    store.put(namespace, key, value)


def _get(store: BaseStore, namespace: tuple[str, ...], key: str) -> Any:
    return store.get(namespace, key)


def _search(filter_: dict[str, Any] | None, store: BaseStore, prefix: tuple[str, ...]) -> Any:
    return store.search(prefix, filter=filter_)


def _namespace(number: int) -> tuple[str, ...]:
    return "users", f"org {number // 10_000}", f"user {number // _IN_NAMESPACE}", "memories"


def _key(number: int) -> str:
    return random.Random(number).randbytes(16).hex()


def _value(chance: random.Random) -> dict[str, Any]:
    return {
        "text": " ".join(chance.choices(_WORDS, k=40)),
        "kind": f"kind {chance.randrange(10)}",
        "score": chance.randrange(100, 1000),
        "source": {"thread": chance.randbytes(16).hex(), "step": chance.randrange(100)},
        "tags": chance.choices(_WORDS, k=3),
    }


def _loaded(sides: Sequence[Side], items: int) -> dict[str, list[float]]:
    """Put all items, in an order that is not that of their keys. Returns the milliseconds of each batch."""
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    chance = random.Random(1)
    numbers = list(range(items))
    chance.shuffle(numbers)
    for begin in range(0, items, _AT_ONCE):
        batch = [PutOp(_namespace(each), _key(each), _value(chance)) for each in numbers[begin : begin + _AT_ONCE]]
        for side in sides if begin // _AT_ONCE % 2 else sides[::-1]:
            begun = time.perf_counter()
            side.store.batch(batch)
            times[side.name].append((time.perf_counter() - begun) * 1e3)
    return times


def _check_answers(stores: Sequence[BaseStore], items: int) -> None:
    """Stop if the sides answer differently."""
    number = items // 2
    for filter_ in (None, {"kind": "kind 3"}, {"score": {"$gte": 700}}):
        answers = [store.search(_namespace(number), filter=filter_, limit=_IN_NAMESPACE) for store in stores]
        theirs, ours = ({item.key: item.value for item in answer} for answer in answers)
        if theirs != ours or not ours:
            raise SystemExit(f"the stores answer a search with {filter_} differently")


def _round(operation: Operation, sides: Sequence[Side], chance: random.Random) -> dict[str, float]:
    """Return the median of the milliseconds of a call for each side. They take turns at every call."""
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(operation.calls):
        arguments = operation.arguments(chance)
        for side in sides if number % 2 else sides[::-1]:
            begun = time.perf_counter()
            operation.call(side.store, *arguments)
            times[side.name].append((time.perf_counter() - begun) * 1e3)
    return {name: statistics.median(each) for name, each in times.items()}


def _line(name: str, figures: dict[str, float], form: str = ".3f") -> str:
    theirs, ours = figures[_THEIRS], figures[_OURS]
    return f"| {name} | {theirs:{form}} | {ours:{form}} | {theirs / ours:.2f} |"


def _file_size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((bytes_each,),) = connection.execute("PRAGMA page_size")
    return int(pages * bytes_each)


def _tables_size(url: str, tables: list[str]) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        ((size,),) = connection.execute(_SIZE, [tables]).fetchall()
    return int(size)


if __name__ == "__main__":
    main()
