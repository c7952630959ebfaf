"""Pages of 20 among very many threads: first, middle and last, by owner, status, text and metadata; with their plans.

    python benchmarks/many_threads.py [--threads 100000] [--postgres] [--plans]

Each thread has ten checkpoints, an owner (one of a thousand), a title and metadata. One is stored by a saver, the rows
of the others are copies that SQL makes, with rows of threads as a saver writes them. A time is the median of a few
calls of `saver.list_threads`, everything included, in milliseconds; the extra cost of a statement's first call is left
out. Without --postgres it is a SQLite file; with it, a server that the script starts.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import threadmark
from threadmark.metadata import to_json
from threadmark.saver.proving import checkpoint_row, write_row
from threadmark.store.contract import Outline
from threadmark.store.threads import ThreadPlace, ThreadRow, thread_row
from threadmark_postgres import PostgresSaver
from threadmark_postgres.columns import from_id_column
from threadmark_sqlite import SqliteSaver

CHECKPOINTS = 10
_OWNERS = 1000
_TIMES = 7
_START = 1_700_000_000_000_000
_STEP = 1_000_000
_RARE = 9973  # every so-manieth thread has a rare word in its title and metadata


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Pages of 20 among very many threads.")
    parser.add_argument("--threads", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--plans", action="store_true", help="print the plan of each statement, too")
    asked = parser.parse_args()
    if asked.postgres:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from postgres.cluster import Cluster

        with Cluster(durable=True) as cluster:
            with PostgresSaver(cluster.url) as saver:
                store_first(saver)
                copy_in_postgres(cluster.url, asked.threads)
            with PostgresSaver(cluster.url) as saver:
                _report(saver, asked.threads, _explained_by_postgres(cluster.url) if asked.plans else None)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.db"
        with SqliteSaver(path, durability="normal") as saver:
            store_first(saver)
        _copy_in_sqlite(path, asked.threads)
        with SqliteSaver(path) as saver:
            _report(saver, asked.threads, _explained_by_sqlite(path) if asked.plans else None)


def store_first(saver: threadmark.Saver) -> None:
    """Store the thread that the others are copies of."""
    config: dict[str, Any] = {"configurable": {"thread_id": "000000000"}}
    for number in range(CHECKPOINTS):
        config = saver.put(config, *small_step(number))
    saver.put_writes(config, [("count", 1)], "task")


def small_step(number: int) -> tuple[threadmark.Checkpoint, dict[str, Any], dict[str, int]]:
    """A checkpoint of two small channels, its metadata and its new versions."""
    versions = {"count": number + 1, "text": number + 1}
    checkpoint: threadmark.Checkpoint = {
        "v": 4,
        "id": threadmark.new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"count": number, "text": f"what step {number} has written"},
        "channel_versions": {**versions},
        "versions_seen": {},
    }
    return checkpoint, {"step": number, "source": "loop"}, versions


def _threads(count: int) -> Iterator[tuple[ThreadRow, int]]:
    """The rows of threads, and when they were updated: in another order than they were created."""
    for number in range(1, count):
        word = "zebra" if number % _RARE == 0 else "horse"
        row = ThreadRow(
            f"{number:09}",
            _START + number * _STEP,
            f"owner {number % _OWNERS}",
            f"A conversation about a {word}, number {number}",
            to_json({"animal": word, "number": number, "graph": "agent"}),
        )
        yield thread_row(row), _START + count * _STEP + (number * 7919 % count) * _STEP


def _copy_in_sqlite(path: Path, count: int) -> None:
    import sqlite3

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO threadmark_thread"
            " (thread_id, epoch, live, created_at, owner, title, folded_title, metadata, checksum, token, minute)"
            " VALUES (?, 1, 1, ?, ?, ?, ?, ?, ?, 0, ? / 60000000)",
            (
                (r.thread_id, r.created_at, r.owner, r.title, (r.title or "").casefold(), r.metadata, r.check, updated)
                for r, updated in _threads(count)
            ),
        )
        connection.executemany(
            "INSERT INTO threadmark_head (thread_id, ns, newest, checkpoints, updated_at)"
            f" SELECT ?, ns, newest, {CHECKPOINTS}, ? FROM threadmark_head WHERE thread_id = '000000000'",
            ((row.thread_id, updated_at) for row, updated_at in _threads(count)),
        )
        for table, columns in (
            ("checkpoint", "ns, rank, id, parent, created_at, metadata, header, checksum"),
            ("segment", "key, data"),
            ("write", "ns, checkpoint_id, task_id, idx, task_path, channel, value, checksum"),
        ):
            of_copy = ", ".join(f"c.{column.strip()}" for column in columns.split(","))
            connection.execute(
                f"INSERT INTO threadmark_{table} (thread, {columns}) SELECT t.thread, {of_copy}"
                f" FROM threadmark_thread AS t CROSS JOIN threadmark_{table} AS c"
                " WHERE t.thread_id > '000000000' AND c.thread ="
                " (SELECT thread FROM threadmark_thread WHERE thread_id = '000000000')"
            )


def copy_in_postgres(url: str, count: int) -> None:
    """Copy the first thread until there are so many."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy(
            "COPY threadmark_thread"
            " (thread_id, epoch, live, created_at, owner, title, folded_title, metadata, checksum, token) FROM STDIN"
        ) as copy:
            for r, _ in _threads(count):
                folded = (r.title or "").casefold()
                copy.write_row((r.thread_id, 1, True, r.created_at, r.owner, r.title, folded, r.metadata, r.check, 0))
        cursor.execute("CREATE TEMPORARY TABLE updated (thread_id text, updated_at bigint, owner text)")
        with cursor.copy("COPY updated FROM STDIN") as copy:
            for row, updated_at in _threads(count):
                copy.write_row((row.thread_id, updated_at, row.owner))
        cursor.execute(
            "INSERT INTO threadmark_head (thread_id, ns, rank, needs, checkpoints, updated_at, minute, owner)"
            " SELECT u.thread_id, h.ns, h.rank, h.needs, h.checkpoints, u.updated_at, u.updated_at / 60000000, u.owner"
            " FROM updated AS u CROSS JOIN threadmark_head AS h WHERE h.thread_id = '000000000'"
        )
        cursor.execute(
            "INSERT INTO threadmark_segment (thread_id, key, data) SELECT u.thread_id, c.key, c.data"
            " FROM updated AS u CROSS JOIN threadmark_segment AS c WHERE c.thread_id = '000000000'"
        )
        _copy_rows(cursor, count)
        cursor.execute("VACUUM ANALYZE")


