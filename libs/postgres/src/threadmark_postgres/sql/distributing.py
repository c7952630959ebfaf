"""Tables and functions on a Citus cluster: each thread is on one of its nodes, with all its rows.

A call of a distributed function goes as a whole to the node that has its thread.
"""

from collections.abc import Iterator

from threadmark_postgres.functions import text_of
from threadmark_postgres.schema import in_schema

# In a transaction that creates several objects, Citus must use one connection to each node.
ONE_AFTER_ANOTHER = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'"


def by_thread(table: str, schema: str | None) -> str:
    """Return the statement that divides a table by thread. All rows of a thread are on one node."""
    beside = "none" if table == "thread" else "tm.thread"
    name, beside = _literal(f"tm.{table}", schema), _literal(beside, schema)
    return f"SELECT create_distributed_table({name}, 'thread_id', colocate_with => {beside})"


def everywhere(table: str, schema: str | None) -> str:
    """Return the statement that gives every node a copy of a table."""
    return f"SELECT create_reference_table({_literal(f'tm.{table}', schema)})"


def function(name: str, schema: str | None) -> Iterator[str]:
    """Return the statements that give every node a function, and run calls about one thread on its node.

    Citus 12.1.11, 13.2.1 and 14.0 keep a plan for each call and find none of them again, until the session ends (its
    pull request 8371, fixed by 8824); plans that are made for one call only are not kept.
    """
    text = text_of(name)
    if "LANGUAGE plpgsql" in text:
        yield f"ALTER FUNCTION tm.{name} SET plan_cache_mode = force_custom_plan"
    place = f"{_literal(f'tm.{name}', schema)}::regproc::oid::regprocedure"
    if "p_thread text" in text:
        beside = _literal("tm.thread", schema)
        yield f"SELECT create_distributed_function({place}, 'p_thread', colocate_with => {beside})"
    else:
        yield f"SELECT create_distributed_function({place})"


def _literal(name: str, schema: str | None) -> str:
    quoted = in_schema(name, schema).replace("'", "''")
    return f"'{quoted}'"
