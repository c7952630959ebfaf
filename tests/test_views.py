"""Every attribute and method of every view of one owner: none leads to another owner's thread.

A new attribute or method fails here until you have listed an attacker's use of it.
"""

import asyncio
import inspect
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import postgres.backends
import redis_backend.backends
import threadmark
from threadmark import Conversations, MemorySaver, Sessions, States, ThreadmarkError
from threadmark.serde import Serde
from threadmark.types import SessionCheckpoint, SessionMetadata
from threadmark_conformance.engine import at, checkpoint
from threadmark_langgraph import AsyncSqliteSaver, InMemorySaver, SqliteSaver, wrap

SECRET = "what Ada tells nobody, and long enough for a segment. " * 4
ADAS: Any = at("adas")
TALK = {"thread_id": "adas", "user_id": "eve"}
PLANTED = checkpoint({"text": "planted"})
SOON = timedelta(microseconds=1)

Call = Callable[[Any, str], Any]
"""Calls a method, by its name, of a view."""


def with_(*args: Any, **options: Any) -> Call:
    return lambda view, name: getattr(view, name)(*args, **options)


def leasing(view: Any, name: str) -> Any:
    with getattr(view, name)("adas", on_busy="raise"):
        return None


def in_transaction(view: Any, name: str) -> Any:
    """Everything that the saver of a transaction finds and does."""
    with getattr(view, name)() as tx:
        assert not any(hasattr(tx, each) for each in public(tx) if each in ("driver", "held", "store"))
        saver = tx.saver
        found = [called(each, saver, "") for each in (lambda it, _: it.get_tuple(ADAS), lambda it, _: it.list(None))]
        called(lambda it, _: it.put(ADAS, PLANTED, {}, {"text": 9}), saver, "")
        called(lambda it, _: it.delete_thread("adas"), saver, "")
        return found


