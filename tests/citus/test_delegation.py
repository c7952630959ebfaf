"""A change of a thread, and a get, is one call that goes whole to the node that has the thread."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from citus.nodes import Nodes, shared_nodes, skip_without_citus
from postgres.steps import play, step, thread
from threadmark.program import Program, Transaction
from threadmark_postgres import PostgresSaver, ddl, store
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.steps import Query

skip_without_citus()

SCHEMA = "o'brien"


@pytest.fixture
def nodes() -> Nodes:
    return shared_nodes()


@pytest.fixture
def saver(nodes: Nodes) -> Iterator[PostgresSaver]:
    with PostgresSaver(nodes.url, schema=SCHEMA) as saver:
        saver.setup(distribute="citus")
        yield saver
    nodes.execute(f'DROP SCHEMA "{SCHEMA}" CASCADE')


def _asked(saver: PostgresSaver) -> list[Query]:
    """The statements that the saver sends from now on."""
    asked: list[Query] = []
    run = saver._driver.run

    def noted(transaction: Transaction[Any]) -> Any:
        def program(*arguments: Any) -> Program[Any]:
            conversing = transaction.program(*arguments)
            answer = None
            while True:
                try:
                    query: Any = conversing.send(answer)
                except StopIteration as end:
                    return end.value
                asked.append(query)
                answer = yield query

        return run(transaction._replace(program=program))

    saver._driver.run = noted  # type: ignore[method-assign]
    return asked


def _tasks(nodes: Nodes, query: Query) -> list[str]:
    """The queries that the server would send to its nodes for a statement."""
    with psycopg.connect(nodes.url, autocommit=True) as connection:
        register_dumpers(connection)
        rows = psycopg.RawCursor(connection).execute(f"EXPLAIN {query.sql}".encode(), query.params).fetchall()
    return [line for (line,) in rows]


def test_a_put_its_writes_and_a_get_are_one_delegated_call_each(nodes: Nodes, saver: PostgresSaver) -> None:
    before = play(saver, "thread", 2)
    asked = _asked(saver)
    saver.put_writes(before, [("channel", "value")], "task")
    saver.put(before, *step(2))
    with PostgresSaver(nodes.url, schema=SCHEMA) as other:
        in_other = _asked(other)
        assert other.get(thread("thread"))
        assert other.get(thread("thread"))
    functions = ("add_one_1", "add_one_1", "find_1")
    for function, query in zip(functions, (*asked, in_other[-1]), strict=True):
        assert function in query.sql
        plan = "\n".join(_tasks(nodes, query))
        assert "Task Count: 1" in plan
        assert function in plan


def test_the_tables_of_one_thread_are_on_one_node(nodes: Nodes, saver: PostgresSaver) -> None:
    saver.setup()  # again: it changes nothing
    found = nodes.execute(
        "SELECT count(*), count(DISTINCT colocation_id) FROM citus_tables "
        "WHERE table_name::text LIKE '%brien%' AND citus_table_type = 'distributed'"
    )
    assert found == [(8, 1)]


def test_a_deleted_thread_is_forgotten_wherever_it_is(
    nodes: Nodes, saver: PostgresSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_DELETIONS", 1)  # each looks
    for number in range(8):
        play(saver, f"thread {number}", 1)
        saver.delete_thread(f"thread {number}")
    nodes.execute(f"""UPDATE "{SCHEMA}".threadmark_thread SET epoch = 1 WHERE thread_id <> 'thread 7'""")
    play(saver, "one more", 1)
    saver.delete_thread("one more")
    left = nodes.execute(f"""SELECT thread_id FROM "{SCHEMA}".threadmark_thread ORDER BY thread_id""")
    assert left == [("one more",), ("thread 7",)]


def test_any_node_serves(nodes: Nodes, saver: PostgresSaver) -> None:
    play(saver, "thread", 3)
    for worker in nodes.workers:
        with PostgresSaver(worker.url, schema=SCHEMA) as other:
            play(other, f"thread of {worker.port}", 3)
            assert len(list(other.list(thread("thread")))) == 3
            assert len(other.list_threads().threads) >= 2
    assert saver.verify().problems == []


def test_the_script_for_an_administrator_makes_the_same(nodes: Nodes) -> None:
    nodes.execute(ddl("scripted", distribute="citus"))
    with PostgresSaver(nodes.url, schema="scripted") as saver:
        play(saver, "thread", 2)
        assert not saver._postgres._combines
        assert saver.verify().problems == []
    nodes.execute("DROP SCHEMA scripted CASCADE")
