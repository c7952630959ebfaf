"""Deleted content is not in the file any more, nor in its log; and neither costs more in a longer conversation."""

import asyncio
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from threadmark import Conversations
from threadmark_sqlite import SqliteSaver

TALK = {"thread_id": "talk", "user_id": "ada"}
MARK = "saffron-heliotrope"
RANDOM = os.urandom(6000)
"""It is not compressed, as there is nothing to gain, and so would be found as it is."""


def _message(message_id: str, mark: str = MARK) -> dict[str, Any]:
    return {"id": message_id, "content": f"{mark}, {mark}", "data": RANDOM}


def _stored(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.iterdir()))


def _is_there(folder: Path) -> bool:
    """Whether anything of a marked message is in the file, its log or its index."""
    stored = _stored(folder)
    return MARK.encode() in stored or any(RANDOM[start : start + 24] in stored for start in range(0, 5900, 100))


def _talked(saver: SqliteSaver) -> Conversations:
    talk = Conversations(saver)
    for number in range(30):
        talk.put_messages(TALK, [{"id": f"m{number}", "content": f"{number} " * 60}])
    talk.put_messages(TALK, [_message("long"), {"id": "short", "content": MARK}])
    talk.put_messages(TALK, [{"id": "last", "content": "x"}])
    return talk


def _delete(talk: Conversations) -> None:
    assert talk.delete_message(TALK, "long") is True
    assert talk.delete_message(TALK, "short") is True


def _replace(talk: Conversations) -> None:
    talk.put_messages(TALK, [{"id": "short", "content": "another"}, {"id": "long", "content": "another"}])


def _drop(talk: Conversations) -> None:
    assert talk.delete_thread(TALK) is True


@pytest.mark.parametrize(("remove", "left"), [(_delete, 31), (_replace, 33), (_drop, 0)])
@pytest.mark.parametrize("given", ["path", "connection"])
def test_a_message_that_was_removed_is_not_in_the_file(
    given: str, remove: Callable[[Conversations], None], left: int, tmp_path: Path
) -> None:
    path = tmp_path / "talk.db"
    with (
        closing(sqlite3.connect(path, check_same_thread=False)) as connection,
        SqliteSaver(path if given == "path" else connection) as saver,
    ):
        talk = _talked(saver)
        assert _is_there(tmp_path)
        remove(talk)
        assert not _is_there(tmp_path)
        assert len(talk.get_messages(TALK)) == left


def test_a_message_is_not_in_the_file_of_an_aiosqlite_connection(tmp_path: Path) -> None:
    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "talk.db") as connection:
            saver = SqliteSaver(connection)
            talk = await asyncio.to_thread(_talked, saver)
            assert _is_there(tmp_path)
            await talk.adelete_message(TALK, "long")
            await talk.adelete_message(TALK, "short")
            assert not _is_there(tmp_path)

    asyncio.run(main())


def test_a_reader_in_the_way_leaves_it_in_the_log_until_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    with SqliteSaver(path) as saver, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        talk = _talked(saver)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM threadmark_checkpoint").fetchall()
        _delete(talk)
        assert _is_there(tmp_path)
        talk.put_messages(TALK, [{"id": "during", "content": "x"}])
        assert _is_there(tmp_path)
        reader.execute("COMMIT")
        talk.put_messages(TALK, [{"id": "after", "content": "x"}])
        assert not _is_there(tmp_path)


def test_vacuum_leaves_nothing_of_whatever_was_deleted(tmp_path: Path) -> None:
    """SQLite moves rows between pages, and may leave a copy in the unused part of one: docs/how-to/conversations.md."""
    chance = random.Random(7)
    path = tmp_path / "talk.db"
    with SqliteSaver(path, durability="normal") as saver:
        talk = Conversations(saver)
        marks = [f"mark-{number:05}-{chance.getrandbits(40):x}" for number in range(150)]
        for number, mark in enumerate(marks):
            size = chance.choice((1, 5, 7))
            talk.put_messages(TALK, [{"id": f"m{number}", "content": mark * size}])
        gone = chance.sample(range(len(marks)), 100)
        for number in gone:
            assert talk.delete_message(TALK, f"m{number}")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    stored = _stored(tmp_path)
    assert [number for number in gone if marks[number].encode() in stored] == []
    assert all(mark.encode() in stored for number, mark in enumerate(marks) if number not in gone)


def test_neither_a_message_nor_its_removal_costs_more_in_a_longer_conversation() -> None:
    """Counted in instructions of SQLite's virtual machine."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    def cost(method: Callable[..., Any], *arguments: Any) -> int:
        nonlocal count
        count = 0
        method(TALK, *arguments)
        return count

    with (
        closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection,
        SqliteSaver(connection) as saver,
    ):
        talk = Conversations(saver)
        costs = []
        for length in (100, 2000):
            talk.put_messages(TALK, [{"content": "x"} for _ in range(length)])
            connection.set_progress_handler(step, 1)
            last = {"id": f"last of {length}", "content": "x" * 300}
            appended, replaced = cost(talk.put_messages, [last]), cost(talk.put_messages, [last])
            page, removed = cost(talk.get_messages), cost(talk.delete_message, last["id"])
            connection.set_progress_handler(None, 0)
            costs.append((appended, replaced, page, removed))
    assert min(costs[0]) > 20
    assert all(long < 1.5 * short for short, long in zip(*((a, b, d) for a, b, _, d in costs), strict=True)), costs
    assert costs[1][2] - costs[0][2] < 20 * 1900, costs  # a page counts the messages, so that none is missing unseen
