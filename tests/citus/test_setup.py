"""`setup()` makes functions again, on every node, and calls of them go whole to the node of their thread as before."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from citus.nodes import Nodes, shared_nodes, skip_without_citus
from postgres.steps import count, play, step, thread
from threadmark import SchemaError, StoreError
from threadmark_postgres import PostgresSaver, ddl
from threadmark_postgres.schema import quoted

skip_without_citus()

_FUNCTIONS = """
SELECT p.proname, p.prosrc, p.proconfig, o.distribution_argument_index, o.colocationid = t.colocationid
FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
LEFT JOIN pg_dist_object AS o ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
LEFT JOIN pg_dist_partition AS t ON t.logicalrelid = (
    SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'threadmark_thread'
)
WHERE n.nspname = %s
ORDER BY 1
"""


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = shared_nodes()
    yield nodes
    for schema in ("agents", "archive"):
        nodes.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def _functions(nodes: Nodes, schema: str) -> list[list[Any]]:
    """The functions that each node has, and how their calls are delegated."""
    found = []
    for node in (nodes.coordinator, *nodes.workers):
        with psycopg.connect(node.url) as connection:
            rows = connection.execute(_FUNCTIONS, [schema]).fetchall()
        found.append([(name, text.replace(quoted(schema), "tm"), *others) for name, text, *others in rows])
    return found


def _renamed(nodes: Nodes) -> list[list[Any]]:
    """Make tables in a schema that is then renamed, and tables under its name. Returns the functions as they were."""
    with PostgresSaver(nodes.url, schema="agents") as saver:
        saver.setup(distribute="citus")
        play(saver, "old", 2)
    made = _functions(nodes, "agents")
    nodes.execute("ALTER SCHEMA agents RENAME TO archive")
    with PostgresSaver(nodes.url, schema="agents") as saver:
        saver.setup(distribute="citus")
        play(saver, "new", 3)
    return made


def test_functions_that_are_missing_are_made_on_every_node(nodes: Nodes) -> None:
    with PostgresSaver(nodes.url, schema="agents") as saver:
        saver.setup(distribute="citus")
        config = play(saver, "one", 2)
        made = _functions(nodes, "agents")
        assert made[0]
        assert made == 3 * [made[0]]
        for name in ("find_1", "add_one_1", "position_1"):
            nodes.execute(f"DROP FUNCTION agents.threadmark_{name}")
        with pytest.raises(StoreError, match=r"find_1.*setup\(\)"):
            saver.get(thread("one"))
        saver.setup()
        assert _functions(nodes, "agents") == made
        saver.put(config, *step(2))
        assert count(saver, "one") == 2


def test_functions_of_another_schema_are_mended_on_every_node(nodes: Nodes) -> None:
    made = _renamed(nodes)
    with PostgresSaver(nodes.url, schema="archive") as saver:
        with pytest.raises(SchemaError, match='"agents"'):
            saver.get(thread("new"))
        saver.setup()
        assert _functions(nodes, "archive") == _functions(nodes, "agents") == made
        assert [each.id for each in saver.list_threads().threads] == ["old"]
        play(saver, "old", 4)
    for node in nodes.workers:
        with PostgresSaver(node.url, schema="archive") as saver:
            assert saver.get(thread("new")) is None
            assert count(saver, "old") == 3


def test_the_script_that_the_error_names_mends_them_on_every_node(nodes: Nodes) -> None:
    made = _renamed(nodes)
    script = ddl("archive", distribute="citus", since=1)
    with PostgresSaver(nodes.url, schema="archive") as saver:
        with pytest.raises(SchemaError, match=r"ddl\('archive', distribute='citus', since=1\)"):
            saver.get(thread("old"))
        nodes.execute(script)
        assert _functions(nodes, "archive") == made
        assert count(saver, "old") == 1


def test_a_role_that_does_not_own_the_functions_is_given_the_script(nodes: Nodes) -> None:
    made = _renamed(nodes)
    nodes.execute("CREATE ROLE writer LOGIN")
    try:
        for schema in ("agents", "archive"):
            nodes.execute(f"GRANT USAGE ON SCHEMA {schema} TO writer")
            nodes.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO writer")
        with PostgresSaver(make_conninfo(nodes.url, user="writer"), schema="archive") as saver:
            with pytest.raises(StoreError, match=r"ddl\('archive', distribute='citus', since=1\)"):
                saver.setup()
            nodes.execute(ddl("archive", distribute="citus", since=1))
            saver.setup()
            assert _functions(nodes, "archive") == made
            assert count(saver, "old") == 1
    finally:
        nodes.execute("DROP OWNED BY writer")
        nodes.execute("DROP ROLE writer")
