"""Setting up: by many at once, by a database administrator, over an earlier or a later release's tables."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import threadmark
from length import times
from postgres import next_format
from postgres.cluster import PostgresServer
from postgres.steps import APIS, aplay, count, play, step, thread
from threadmark import ConfigError, Saver, SchemaError, StoreError, ThreadDeletedError
from threadmark.model import ThreadStatus
from threadmark_postgres import PostgresSaver, ddl, migrations
from threadmark_postgres.saver import open_url

_PROCESSES = times(5, at_length=8)
_START = """
import sys
sys.path.insert(0, sys.argv[3])
from postgres import next_format
from postgres.steps import play
from threadmark_postgres import PostgresSaver
if sys.argv[4] == "earlier":
    next_format.install()
sys.stdin.readline()
with PostgresSaver(sys.argv[1], schema="tm") as saver:
    play(saver, sys.argv[2], 2)
"""


def start_together(url: str, before: str) -> None:
    """Let several processes open the same database at the same moment: of the next release for one of today's."""
    here = str(Path(__file__).parents[1])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _START, url, f"thread {number}", here, before],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(_PROCESSES)
    ]
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors


def invalid_indexes(tables: psycopg.Connection) -> int:
    rows = tables.execute("SELECT count(*) FROM pg_index WHERE NOT (indisvalid AND indisready AND indislive)")
    return int(next(rows)[0])


@pytest.mark.parametrize("before", ["empty", "earlier", "current"])
def test_many_processes_start_at_once(url: str, tables: psycopg.Connection, before: str) -> None:
    if before != "empty":
        tables.execute(ddl("tm").encode())
    start_together(url, before)
    last = next_format.NUMBER if before == "earlier" else migrations.CURRENT
    numbers = tables.execute("SELECT number FROM tm.threadmark_migration ORDER BY number").fetchall()
    assert [number for (number,) in numbers] == list(range(1, last + 1))
    assert invalid_indexes(tables) == 0
    if before == "earlier":
        tables.execute("DELETE FROM tm.threadmark_migration WHERE number = %s", [last])
    with PostgresSaver(url, schema="tm") as saver:
        assert [count(saver, f"thread {number}") for number in range(_PROCESSES)] == [1] * _PROCESSES


