"""The functions of the server: each is made by a step of the format, and named with its number."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import psycopg
import pytest

from postgres.steps import play
from threadmark.ids import deleted_up_to, new_id
from threadmark.program import Transaction
from threadmark_postgres import PostgresSaver, ddl, functions, migrations
from threadmark_postgres.schema import in_schema

NAMES = [(migration.number, name) for migration in migrations.MIGRATIONS for name in migration.functions]


def test_every_file_is_a_function_that_a_step_makes() -> None:
    texts = {path.name.removesuffix(".sql") for path in files(functions).iterdir() if path.name.endswith(".sql")}
    assert texts == {name for _, name in NAMES}
    assert all(name.rpartition("_")[2] == str(number) for number, name in NAMES)


@pytest.mark.parametrize("schema", [None, "agents"])
def test_they_are_where_the_tables_are(tables: psycopg.Connection, schema: str | None) -> None:
    tables.execute(ddl(schema).encode())
    found = tables.execute(
        "SELECT pronamespace::regnamespace::text, proname, prosecdef, proconfig FROM pg_proc"
        " WHERE proname LIKE 'threadmark%' ORDER BY proname"
    )
    expected = sorted((schema or "public", f"threadmark_{name}", False, None) for _, name in NAMES)
    assert found.fetchall() == expected


def test_no_change_of_rows_calls_a_volatile_function(tables: psycopg.Connection) -> None:
    """Citus refuses such an UPDATE or DELETE, also in a function."""
    tables.execute(ddl().encode())
    volatile = {name for (name,) in tables.execute("SELECT proname FROM pg_proc WHERE provolatile = 'v'")}
    assert {"clock_timestamp", "threadmark_add_1"} <= volatile
    bodies = tables.execute("SELECT prosrc FROM pg_proc WHERE proname LIKE 'threadmark%'").fetchall()
    texts = [re.sub("--.*", "", text) for (text,) in bodies]
    changes = [change for text in texts for change in re.findall(r"\b(?:UPDATE|DELETE FROM) \w+[^;]*", text)]
    assert len(changes) > 20
    assert [change for change in changes if {*re.findall(r"\w+(?=\()", change)} & volatile] == []


def test_a_migration_may_replace_them_under_load(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        saver.setup()
        over = threading.Event()

        def work(number: int) -> int:
            rounds = 0
            while not over.is_set():
                name = f"thread {number}"
                play(saver, name, 3)
                saver.prune([name], keep_last=1)
                with saver.lease(name, holder="worker"):
                    pass
                saver.delete_thread(name)
                rounds += 1
            return rounds

        with ThreadPoolExecutor(4) as pool:
            rounds = [pool.submit(work, number) for number in range(4)]
            for _ in range(20):
                for _, name in NAMES:
                    tables.execute(in_schema(functions.text_of(name), None).encode())
            over.set()
        assert all(each.result() for each in rounds)


@pytest.mark.parametrize(
    "ids",
    [
        [],
        ["1"],
        ["zebra", "1f0c3b7e-0000-6000-8000-000000000000"],
        ["1f0c3b7e-0000-6000-8000-000000000000"],
        ["1F0C3B7E-0000-6000-8000-000000000000"],
        ["ffffffff-ffff-6fff-bfff-ffffffffffff"],
        ["1f0c3b7e-0000-4000-8000-000000000000"],
        ["1f0c3b7e-0000-6000-8000-00000000000g", "0"],
        [new_id(), "ä"],
    ],
)
def test_a_thread_is_deleted_up_to_the_id_that_python_says(
    url: str, tables: psycopg.Connection, ids: list[str]
) -> None:
    with PostgresSaver(url) as saver:
        saver.setup()
        tables.execute(
            "INSERT INTO threadmark_thread (thread_id, epoch, live, created_at, token) VALUES ('one', 1, true, 1, 0)"
        )
        for checkpoint_id in ids:
            tables.execute(
                "INSERT INTO threadmark_write VALUES ('one', '', %s, '', 0, '', '', '', '')", [checkpoint_id]
            )
        moment = 1_795_000_000_000_000
        assert saver._driver.run(Transaction(saver._context.store.drop, ("one", moment), writes=True)) == 1
        (found,) = tables.execute("SELECT deleted_up_to FROM threadmark_thread").fetchall()
        assert found == (deleted_up_to(ids, moment),)
        assert tables.execute("SELECT count(*) FROM threadmark_write").fetchone() == (0,)