def within(view: Any, name: str) -> Any:
    """The same in a transaction of a connection to the view's file, if it has one."""
    found = re.search(r"SQLite database '([^']+)'", repr(view))
    with closing(sqlite3.connect(found[1] if found else ":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        saver = getattr(view, name)(connection)
        answers = [called(each, saver, "") for each in (lambda it, _: it.get_tuple(ADAS), lambda it, _: it.list(None))]
        called(lambda it, _: it.delete_thread("adas"), saver, "")
        connection.execute("COMMIT")
        return answers


OF_SAVERS: Mapping[str, Call] = {
    **dict.fromkeys(("get", "get_tuple", "get_checkpoint_ref", "list", "tree"), with_(ADAS)),
    **dict.fromkeys(("restore", "delete_checkpoint"), with_(ADAS)),
    **dict.fromkeys(("delete_thread", "verify", "stats", "get_thread", "create_thread"), with_("adas")),
    **dict.fromkeys(
        ("list_checkpoint_refs", "list_orphan_writes", "list_threads", "count_threads", "without_classes"), with_()
    ),
    **dict.fromkeys(
        ("has_tables", "has_only_langgraph_data", "report", "setup", "status", "reconcile", "sync", "upgrade"), with_()
    ),
    **dict.fromkeys(("promote", "drain"), with_()),
    "put": with_(ADAS, PLANTED, {}, {"text": 9}),
    "put_writes": with_(ADAS | {"configurable": {**ADAS["configurable"], "checkpoint_id": "x"}}, [("text", 1)], "t"),
    "delete_for_runs": with_(["adas run"]),
    "copy_thread": with_("adas", "stolen"),
    "rename_thread": with_("adas", "stolen"),
    "prune": with_(None),
    "apply_retention": with_(idle_for=SOON, keep_last=1, max_bytes=0),
    "unfinished": with_(idle_for=0),
    "get_delta_channel_history": with_(config=ADAS, channels=["text"]),
    "get_next_version": with_(None),
    "reencrypt": with_(plain="seal"),
    "extract": with_(ADAS, "text"),
    "extract_items": with_(ADAS, channel="text"),
    "history": with_(ADAS, ns=None),
    "diff": with_(ADAS, ADAS),
    "blame": with_(ADAS, "text"),
    "search": with_(ADAS, "Ada"),
    "fork": with_(ADAS, {"text": "planted"}, as_thread="stolen"),
    "update_thread": with_("adas", owner="eve"),
    "lease": leasing,
    "transaction": in_transaction,
    "within": within,
    "with_serde": with_(Serde()),
    "for_owner": with_("ada"),
    "with_allowlist": with_([]),
}
OF_SESSIONS: Mapping[str, Call] = {
    "save": with_(SessionCheckpoint(SessionMetadata(session_id="adas"), "planted")),
    **dict.fromkeys(("load", "list", "delete"), with_("adas")),
    **dict.fromkeys(("clear_all", "stats"), with_()),
}
OF_STATES: Mapping[str, Call] = {
    "save": with_("adas", "planted"),
    **dict.fromkeys(("load", "exists", "delete", "history"), with_("adas")),
    **dict.fromkeys(("list", "size", "ping"), with_()),
    "cleanup_old": with_(SOON),
}
OF_TALKS: Mapping[str, Call] = {
    "put_messages": with_(TALK, ["planted"]),
    "get_messages": with_(TALK),
    **dict.fromkeys(("get_message", "delete_message"), with_(TALK, "a message")),
    **dict.fromkeys(("put_state", "put_state_cache"), with_(TALK, {"text": "planted"})),
    **dict.fromkeys(("get_state", "get_state_cache", "clear_state", "get_thread", "delete_thread"), with_(TALK)),
    "get_threads": with_(),
}
CLOSES = {"close", "aclose"}
HOLDS_ROWS = {"sqlite3", "aiosqlite", "psycopg", "psycopg_pool", "redis"}
"""Packages whose objects lead to everything."""
MAKES_SAVERS = {"from_conn_string", "from_config"}
"""Class methods that open another database."""


@contextmanager
def langgraphs_names(folder: Path) -> Iterator[Any]:
    connection = sqlite3.connect(folder / "names.db", check_same_thread=False)
    with closing(connection), SqliteSaver(connection) as saver:
        yield saver


@contextmanager
def wrapped(_: Path) -> Iterator[Any]:
    with MemorySaver() as saver:
        yield wrap(saver)


def opened_by(backend: Any) -> Callable[[Path], Any]:
    """Return a function that opens a saver of a backend that other tests use."""

    @contextmanager
    def opened(folder: Path) -> Iterator[Any]:
        with backend(folder) as opener, opener() as saver:
            yield saver

    return opened


SAVERS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda _: MemorySaver(),
    "sqlite": lambda folder: threadmark.open(f"sqlite:///{folder}/own.db"),
    "postgres": opened_by(postgres.backends.from_url),
    "redis": opened_by(redis_backend.backends.BACKENDS["single"]),
    "cached": lambda folder: threadmark.cached(f"sqlite:///{folder}/cached.db", "memory:"),
    "replicated": lambda folder: threadmark.replicated(f"sqlite:///{folder}/a.db", f"sqlite:///{folder}/b.db"),
}
BY_LANGGRAPHS_NAMES: dict[str, Callable[[Path], Any]] = {
    "LangGraph's in memory": lambda _: InMemorySaver(),
    "LangGraph's SQLite": langgraphs_names,
    "LangGraph's asyncio SQLite": lambda folder: AsyncSqliteSaver(str(folder / "aio.db")),
    "wrapped": wrapped,
}
VIEWS: Mapping[str, tuple[Callable[[Any], Any], Mapping[str, Call]]] = {
    "as it is": (lambda saver: saver.for_owner("eve"), OF_SAVERS),
    "with_serde": (lambda saver: saver.for_owner("eve").with_serde(Serde()), OF_SAVERS),
    "with_serde before": (lambda saver: saver.with_serde(Serde()).for_owner("eve"), OF_SAVERS),
    "without_classes": (lambda saver: saver.for_owner("eve").without_classes(), OF_SAVERS),
    "without_classes before": (lambda saver: saver.without_classes().for_owner("eve"), OF_SAVERS),
    "Sessions": (lambda saver: Sessions(saver.for_owner("eve")), OF_SESSIONS),
    "States": (lambda saver: States(saver.for_owner("eve")), OF_STATES),
    "Conversations": (lambda saver: Conversations(saver.for_owner("eve")), OF_TALKS),
}


def public(view: Any) -> set[str]:
    """The names of its attributes, those that LangGraph's own base class has included."""
    return {name for name in dir(view) if not name.startswith("_")}


async def collected(answer: Any) -> Any:
    """The answer of a method, awaited or read to its end."""
    if inspect.isawaitable(answer):
        return await answer
    if isinstance(answer, AsyncIterator):
        return [each async for each in answer]
    return answer


def called(call: Call, view: Any, name: str) -> Any:
    """The answer of a call. One that is refused answers nothing."""
    with suppress(ThreadmarkError):
        answer = call(view, name)
        if isinstance(answer, Iterator):
            return list(answer)
        return asyncio.run(collected(answer)) if inspect.isawaitable(answer) or inspect.isasyncgen(answer) else answer
    return None


def expect_nothing_of_adas(view: Any, calls: Mapping[str, Call], seen: set[int]) -> None:
    """Try everything that a view has."""
    seen.add(id(view))
    for name in sorted(public(view) - CLOSES - MAKES_SAVERS):
        member = getattr(view, name)
        if not callable(member):
            expect_nothing_behind(member, seen)
            continue
        blocking = name[1:] if name not in calls and name.startswith("a") else name
        assert blocking in calls, f"what would an attacker do with {type(view).__name__}.{name}?"
        answer = called(calls[blocking], view, name)
        assert "Ada" not in repr(answer), name
        assert "adas run" not in repr(answer), name
        expect_nothing_behind(answer, seen)


def expect_nothing_behind(found: Any, seen: set[int]) -> None:
    """Go on with savers; anything else must be known to hold no rows."""
    if id(found) in seen:
        return
    if hasattr(found, "get_tuple"):
        called(lambda saver, _: saver.get_tuple(ADAS), found, "")
        assert "Ada" not in repr(called(lambda saver, _: saver.get_tuple(ADAS), found, ""))
        assert "Ada" not in repr(called(lambda saver, _: list(saver.list(None)), found, ""))
        assert not called(lambda saver, _: saver.delete_thread("adas"), found, "")
        return
    assert type(found).__module__.partition(".")[0] not in HOLDS_ROWS, found


@pytest.mark.parametrize(
    ("saver", "view"), [*product(SAVERS, VIEWS), *product(BY_LANGGRAPHS_NAMES, ["as it is"])], ids=str
)
def test_nothing_leads_to_the_thread_of_another_owner(saver: str, view: str, tmp_path: Path) -> None:
    make, calls = VIEWS[view]
    with ExitStack() as stack:
        whole = stack.enter_context((SAVERS | BY_LANGGRAPHS_NAMES)[saver](tmp_path))
        config = {"configurable": {"thread_id": "adas", "checkpoint_ns": "", "user_id": "ada"}}
        first = whole.put(config, checkpoint({"text": SECRET}), {"run_id": "adas run"}, {"text": 1})
        last = whole.put(first, checkpoint({"text": SECRET + "2"}), {"run_id": "adas run"}, {"text": 2})
        whole.put_writes(last, [("text", SECRET)], "task")
        before = list(whole.list({"configurable": {"thread_id": "adas"}}))
        assert len(before) == 2
        expect_nothing_of_adas(make(whole), calls, {id(whole)})
        assert list(whole.list({"configurable": {"thread_id": "adas"}})) == before
        assert list(whole.list({"configurable": {"thread_id": "stolen"}})) == []