def test_a_later_release_is_refused(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        saver.setup()
    tables.execute("INSERT INTO threadmark_migration VALUES (999, 'of the future', now(), NULL, 999, 999)")
    with PostgresSaver(url) as saver, pytest.raises(SchemaError, match=r"format 999.*upgrade threadmark-postgres"):
        saver.get(thread("one"))


def test_a_role_that_may_only_change_rows_works_on_a_prepared_schema(url: str, tables: psycopg.Connection) -> None:
    tables.execute("CREATE ROLE writer LOGIN")
    tables.execute("REVOKE CREATE ON SCHEMA public FROM public")
    writer = make_conninfo(url, user="writer")
    try:
        with PostgresSaver(writer, schema="agents") as saver:
            with pytest.raises(StoreError, match=r"ddl\('agents'\)"):
                saver.put(thread("one"), {"id": "1"}, {}, {})
            with pytest.raises(StoreError, match=r"ddl\('agents', partitions=2\)"):
                saver.setup(partitions=2)
        tables.execute(ddl("agents", partitions=2).encode())
        tables.execute("GRANT USAGE ON SCHEMA agents TO writer")
        tables.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agents TO writer")
        with PostgresSaver(writer, schema="agents") as saver:
            play(saver, "one", 3)
            saver.copy_thread("one", "two")
            saver.prune(["one"])
            saver.delete_thread("one")
            assert (count(saver, "one"), count(saver, "two")) == (None, 2)
    finally:
        tables.execute("DROP OWNED BY writer")
        tables.execute("DROP ROLE writer")


@pytest.mark.parametrize("api", APIS)
def test_the_printed_script_brings_an_earlier_format_to_the_current_one(
    url: str,
    tables: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    api: Callable[[threadmark.Saver], Any],
) -> None:
    async def body() -> None:
        async with PostgresSaver(make_conninfo(url, user="writer"), schema="agents") as saver:
            calls = api(saver)
            with pytest.raises(StoreError, match=r"ddl\('agents', since=1\)"):
                await calls.aput(thread("one"), *step(0))
            tables.execute(ddl("agents", since=1).encode())
            await aplay(calls, "one", 3)

    tables.execute(ddl("agents").encode())
    next_format.install(monkeypatch)
    tables.execute("CREATE ROLE writer LOGIN")
    try:
        tables.execute("GRANT USAGE ON SCHEMA agents TO writer")
        tables.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agents TO writer")
        asyncio.run(body())
        numbers = tables.execute("SELECT number, name FROM agents.threadmark_migration ORDER BY number").fetchall()
        assert numbers == [(migration.number, migration.name) for migration in migrations.MIGRATIONS]
        assert tables.execute("SELECT to_regclass('agents.threadmark_made_up')").fetchone() != (None,)
        assert tables.execute("SELECT DISTINCT made_up FROM agents.threadmark_thread").fetchall() == [(7,)]
    finally:
        tables.execute("DROP OWNED BY writer")
        tables.execute("DROP ROLE writer")


def test_a_script_for_the_current_format_changes_nothing(url: str, tables: psycopg.Connection) -> None:
    tables.execute(ddl("agents").encode())
    tables.execute(ddl("agents", since=migrations.CURRENT).encode())
    with PostgresSaver(url, schema="agents") as saver:
        play(saver, "one", 1)


@pytest.mark.parametrize("since", [-1, migrations.CURRENT + 1, "1", None])
def test_a_script_for_a_format_that_is_not_known_is_refused(since: Any) -> None:
    with pytest.raises(ConfigError, match="since"):
        ddl(since=since)


def test_the_printed_script_makes_what_setup_makes(url: str, tables: psycopg.Connection) -> None:
    tables.execute(ddl("printed", partitions=3).encode())
    with PostgresSaver(url, schema="made") as saver:
        saver.setup(partitions=3)
    columns = """
        SELECT table_name, column_name, data_type, collation_name, is_nullable
        FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2
    """
    indexes = "SELECT replace(indexdef, schemaname, '') FROM pg_indexes WHERE schemaname = %s ORDER BY 1"
    for what in (columns, indexes):
        printed, made = (tables.execute(what.encode(), (schema,)).fetchall() for schema in ("printed", "made"))
        assert printed == made
        assert printed


def test_partitions_hold_all_rows_and_answer_the_same(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            await saver.asetup(partitions=4)
            for name in map(str, range(12)):
                play(saver, name, 3)
            saver.copy_thread("1", "copy")
            _check_spread(tables)
            saver.delete_for_runs(["run-2"])
            saver.delete_thread("2")
            assert [count(saver, name) for name in ("1", "copy", "2", "11")] == [1, 1, None, 1]
            assert len([item async for item in saver.alist(None)]) == 2 * 12

    asyncio.run(body())


def _check_spread(tables: psycopg.Connection) -> None:
    for table in ("thread", "segment", "checkpoint", "head", "write"):
        rows = tables.execute(f"SELECT count(DISTINCT tableoid) FROM threadmark_{table}".encode())
        assert next(rows)[0] > 1


@pytest.mark.parametrize("api", APIS)
def test_a_database_without_citus_is_not_distributed(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, schema="agents") as saver:
            with pytest.raises(ConfigError, match="CREATE EXTENSION citus"):
                await api(saver).asetup(distribute="citus")

    asyncio.run(body())
    assert tables.execute("SELECT FROM pg_namespace WHERE nspname = 'agents'").fetchall() == []


@pytest.mark.parametrize("distribute", ["Citus", "", 1, True])
def test_tables_are_distributed_by_citus_alone(distribute: Any) -> None:
    with PostgresSaver("postgresql://nowhere") as saver, pytest.raises(ConfigError, match="distribute must be"):
        saver.setup(distribute=distribute)
    with pytest.raises(ConfigError, match="distribute must be"):
        ddl(distribute=distribute)


def test_tables_are_partitioned_or_distributed() -> None:
    with PostgresSaver("postgresql://nowhere") as saver, pytest.raises(ConfigError, match="not both"):
        saver.setup(partitions=2, distribute="citus")


@pytest.mark.parametrize("partitions", [0, -1, 100_000, True, "4", 4.0])
def test_a_number_of_partitions_that_cannot_be_is_refused(partitions: Any) -> None:
    with PostgresSaver("postgresql://nowhere") as saver, pytest.raises(ConfigError, match="partitions must be"):
        saver.setup(partitions=partitions)
    with pytest.raises(ConfigError, match="partitions must be"):
        ddl(partitions=partitions)


@pytest.mark.parametrize("pool_size", [0, -1, True, "4", 4.0, None])
def test_a_pool_size_that_cannot_be_is_refused(pool_size: Any) -> None:
    with pytest.raises(ConfigError, match="pool_size must be"):
        PostgresSaver("postgresql://nowhere", pool_size=pool_size)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("schema", [None, "agents"])
def test_asking_whether_a_database_is_there_makes_nothing(
    url: str, tables: psycopg.Connection, schema: str | None, api: Callable[[threadmark.Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, schema=schema) as saver:
            calls = api(saver)
            assert not await calls.ahas_tables()
            assert (await calls.alist_checkpoint_refs(), await calls.alist_orphan_writes()) == ([], [])
            assert made() == (0, 0)
            end = await aplay(calls, "one", 1)
            assert await calls.ahas_tables()
            (location,) = await calls.alist_checkpoint_refs()
            assert location.id == end["configurable"]["checkpoint_id"]

    def made() -> Any:
        relations = "(SELECT count(*) FROM pg_class WHERE relname LIKE 'threadmark%')"
        schemas = "(SELECT count(*) FROM pg_namespace WHERE nspname = 'agents')"
        return tables.execute(f"SELECT {relations}, {schemas}".encode()).fetchone()

    asyncio.run(body())
    assert made() > (0, 0)
    with PostgresSaver(url, schema=schema) as saver:
        assert saver.has_tables()


@pytest.mark.parametrize("schema", ['quo"ted', "per%scent", "$1", "tm.thread", "Größe", 31 * "ö" + "o"])
def test_a_schema_may_have_any_name(url: str, schema: str) -> None:
    with PostgresSaver(url, schema=schema) as saver:
        play(saver, "one", 2)
    with PostgresSaver(url, schema=schema) as saver:
        assert count(saver, "one") == 1
    with PostgresSaver(url) as elsewhere:
        assert count(elsewhere, "one") is None


def test_schemas_that_cannot_be_are_refused() -> None:
    for schema in ("", "nul\x00", "lone\ud800", 64 * "o", 32 * "ö"):
        with pytest.raises(ConfigError, match="schema"):
            PostgresSaver("postgresql://nowhere", schema=schema)
        with pytest.raises(ConfigError, match="schema"):
            ddl(schema)


def test_what_is_no_database_is_refused() -> None:
    for database in (7, None, "no equals sign"):
        with pytest.raises(ConfigError):
            PostgresSaver(database)  # type: ignore[arg-type]  # the test is about this


def test_a_url_opens_the_saver(url: str) -> None:
    assert threadmark.Saver in PostgresSaver.__mro__
    with open_url(url.replace("postgresql:", "postgres:"), application_name="agents") as saver:
        play(saver, "one", 1)
        assert count(saver, "one") == 0


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_may_have_another_encoding(cluster: PostgresServer, encoding: str) -> None:
    name = f"in_{encoding.lower()}"
    cluster.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
    try:
        with PostgresSaver(make_conninfo(cluster.url, dbname=name)) as saver:
            play(saver, "Größe", 3)
            assert count(saver, "Größe") == 2
            if encoding == "LATIN1":
                with pytest.raises(StoreError, match="UTF8"):
                    play(saver, "日本", 1)
            else:
                play(saver, "日本", 1)
                assert count(saver, "日本") == 0
    finally:
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def in_english(cluster: PostgresServer) -> Iterator[str]:
    """A database whose language sorts "B" behind "a", and before "b"."""
    with psycopg.connect(cluster.url) as connection:
        if connection.info.server_version < 150000:
            pytest.skip("no database can have an ICU locale before Postgres 15")
        # The collation "unicode" is in every build, those of languages only where there is ICU.
        if connection.execute("SELECT FROM pg_collation WHERE collname = 'en-x-icu'").fetchone() is None:
            pytest.skip("this build of Postgres has no ICU; Debian's has it")
    cluster.execute("CREATE DATABASE in_english LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0")
    yield make_conninfo(cluster.url, dbname="in_english")
    cluster.execute("DROP DATABASE in_english WITH (FORCE)")


def test_ids_are_compared_as_code_points_in_a_database_of_any_language(in_english: str) -> None:
    def put(saver: Saver, config: Any, checkpoint_id: str) -> Any:
        stored, *others = step(1)
        return saver.put(config, {**stored, "id": checkpoint_id}, *others)

    with PostgresSaver(in_english) as saver, PostgresSaver(in_english) as other:
        first = put(saver, thread("deleted"), "B")
        last = put(saver, first, "a")
        saver.delete_thread("deleted")
        for config in (first, last):
            with pytest.raises(ThreadDeletedError):
                other.put_writes(config, [("messages", "late")], "task")
            with pytest.raises(ThreadDeletedError):
                put(other, config, "c")
        assert saver.get_thread("deleted") is None
        root = put(saver, thread("one"), "1F0ECAF7-4B35-67EF-8DB9-841AB53A5165")
        put(saver, root, "1F9ECAF7-4B35-67EF-8DB9-841AB53A5165")
        assert saver.restore(root)["configurable"]["checkpoint_id"] == newest_id(saver)


def newest_id(saver: Saver) -> str:
    found = saver.get_tuple(thread("one"))
    assert found
    return str(found.config["configurable"]["checkpoint_id"])


def test_a_database_may_read_backslashes_as_it_once_did(url: str) -> None:
    def seen(saver: PostgresSaver) -> list[Any]:
        listed = [saver.list_threads(status=status) for status in get_args(ThreadStatus)]
        return [*listed, saver.get_thread("one"), saver.verify(), saver.report()]

    with PostgresSaver(make_conninfo(url, options="-c standard_conforming_strings=off")) as saver:
        play(saver, "one", 2)
        with PostgresSaver(url) as other:
            assert seen(saver) == seen(other)
        saver.prune(["one"], keep_last=1)
        saver.delete_thread("one")


def test_the_application_has_a_name(cluster: PostgresServer, url: str, tables: psycopg.Connection) -> None:
    assert cluster.port
    with PostgresSaver(url, application_name="agents") as saver:
        play(saver, "one", 1)
        names = tables.execute("SELECT application_name FROM pg_stat_activity").fetchall()
    assert ("agents",) in names


def _renamed(url: str, tables: psycopg.Connection) -> None:
    """Make tables in a schema that is then renamed, and tables under its name."""
    with PostgresSaver(url, schema="agents") as saver:
        play(saver, "old", 2)
    tables.execute("ALTER SCHEMA agents RENAME TO archive")
    with PostgresSaver(url, schema="agents") as saver:
        play(saver, "new", 3)


@pytest.mark.parametrize("api", APIS)
def test_a_saver_does_not_reach_through_functions_into_another_schema(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, schema="archive") as saver:
            calls = api(saver)
            for call in (calls.aget(thread("new")), calls.adelete_thread("new"), calls.aput(thread("x"), *step(0))):
                with pytest.raises(SchemaError, match=r'schema "archive" use the tables of "agents".*setup\(\)'):
                    await call
            await calls.asetup()
            assert [each.id for each in (await calls.alist_threads()).threads] == ["old"]
            assert await calls.aget(thread("new")) is None
            await aplay(calls, "old", 4)
        async with PostgresSaver(url, schema="agents") as saver:
            assert await api(saver).aget(thread("old")) is None
            assert await asyncio.to_thread(count, saver, "new") == 2

    _renamed(url, tables)
    asyncio.run(body())


def test_the_printed_script_mends_functions_of_another_schema(url: str, tables: psycopg.Connection) -> None:
    _renamed(url, tables)
    with PostgresSaver(url, schema="archive") as saver:
        with pytest.raises(SchemaError, match=r"ddl\('archive', since=1\)"):
            saver.get(thread("old"))
        tables.execute(ddl("archive", since=1).encode())
        assert count(saver, "old") == 1


def test_functions_of_a_schema_that_the_role_may_not_use_are_mended_as_well(
    url: str, tables: psycopg.Connection
) -> None:
    tables.execute("CREATE ROLE writer LOGIN")
    try:
        tables.execute(f"GRANT CREATE ON DATABASE {tables.info.dbname} TO writer".encode())
        theirs = make_conninfo(url, user="writer")
        with PostgresSaver(theirs, schema="agents") as saver:
            play(saver, "old", 2)
        tables.execute("ALTER SCHEMA agents RENAME TO archive")
        tables.execute("CREATE SCHEMA agents")
        with PostgresSaver(theirs, schema="archive") as saver:
            with pytest.raises(SchemaError, match='"agents"'):
                saver.get(thread("old"))
            saver.setup()
            assert count(saver, "old") == 1
    finally:
        tables.execute("DROP OWNED BY writer")
        tables.execute("DROP ROLE writer")


def test_a_role_that_does_not_own_the_functions_is_given_the_script(url: str, tables: psycopg.Connection) -> None:
    tables.execute("CREATE ROLE writer LOGIN")
    try:
        _renamed(url, tables)
        tables.execute("GRANT USAGE ON SCHEMA archive TO writer")
        tables.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA archive TO writer")
        with PostgresSaver(make_conninfo(url, user="writer"), schema="archive") as saver:
            with pytest.raises(StoreError, match=r"ddl\('archive', since=1\)"):
                saver.setup()
            tables.execute(ddl("archive", since=1).encode())
            saver.setup()
            assert count(saver, "old") == 1
    finally:
        tables.execute("DROP OWNED BY writer")
        tables.execute("DROP ROLE writer")


def test_the_search_path_and_the_schema_may_lead_to_the_same_tables(url: str, tables: psycopg.Connection) -> None:
    tables.execute("CREATE SCHEMA agents")
    in_path = make_conninfo(url, options="-c search_path=agents")
    with PostgresSaver(in_path) as saver:
        play(saver, "one", 2)
    with PostgresSaver(in_path, schema="agents") as saver:
        assert count(saver, "one") == 1
    with PostgresSaver(url, schema="agents") as saver:
        with pytest.raises(SchemaError, match="the connection's search path"):
            saver.get(thread("one"))
        saver.setup()
        assert count(saver, "one") == 1
    with PostgresSaver(in_path) as saver:
        assert count(saver, "one") == 1


def test_a_saver_that_is_read_only_does_not_mend_functions(url: str, tables: psycopg.Connection) -> None:
    _renamed(url, tables)
    with PostgresSaver(url, schema="archive", read_only=True) as saver, pytest.raises(SchemaError, match='"agents"'):
        saver.setup()


@pytest.mark.parametrize("api", APIS)
def test_setup_of_a_running_saver_makes_tables_that_were_dropped(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, schema="agents") as saver:
            calls = api(saver)
            await aplay(calls, "one", 2)
            tables.execute("DROP SCHEMA agents CASCADE")
            await calls.asetup()
            assert await calls.aget(thread("one")) is None
            await aplay(calls, "one", 3)
            assert await asyncio.to_thread(count, saver, "one") == 2

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("in_use", [True, False])
def test_setup_makes_functions_that_are_missing(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any], *, in_use: bool
) -> None:
    async def body() -> None:
        async with PostgresSaver(url, schema="agents") as before, PostgresSaver(url, schema="agents") as new:
            config = await aplay(before, "one", 2)
            for name in ("find_1", "add_one_1", "position_1"):
                tables.execute(f"DROP FUNCTION agents.threadmark_{name}".encode())
            calls = api(before if in_use else new)
            with pytest.raises(StoreError, match=r"find_1.*setup\(\)"):
                await calls.aget(thread("one"))
            await calls.asetup()
            assert await calls.aget(thread("one")) is not None
            await calls.aput(config, *step(2))
            assert await asyncio.to_thread(count, before, "one") == 2

    asyncio.run(body())


def test_setup_leaves_functions_that_are_in_order_as_they_are(url: str, tables: psycopg.Connection) -> None:
    def made() -> Any:
        query = "SELECT proname, oid, xmin::text FROM pg_proc WHERE proname LIKE 'threadmark%' ORDER BY 1"
        return tables.execute(query).fetchall()

    with PostgresSaver(url) as saver:
        saver.setup()
        before = made()
        saver.setup()
    assert made() == before != []


def test_functions_that_a_switch_has_retired_are_not_made_again(
    url: str, tables: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresSaver(url) as saver:
        saver.setup()
    next_format.install(monkeypatch)
    with PostgresSaver(url) as saver:
        saver.setup()
        saver.upgrade()
        tables.execute("DROP FUNCTION threadmark_find_1")
        saver.setup()
        assert saver.get(thread("one")) is None
        for name in migrations.GATES:
            (found,) = tables.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [f"threadmark_{name}"])
            assert "later format" in found[0]


_ANOTHERS = {
    "a table": "CREATE TABLE threadmark_migration (id bigint)",
    "a view": "CREATE VIEW threadmark_migration AS SELECT 1 AS id",
    "another table": "CREATE TABLE threadmark_head (id bigint)",
    "a type": "CREATE TYPE threadmark_added_1 AS (id bigint)",
    "a function": "CREATE FUNCTION threadmark_gate_1() RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
    "a procedure": "CREATE PROCEDURE threadmark_gate_1() LANGUAGE sql AS 'SELECT 1'",
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("theirs", _ANOTHERS.values(), ids=_ANOTHERS)
def test_an_object_of_another_application_is_named(
    url: str, tables: psycopg.Connection, theirs: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            for _ in range(2):
                with pytest.raises(
                    SchemaError, match=r"threadmark_\w+.* belongs to another application.* another schema"
                ):
                    await api(saver).aput(thread("one"), *step(0))
        async with PostgresSaver(url, schema="agents") as saver:
            await aplay(api(saver), "one", 2)

    tables.execute(theirs.encode())
    asyncio.run(body())


def test_setup_of_a_saver_that_is_read_only_names_the_saver_that_makes_tables(url: str) -> None:
    with PostgresSaver(url, read_only=True) as saver, pytest.raises(SchemaError, match=r"setup\(\) of a saver without"):
        saver.setup()
