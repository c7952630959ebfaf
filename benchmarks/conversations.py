"""Messages of a conversation: the cost of appending one and of reading a page, in short and long conversations.

    python benchmarks/conversations.py [--lengths 100 10000] [--postgres] [--times 200]

Messages of 600 characters are appended one at a time by `put_messages`, until a conversation is as long as asked, and
then as many more as a time is the median of. `rows` and `bytes` are what one of these adds: rows of all tables, and
the bytes of `thread.size_bytes` (keys and indexes are not in it). A page is `get_messages(limit=50)`. It is done on a
SQLite file with synchronous=FULL, and with --postgres on a server that the script starts, too. The ratio is that of the
longest conversation to the shortest.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

import threadmark
from threadmark import Conversations, Saver
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_TABLES = ("thread", "head", "segment", "checkpoint", "write")
_WORDS = (
    "luggage",
    "is",
    "in",
    "Vienna",
    "the",
    "desk",
    "was",
    "asked",
    "and",
    "nobody",
    "knows",
    "where",
    "it",
    "went",
)


class Costs(NamedTuple):
    """The cost of one append, one page and one removal in a conversation."""

    length: int
    rows: float
    bytes: float
    append: float
    """Milliseconds, as the next two."""
    page: float
    delete: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Messages of short and of long conversations.")
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--times", type=int, default=200)
    asked = parser.parse_args()
    print(f"{'backend':<9} {'messages':>8} {'rows':>5} {'bytes':>6} {'append':>8} {'page':>8} {'delete':>8}   (ms)")
    for name, opened in [("SQLite", _on_sqlite), *([("Postgres", _on_postgres)] if asked.postgres else [])]:
        with opened() as (saver, count_rows):
            found = [_costs(saver, count_rows, length, asked.times) for length in asked.lengths]
        for each in found:
            _, rows, size, append, page, delete = each
            print(f"{name:<9} {each.length:>8} {rows:>5.2f} {size:>6.0f} {append:>8.3f} {page:>8.3f} {delete:>8.3f}")
        ratios = [last / first for first, last in zip(found[0][1:], found[-1][1:], strict=True)]
        print(f"{name:<9} {'ratio':>8} " + " ".join(f"{ratio:.2f}" for ratio in ratios))


def _costs(saver: Saver, count_rows: Callable[[], int], length: int, times: int) -> Costs:
    """Fill a conversation one message at a time, then measure."""
    chance = random.Random(length)
    conversations = Conversations(saver)
    talk = {"thread_id": f"of {length}", "user_id": "ada"}
    for _ in range(length):
        conversations.put_messages(talk, [_message(chance)])
    rows, size = count_rows(), _size(conversations, talk)
    appended = [_message(chance) for _ in range(times)]
    append = [_timed(conversations.put_messages, talk, [message]) for message in appended]
    rows, size = count_rows() - rows, _size(conversations, talk) - size
    page = [_timed(conversations.get_messages, talk) for _ in range(times)]
    delete = [_timed(conversations.delete_message, talk, message["id"]) for message in appended[: times // 4]]
    medians = (statistics.median(taken) for taken in (append, page, delete))
    return Costs(length, rows / times, size / times, *medians)


def _message(chance: random.Random) -> dict[str, Any]:
    text = ""
    while len(text) < 600:
        text += f"{chance.choice(_WORDS)}{chance.randrange(100)} "
    return {"id": threadmark.new_id(), "role": "user", "content": text[:600]}


def _timed(method: Callable[..., object], *arguments: object) -> float:
    begun = time.perf_counter()
    method(*arguments)
    return 1000 * (time.perf_counter() - begun)


def _size(conversations: Conversations, talk: dict[str, str]) -> int:
    found = conversations.get_thread(talk)
    return found.size_bytes if found else 0


@contextmanager
def _on_sqlite() -> Iterator[tuple[Saver, Callable[[], int]]]:
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.db"
        with SqliteSaver(path) as saver:
            saver.setup()
            connection = sqlite3.connect(path)

            def count() -> int:
                counts = (connection.execute(f"SELECT count(*) FROM threadmark_{name}").fetchone() for name in _TABLES)
                return sum(number for (number,) in counts)

            yield saver, count
            connection.close()


@contextmanager
def _on_postgres() -> Iterator[tuple[Saver, Callable[[], int]]]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres.cluster import Cluster

    with (
        Cluster(durable=True) as cluster,
        PostgresSaver(cluster.url) as saver,
        psycopg.connect(cluster.url, autocommit=True) as connection,
    ):
        saver.setup()

        def count() -> int:
            tables = " UNION ALL ".join(f"SELECT count(*) FROM threadmark_{name}" for name in _TABLES)
            return sum(int(number) for (number,) in connection.execute(tables.encode()))

        yield saver, count


if __name__ == "__main__":
    main()
