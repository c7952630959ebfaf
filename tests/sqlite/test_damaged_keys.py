"""Every bit of every key of messages and checkpoints: a read is right, or names the missing part."""

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from threadmark import Conversations, CorruptDataError
from threadmark.names import MESSAGES_NS
from threadmark_conformance.engine import at, checkpoint
from threadmark_sqlite import SqliteSaver

IDS = ("first", "second", "third", "fourth")
TALK = {"thread_id": "thread"}
KEYS = ("thread", "ns", "id", "rank")


@pytest.fixture(scope="module")
def saver(database: sqlite3.Connection) -> SqliteSaver:
    saver = SqliteSaver(database, cache_bytes=0)
    Conversations(saver).put_messages(TALK, [{"id": each, "text": f"{each} " * 30} for each in IDS])
    config: Any = at("thread")
    for number in range(4):
        config = saver.put(config, checkpoint({"n": number}), {"step": number}, {"n": number})
    return saver


def flips(database: sqlite3.Connection, where: str) -> Iterator[str]:
    """Flip each bit of each key of one row, one after the other."""
    ((number, *keys),) = database.execute(f"SELECT number, {', '.join(KEYS)} FROM threadmark_checkpoint WHERE {where}")
    for name, value in zip(KEYS, keys, strict=True):
        for each in damaged(value):
            database.execute(f"UPDATE threadmark_checkpoint SET {name} = ? WHERE number = ?", (each, number))
            if isinstance(each, bytes):
                as_text = f"UPDATE threadmark_checkpoint SET {name} = CAST({name} AS TEXT) WHERE number = ?"
                database.execute(as_text, (number,))
            yield f"{name}: {each!r}"
            database.execute(f"UPDATE threadmark_checkpoint SET {name} = ? WHERE number = ?", (value, number))
    database.execute("CREATE TEMP TABLE kept AS SELECT * FROM threadmark_checkpoint WHERE number = ?", (number,))
    database.execute("DELETE FROM threadmark_checkpoint WHERE number = ?", (number,))
    yield "the row is gone"
    database.execute("INSERT INTO threadmark_checkpoint SELECT * FROM kept")
    database.execute("DROP TABLE kept")


def damaged(value: object) -> Iterator[int | bytes]:
    """The value of a column with each of its bits flipped, the first eight of a number."""
    if isinstance(value, int):
        yield from (value ^ 1 << bit for bit in range(8))
    elif isinstance(value, str):
        raw = value.encode()
        for bit in range(8 * len(raw)):
            changed = bytearray(raw)
            changed[bit // 8] ^= 1 << bit % 8
            yield bytes(changed)


def expect(read: Callable[[], Any], right: Any, what: str) -> None:
    """A read is right, or it is an error that names the damage."""
    try:
        found = read()
    except CorruptDataError:
        return
    assert found == right, what


@pytest.mark.parametrize("which", IDS)
def test_no_message_vanishes(which: str, saver: SqliteSaver, database: sqlite3.Connection) -> None:
    talks = Conversations(saver)
    messages = talks.get_messages(TALK)
    assert [each["id"] for each in messages] == [*IDS]
    count = 0
    for what in flips(database, f"ns = '{MESSAGES_NS}' AND id = '{which}'"):
        expect(lambda: talks.get_messages(TALK), messages, what)
        expect(lambda: talks.get_messages(TALK, search="th"), [messages[2], messages[3]], what)
        for message in messages:
            expect(lambda each=message: talks.get_message(TALK, each["id"]), message, what)  # type: ignore[misc]
        assert saver.verify("thread").problems, what
        count += 1
    assert count > 300
    assert talks.get_messages(TALK) == messages


@pytest.mark.parametrize("step", range(4))
def test_no_checkpoint_vanishes(step: int, saver: SqliteSaver, database: sqlite3.Connection) -> None:
    reads = [partial(read, saver) for read in (history_of, tree_of, matches_of)]
    before = [read() for read in reads]
    for what in flips(database, f"ns = '' AND json_extract(metadata, '$.step') = {step}"):
        for read, right in zip(reads, before, strict=True):
            expect(read, right, what)
    assert [read() for read in reads] == before


def history_of(saver: SqliteSaver) -> Any:
    found = saver.history("thread")
    if found.problems or any(entry.problem for entry in found.entries):
        raise CorruptDataError("it says so")
    return found.entries


def tree_of(saver: SqliteSaver) -> Any:
    found = saver.tree("thread")
    if found.problems:
        raise CorruptDataError("it says so")
    return len(found.nodes)  # it reads no row whole: `history` names the damaged ones


def matches_of(saver: SqliteSaver) -> Any:
    found = saver.search("thread", "step")
    if found.problems:
        raise CorruptDataError("it says so")
    return found.matches
