"""The commands of docs/how-to/after-the-move.md: the old tables go, the file shrinks, and goes on shrinking."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver as LangGraphsPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver as LangGraphsSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from postgres.cluster import shared
from threadmark_langgraph import PostgresSaver, SqliteSaver, migrate

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "after-the-move.md").read_text(encoding="utf-8")
_THEIR_TABLES = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'checkpoint%'"
THREAD: Any = {"configurable": {"thread_id": "1"}}


def _answer(_: MessagesState) -> MessagesState:
    return {"messages": [AIMessage("x" * 3000)]}


def _talk(saver: Any) -> None:
    builder: Any = StateGraph(MessagesState)
    graph = builder.add_node("answer", _answer).add_edge(START, "answer").compile(checkpointer=saver)
    for _ in range(10):
        graph.invoke({"messages": [HumanMessage("Hi")]}, THREAD)


def _block(language: str, word: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [str(block) for block in blocks if word in block]
    return found


def test_the_old_tables_of_a_file_go_and_their_space_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "chats.db"
    with LangGraphsSqliteSaver.from_conn_string("chats.db") as old:
        _talk(old)
    migrate("chats.db", "chats.db")
    before = file.stat().st_size
    exec(_block("python", "VACUUM"), {})  # noqa: S102 - running the page is the test
    after = file.stat().st_size
    assert after < before / 4
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    with SqliteSaver("chats.db", on_unmoved="raise") as checkpointer:
        assert len(list(checkpointer.list(THREAD))) == 30
        assert checkpointer.saver.verify().problems == []
        checkpointer.delete_thread("1")
    assert file.stat().st_size < after


def test_the_old_tables_of_a_server_go() -> None:
    server = shared()
    server.execute("DROP DATABASE IF EXISTS after_the_move WITH (FORCE)")
    url = server.database("after_the_move")
    try:
        with LangGraphsPostgresSaver.from_conn_string(url) as old:
            old.setup()
            _talk(old)
        migrate(url, url)
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute(_THEIR_TABLES).fetchone() == (4,)
            connection.execute(_block("sql", "checkpoint_blobs").encode())
            assert connection.execute(_THEIR_TABLES).fetchone() == (0,)
        with PostgresSaver.from_conn_string(url) as checkpointer:
            assert len(list(checkpointer.list(THREAD))) == 30
    finally:
        server.execute("DROP DATABASE IF EXISTS after_the_move WITH (FORCE)")
