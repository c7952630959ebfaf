"""The order in which rows are taken: two who take the same rows wait for each other, and never in a circle.

A holder keeps one row. The statement that is tested adds it, too, and rows before and behind it, in another
order, and comes to wait for the holder. The rows it holds then show the order in which it takes them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import psycopg
import pytest

from patience import wait_until
from postgres.steps import play
from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.program import Step
from threadmark.store.contract import Change, CheckpointRow, Outline, WriteRow, now
from threadmark_postgres import PostgresSaver, store
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver.batching import Batch
from threadmark_postgres.steps import Query
from threadmark_postgres.store import PostgresStore

Key = tuple[int, ...]
"""A row's key, each column as one digit; the first is the thread."""

Adding = Callable[[Iterable[Key]], Sequence[Query]]
"""The statements that add the rows of these keys, in this order."""

Probe = Callable[[Iterable[Key]], Sequence[Query]]
"""A statement that takes the rows of these keys and no other rows."""


def addition(changes: Iterable[Change]) -> Sequence[Query]:
    """The statements that add all changes, as they travel together."""
    return Batch([_query(next(PostgresStore(None).add(change))) for change in changes]).queries


def _query(step: Step) -> Query:
    assert isinstance(step, Query)
    return step


def change_of(name: object, **rows: Any) -> Change:
    nothing: dict[str, Any] = {"segments": {}, "checkpoints": [], "writes": [], "continues": None}
    return Change(thread_id=str(name), epoch=None, now=now(), **(nothing | rows))


def by_thread(keys: Iterable[Key]) -> Iterator[tuple[int, list[Key]]]:
    return ((number, list(group)) for number, group in groupby(keys, lambda key: key[0]))


def checkpoint(number: int, ns: int, rank: int = 1) -> CheckpointRow:
    return CheckpointRow(Outline(str(number), str(ns), str(rank), str(rank), None, 0, "{}"), b"", b"", None)


def write(_: int, ns: int, checkpoint_id: int, task_id: int, idx: int) -> WriteRow:
    return WriteRow(str(ns), str(checkpoint_id), str(task_id), idx, "", "", b"", b"")


