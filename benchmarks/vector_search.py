"""Search by vectors on Postgres with pgvector, compared with LangGraph's store.

    python benchmarks/vector_search.py [--smoke] [--items N] [--dims N] [--rounds N] [--postgres URL]

Both sides hold the same memories of users, 100 in each namespace, each with one vector. A text's vector is the sum of
vectors of its words, made by chance. LangGraph's store looks in an approximate index (HNSW), which is its default, and
Threadmark's compares all vectors of the namespaces. The sides take turns at each call. The table has medians in
milliseconds and the ratio, which is above 1 if ours is quicker; `found` is the share of the ten nearest items that a
search returns.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import psycopg
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.postgres import PostgresStore

from servers import postgres
from threadmark_postgres import PostgresSaver
from threadmark_store import Store

_SIDES = ("LangGraph", "Threadmark")
_TABLES = (["store", "store_vectors"], ["threadmark_store_item", "threadmark_store_vector"])
_SIZE = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name"
_INDEX = "CREATE INDEX ON threadmark_store_vector USING hnsw ((embedding::vector({})) vector_ip_ops)"
_IN_NAMESPACE, _IN_ORGANIZATION, _AT_ONCE, _NEAREST = 100, 10_000, 500, 10
_WORDS = [f"word {number}" for number in range(2000)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Search by vectors beside LangGraph's store.")
    parser.add_argument("--smoke", action="store_true", help="few items and rounds: the figures mean nothing")
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--approximate", action="store_true", help="with an index of ours, as docs/how-to/store.md has it"
    )
    parser.add_argument("--postgres", help="the URL of an empty database with pgvector; by default a server is started")
    asked = parser.parse_args()
    if asked.smoke:
        asked.items, asked.dims, asked.rounds = 1000, 16, 4
    words = dict(zip(_WORDS, np.random.default_rng(1).normal(size=(len(_WORDS), asked.dims)), strict=True))

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [sum(words[word] for word in text.split(", ")).tolist() for text in texts]

    with _stores(asked.postgres, {"dims": asked.dims, "embed": embed, "fields": ["text"]}) as (url, stores):
        print(
            f"\n| {asked.items:,} items, {asked.dims} dimensions | {' | '.join(_SIDES)} | ratio |\n|---|---:|---:|---:|"
        )
        texts = _texts(asked.items)
        _line(f"put {_AT_ONCE} items", _loaded(stores, texts))
        with psycopg.connect(url, autocommit=True) as connection:
            if asked.approximate:
                connection.execute(_INDEX.format(asked.dims).encode())
                connection.execute("ALTER DATABASE postgres SET hnsw.iterative_scan = strict_order")
            connection.execute("VACUUM (ANALYZE)")
            sizes = [float(connection.execute(_SIZE, [tables]).fetchone()[0]) for tables in _TABLES]  # type: ignore[index]  # there is a row
        _line("bytes of an item", [size / asked.items for size in sizes], ".0f")
        vectors = np.array([vector / np.linalg.norm(vector) for vector in map(np.array, embed(texts))])

        def nearest(prefix: tuple[str, ...], query: str) -> set[str]:
            """Return the keys that a search should find."""
            scores = vectors @ np.array(embed([query])[0])
            places = [place for place in range(asked.items) if _namespace(place)[: len(prefix)] == prefix]
            return set(map(str, sorted(places, key=scores.__getitem__)[-_NEAREST:]))

        for name, labels in (("in a namespace", 4), ("below a namespace", 2), ("in all items", 0)):
            _compare(name, stores, partial(_place, labels, asked.items), nearest, asked.rounds)


@contextmanager
def _stores(url: str | None, index: Any) -> Iterator[tuple[str, Sequence[BaseStore]]]:
    with postgres(url, pgvector=True) as at, ExitStack() as stack:
        theirs = stack.enter_context(PostgresStore.from_conn_string(at, index=index))
        theirs.setup()
        ours = Store(stack.enter_context(PostgresSaver(at)), index=index)
        ours.setup()
        if ours.report().vectors != "pgvector":
            raise SystemExit(f"the database at {at} has no pgvector: CREATE EXTENSION vector")
        yield at, (theirs, ours)


def _texts(items: int) -> list[str]:
    chance = random.Random(1)
    return [", ".join(chance.choices(_WORDS, k=12)) for _ in range(items)]


def _loaded(stores: Sequence[BaseStore], texts: Sequence[str]) -> list[float]:
    times: list[list[float]] = [[], []]
    for begin in range(0, len(texts), _AT_ONCE):
        places = range(begin, min(begin + _AT_ONCE, len(texts)))
        batch = [PutOp(_namespace(place), str(place), {"text": texts[place]}) for place in places]
        for store, taken in zip(stores, times, strict=True):
            begun = time.perf_counter()
            store.batch(batch)
            taken.append((time.perf_counter() - begun) * 1e3)
    return [statistics.median(taken) for taken in times]


def _compare(
    name: str,
    stores: Sequence[BaseStore],
    place: Callable[[random.Random], tuple[str, ...]],
    nearest: Callable[[tuple[str, ...], str], set[str]],
    rounds: int,
) -> None:
    """Print the times, and the share of the nearest items that each side finds. The first round does not count."""
    chance = random.Random(2)
    times: list[list[float]] = [[], []]
    found: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        prefix, query = place(chance), ", ".join(chance.choices(_WORDS, k=3))
        expected = nearest(prefix, query)
        for store, taken, shares in zip(stores, times, found, strict=True):
            begun = time.perf_counter()
            answer = store.search(prefix, query=query, limit=_NEAREST)
            taken.append((time.perf_counter() - begun) * 1e3)
            shares.append(len({item.key for item in answer} & expected) / len(expected))
    _line(f"search {name}", [statistics.median(taken[1:]) for taken in times])
    print(f"| found {name} | " + " | ".join(f"{statistics.mean(shares):.0%}" for shares in found) + " | |", flush=True)


def _place(labels: int, items: int, chance: random.Random) -> tuple[str, ...]:
    return _namespace(chance.randrange(items))[:labels]


def _namespace(number: int) -> tuple[str, ...]:
    return "users", f"org {number // _IN_ORGANIZATION}", f"user {number // _IN_NAMESPACE}", "memories"


def _line(name: str, figures: Sequence[float], form: str = ".2f") -> None:
    theirs, ours = figures
    print(f"| {name} | {theirs:{form}} | {ours:{form}} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
