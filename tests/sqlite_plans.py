"""How SQLite goes about the statements of a program, and playing one on a connection."""

import sqlite3
from collections.abc import Callable
from typing import Any

from threadmark.program import Program, Step, play
from threadmark_sqlite.steps import Direct, Many, Query


def plan_of(connection: sqlite3.Connection, program: Program[Any]) -> list[str]:
    """How SQLite goes about the statements of a program."""
    plan: list[str] = []

    def answer(step: Step) -> Any:
        if isinstance(step, Direct):
            return None
        assert isinstance(step, Query)
        plan.extend(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {step.sql}", step.params))
        return connection.execute(step.sql, step.params).fetchall()

    play(program, answer)
    return plan


def is_walk(plan: list[str]) -> bool:
    """Whether all is found by keys and indexes, in the order of one."""
    return not any(line.startswith("SCAN") and "INDEX" not in line for line in plan) and not sorts(plan)


def sorts(plan: list[str]) -> bool:
    """Whether all rows are sorted."""
    return any("TEMP B-TREE FOR ORDER BY" in line for line in plan)


def sorts_groups(plan: list[str]) -> bool:
    """Whether rows are sorted among those that an index has in one place."""
    return any("TEMP B-TREE FOR RIGHT PART" in line or "TEMP B-TREE FOR LAST" in line for line in plan)


def on_connection(connection: sqlite3.Connection) -> Callable[[Step], Any]:
    """Return a function that executes the steps of a program."""

    def answer(step: Step) -> Any:
        if isinstance(step, Many):
            return connection.executemany(step.sql, step.params)
        if isinstance(step, Direct):
            return None
        assert isinstance(step, Query)
        return connection.execute(step.sql, step.params).fetchall()

    return answer