def add_threads(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(change_of(number) for number, _ in by_thread(keys))


def add_segments(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(
        change_of(number, segments={bytes([key]): b"data" for _, key in group}) for number, group in by_thread(keys)
    )


def add_heads(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(change_of(number, checkpoints=[checkpoint(number, ns)]) for number, ns in keys)


def add_checkpoints(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(
        change_of(number, checkpoints=[checkpoint(*key) for key in group]) for number, group in by_thread(keys)
    )


def take_heads(keys: Iterable[Key]) -> Sequence[Query]:
    (key,) = keys
    columns = [str(digit) for digit in key]
    statement = (
        "INSERT INTO threadmark_head (thread_id, ns, rank, needs, checkpoints, updated_at, minute) "
        "VALUES ($1, $2, '', '{}', 0, 0, 0) "
        "ON CONFLICT (thread_id, ns) DO UPDATE SET rank = threadmark_head.rank RETURNING 1"
    )
    return [Query(statement, columns)]


def take_checkpoints(keys: Iterable[Key]) -> Sequence[Query]:
    (key,) = keys
    statement = (
        "INSERT INTO threadmark_checkpoint (thread_id, ns, rank, created_at, metadata, header, checksum) "
        "VALUES ($1, $2, $3, 0, '{}', '', '') "
        "ON CONFLICT (thread_id, ns, rank) DO UPDATE SET created_at = 0 RETURNING 1"
    )
    return [Query(statement, [str(digit) for digit in key])]


def add_writes(keys: Iterable[Key]) -> Sequence[Query]:
    return addition(change_of(number, writes=[write(*key) for key in group]) for number, group in by_thread(keys))


def around(columns: int) -> tuple[list[Key], Key, list[Key]]:
    """Keys before a middle one, the middle one, and keys behind it: an order that forgets a column confuses them."""
    middle = (5,) * columns
    before = [(*middle[:index], 4, *[9] * (columns - index - 1)) for index in range(columns)]
    behind = [(*middle[:index], 6, *[1] * (columns - index - 1)) for index in range(columns)]
    return [*before, (*middle[:-1], 3)], middle, [*behind, (*middle[:-1], 7)]


def shuffled(keys: Iterable[Key]) -> list[Key]:
    """Neither this order nor its reverse is the right one for any column, and each thread's keys stay together."""
    return sorted(keys, key=lambda key: [(digit % 2, -digit) for digit in key])


class Scene:
    """The connections that add, that hold a row, and that look at the locks."""

    def __init__(self, url: str, tables: psycopg.Connection, workers: ThreadPoolExecutor) -> None:
        self._url = url
        self._tables = tables
        self._workers = workers

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """A connection whose transactions are like those of a saver, and end with it."""
        with psycopg.connect(self._url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            register_dumpers(connection)
            yield connection
            connection.rollback()

    def waits(self, call: Callable[[], object]) -> Future[object]:
        """A call under way that has come to wait for a locked row."""
        under_way = self._workers.submit(call)
        wait_until(lambda: under_way.done() or self._blocked() > 0, "it neither ends nor waits")
        assert not under_way.done(), under_way.exception() or "it waited for nobody"
        return under_way

    def goes_through(self, call: Callable[[], object]) -> None:
        """A call that waits for no row."""
        under_way = self._workers.submit(call)
        wait_until(lambda: under_way.done() or self._blocked() > 0, "it neither ends nor waits")
        assert under_way.done(), "it waits for somebody"
        under_way.result()

    def is_held(self, take: Probe, key: Key) -> bool:
        """Whether a caller that adds this row would have to wait."""
        before = self._blocked()
        with self.session() as prober:
            tried = self._workers.submit(run, prober, take([key]))
            wait_until(lambda: tried.done() or self._blocked() > before, "it neither ends nor waits")
            if tried.done():
                tried.result()
                return False
            prober.cancel_safe()
            assert isinstance(tried.exception(), psycopg.errors.QueryCanceled)
            return True

    def is_free(self, table: str, where: str = "true") -> bool:
        """Whether none of these rows is locked."""
        with self.session() as prober:
            try:
                prober.execute(f"SELECT FROM threadmark_{table} WHERE {where} FOR UPDATE NOWAIT".encode())
            except psycopg.errors.LockNotAvailable:
                return False
            return True

    def _blocked(self) -> int:
        blocked = """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
        """
        return int(next(self._tables.execute(blocked))[0])


@pytest.fixture
def scene(url: str, tables: psycopg.Connection) -> Iterator[Scene]:
    with PostgresSaver(url) as saver:
        saver.setup()
    with ThreadPoolExecutor(4) as workers:
        yield Scene(url, tables, workers)


def run(session: psycopg.Connection, queries: Sequence[Query]) -> None:
    cursor = psycopg.RawCursor(session)
    for query in queries:
        cursor.execute(query.sql.encode(), query.params, binary=True)
        assert len(cursor.fetchall()) == 1


def make_threads(scene: Scene, numbers: Iterable[int]) -> None:
    with scene.session() as maker:
        run(maker, add_threads((number,) for number in numbers))
        maker.commit()


def taken_before(scene: Scene, add: Adding, take: Probe, middle: Key, others: Sequence[Key]) -> list[Key]:
    """Those of the other rows that a statement holds that waits for the middle one."""
    with scene.session() as adder, scene.session() as holder:
        run(holder, take([middle]))
        waiting = scene.waits(partial(run, adder, add(shuffled([*others, middle]))))
        held = [key for key in others if scene.is_held(take, key)]
        holder.rollback()
        waiting.result()
    return held


def test_new_threads_are_made_in_order(scene: Scene) -> None:
    before, behind = [(number,) for number in range(1, 5)], [(number,) for number in range(6, 10)]
    assert taken_before(scene, add_threads, add_threads, (5,), before + behind) == before


@pytest.mark.parametrize(
    ("add", "take", "columns"),
    [
        (add_segments, add_segments, 2),
        (add_heads, take_heads, 2),
        (add_checkpoints, take_checkpoints, 3),
        (add_writes, add_writes, 5),
    ],
)
def test_rows_are_added_in_order(scene: Scene, add: Adding, take: Probe, columns: int) -> None:
    make_threads(scene, (4, 5, 6))
    before, middle, behind = around(columns)
    assert taken_before(scene, add, take, middle, before + behind) == before


def add_write(keys: Iterable[Key]) -> Sequence[Query]:
    return add_writes((5, 5, 5, 5, key) for _, key in keys)


def test_a_pack_is_added_before_its_record(scene: Scene) -> None:
    make_threads(scene, [5])
    pack, record = (5, PACK), (5, FIRST_RECORD)
    assert taken_before(scene, add_write, add_write, record, [pack]) == [pack]


def test_a_head_is_that_of_the_greatest_rank(scene: Scene, tables: psycopg.Connection) -> None:
    with scene.session() as adder:
        run(adder, addition(change_of(1, checkpoints=[checkpoint(1, 1, rank)]) for rank in (2, 3, 1)))
        adder.commit()
    assert next(tables.execute("SELECT rank FROM threadmark_head WHERE checkpoints > 0"))[0] == "3"


def add_put() -> Sequence[Query]:
    return addition([change_of(5, checkpoints=[checkpoint(5, 5, 5)], segments={bytes([5]): b"data"})])


def add_task() -> Sequence[Query]:
    return addition([change_of(5, writes=[write(5, 5, 5, 5, 5)], segments={bytes([5]): b"data"})])


PUT = [(take_heads, (5, 5)), (take_checkpoints, (5, 5, 5)), (add_segments, (5, 5))]
TASK = [(add_segments, (5, 5)), (add_writes, (5, 5, 5, 5, 5))]


@pytest.mark.parametrize(("add_all", "rows"), [(add_put, PUT), (add_task, TASK)])
def test_tables_are_taken_in_order(
    scene: Scene, add_all: Callable[[], Sequence[Query]], rows: list[tuple[Probe, Key]]
) -> None:
    make_threads(scene, [5])
    for index, (take, key) in enumerate(rows):
        with scene.session() as adder, scene.session() as holder:
            run(holder, take([key]))
            waiting = scene.waits(partial(run, adder, add_all()))
            others = [row for row in rows if row != (take, key)]
            assert [row for row in others if scene.is_held(*row)] == rows[:index]
            holder.rollback()
            waiting.result()


def prune(saver: PostgresSaver) -> None:
    saver.prune(["b"])


def delete(saver: PostgresSaver) -> None:
    saver.delete_thread("b")


@pytest.mark.parametrize(("remove", "left"), [(prune, 1), (delete, 0)])
def test_a_removal_takes_the_thread_before_it_reads_and_nothing_before_that(
    url: str, tables: psycopg.Connection, scene: Scene, remove: Callable[[PostgresSaver], None], left: int
) -> None:
    older = CheckpointRow(Outline("b", "", "0", "0", None, 0, "{}"), b"", b"", None)
    with PostgresSaver(url) as saver, scene.session() as adder:
        for name in "abc":
            play(saver, name, 3)
        run(adder, addition([change_of("b", checkpoints=[older])]))
        waiting = scene.waits(partial(remove, saver))
        assert all(scene.is_free(table) for table in ("segment", "checkpoint", "write"))
        assert scene.is_free("head", "thread_id <> 'b'")  # the adding caller has that of b
        assert scene.is_free("thread", "thread_id <> 'b'")
        adder.commit()
        waiting.result()
    rows = tables.execute("SELECT count(*) FROM threadmark_checkpoint WHERE thread_id = 'b'")
    assert next(rows)[0] == left


def test_a_thread_buried_long_ago_is_left_to_whoever_holds_it(
    url: str, tables: psycopg.Connection, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_DELETIONS", 1)  # each looks
    with PostgresSaver(url) as saver, scene.session() as holder:
        for name in ("old 1", "old 2", "one", "two"):
            play(saver, name, 1)
        tables.execute("UPDATE threadmark_thread SET live = false, epoch = 1 WHERE thread_id LIKE 'old%'")
        holder.execute("SELECT FROM threadmark_thread WHERE thread_id = 'old 1' FOR KEY SHARE")
        scene.goes_through(partial(saver.delete_thread, "one"))
        assert threads(tables) == {"old 1", "one", "two"}
        holder.rollback()
        saver.delete_thread("two")
        assert threads(tables) == {"one", "two"}


def threads(tables: psycopg.Connection) -> set[str]:
    return {name for (name,) in tables.execute("SELECT thread_id FROM threadmark_thread")}


@pytest.mark.parametrize(("source", "target"), [("a", "b"), ("b", "a")])
def test_a_copy_takes_its_threads_in_order(url: str, scene: Scene, source: str, target: str) -> None:
    with PostgresSaver(url) as saver, scene.session() as holder:
        for name in "ab":
            play(saver, name, 1)
        holder.execute("SELECT FROM threadmark_thread WHERE thread_id = 'a' FOR UPDATE")
        waiting = scene.waits(partial(saver.copy_thread, source, target))
        assert scene.is_free("thread", "thread_id = 'b'")
        holder.rollback()
        waiting.result()