def _copy_rows(cursor: Any, count: int) -> None:
    """Copy checkpoints and writes. Each has a check that its thread's id goes into, so they come from here."""
    names = "ns, id, rank, parent, created_at, metadata, header, run"
    of_first = "FROM {} WHERE thread_id = '000000000'"
    checkpoints = cursor.execute(f"SELECT {names} {of_first.format('threadmark_checkpoint')}").fetchall()
    with cursor.copy(f"COPY threadmark_checkpoint (thread_id, {names}, checksum) FROM STDIN") as copy:
        for row, _ in _threads(count):
            for fields in checkpoints:
                ns, own_id, rank, parent, created_at, metadata, header, _run = fields
                outline = Outline(row.thread_id, ns, own_id or rank, rank, parent, created_at, metadata)
                copy.write_row((row.thread_id, *fields, checkpoint_row(outline, header, None).check))
    names = "ns, checkpoint_id, task_id, idx, task_path, channel, value"
    writes = cursor.execute(f"SELECT {names} {of_first.format('threadmark_write')}").fetchall()
    with cursor.copy(f"COPY threadmark_write (thread_id, {names}, checksum) FROM STDIN") as copy:
        for row, _ in _threads(count):
            for ns, checkpoint_id, task_id, *fields in writes:
                own = write_row(row.thread_id, ns, checkpoint_id, from_id_column(task_id), *fields)
                copy.write_row((row.thread_id, ns, checkpoint_id, task_id, *fields, own.check))


Explain = Callable[[Any, tuple[Any, ...]], Iterator[str]]


def _report(saver: threadmark.Saver, count: int, explain: Explain | None) -> None:
    print(f"{count:,} threads, {count * CHECKPOINTS:,} checkpoints; a page of 20, in ms\n")
    print("| page | ms |\n|---|---:|")
    middle, last = _cursor_at(saver, count // 2), _cursor_at(saver, count - 20)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("first", {}),
        ("middle", {"cursor": middle}),
        ("last", {"cursor": last}),
        ("first, by creation", {"sort": "-created"}),
        ("first, by id", {"sort": "id"}),
        ("of one owner", {"owner": "owner 7"}),
        ("text that all have", {"text": "CONVERSATION"}),
        (f"text that one in {_RARE:,} has", {"text": "zebra"}),
        ("metadata that all have", {"metadata": {"graph": "agent"}}),
        (f"metadata that one in {_RARE:,} has", {"metadata": {"animal": "zebra"}}),
        ("idle", {"status": "idle"}),
        ("interrupted (none is)", {"status": "interrupted"}),
        ("busy (none is)", {"status": "busy"}),
        ("unfinished (none is)", {"status": "unfinished"}),
        ("the middle, by offset", {"offset": count // 2}),
    ]
    for name, options in asked:
        took = _median(lambda options=options: saver.list_threads(**options))  # type: ignore[misc]  # bound at once
        print(f"| {name} | {took:.1f} |", flush=True)
    print(f"| how many there are | {_median(saver.count_threads):.1f} |")
    print(f"| how many one owner has | {_median(lambda: saver.count_threads(owner='owner 7')):.1f} |")
    print(f"| one thread by its id | {_median(lambda: saver.get_thread('000000500')):.1f} |", flush=True)
    if explain is not None:
        for name, options in asked:
            _print_plans(saver, name, options, explain)


def _cursor_at(saver: threadmark.Saver, offset: int) -> str | None:
    return saver.list_threads(limit=1, offset=max(0, offset - 1)).cursor


def _median(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000


def _print_plans(saver: threadmark.Saver, name: str, options: dict[str, Any], explain: Explain) -> None:
    from threadmark.saver.arguments import thread_query

    cursor, offset = options.pop("cursor", None), options.pop("offset", 0)
    after = ThreadPlace(_START, "") if cursor else None
    program = saver._context.store.thread_page(thread_query(**options).scope, after, offset, 21)  # noqa: SLF001 - the plan of its statement
    step: Any = next(program)
    print(f"\n{name}:")
    for line in explain(step.sql, tuple(step.params)):
        print(f"    {line}")


def _explained_by_sqlite(path: Path) -> Explain:
    import sqlite3

    def explain(statement: Any, params: tuple[Any, ...]) -> Iterator[str]:
        with closing(sqlite3.connect(path)) as connection:
            for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}", params):
                yield detail

    return explain


def _explained_by_postgres(url: str) -> Explain:
    import psycopg

    def explain(statement: Any, params: tuple[Any, ...]) -> Iterator[str]:
        with psycopg.connect(url) as connection, psycopg.RawCursor(connection) as cursor:
            for (line,) in cursor.execute(f"EXPLAIN {statement}", params):
                yield line

    return explain


if __name__ == "__main__":
    main()
