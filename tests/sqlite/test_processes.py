"""Several processes on one file: no lost write, no start that fails, and acknowledged writes survive a kill."""

import random
import signal
import time
from pathlib import Path

import pytest

from children import child, finished, line_from, send_line
from length import times
from sqlite_file import looking_at
from threadmark_conformance.engine import at
from threadmark_sqlite import SqliteSaver
from threadmark_sqlite.migrations import CURRENT

START = """
import sys
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
name = sys.argv[1]
print("ready", flush=True)
for line in sys.stdin:
    with SqliteSaver(line.strip()) as saver:
        saver.put(at(name), checkpoint({"a": name}), {}, {"a": 1})
    print("done", flush=True)
"""

WRITE = """
import sys
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
path, name = sys.argv[1:]
with SqliteSaver(path, durability="normal") as saver:
    print("ready", flush=True)
    sys.stdin.readline()
    config = at("shared", name)
    for number in range(40):
        config = saver.put(config, checkpoint({"a": [name, number] * 50}, {"a": number + 1}), {}, {"a": number + 1})
        saver.put_writes(config, [("a", number)], name)
        saver.put_writes(at("shared", "", "common"), [("a", [name, number])], f"{name} {number:02d}")
"""

ACKNOWLEDGE = """
import sys, os
from threadmark_sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint, early_id
path = sys.argv[1]
saver = SqliteSaver(path)
config, number = at("thread"), 0
while True:
    versions = {"a": number, "b": number}
    made = checkpoint({"a": [number] * 200, "b": "x" * 2000}, versions, checkpoint_id=early_id(number))
    config = saver.put(config, made, {"n": number}, versions)
    saver.put_writes(config, [("a", number), ("b", "y" * 2000)], "task")
    os.write(1, b"%d\\n" % number)
    number += 1
"""


def test_many_processes_may_create_one_file_at_once(tmp_path: Path) -> None:
    children = [child(START, f"thread {number}") for number in range(8)]
    for each in children:
        assert line_from(each.stdout) == "ready"
    for attempt in range(times(6, at_length=12)):
        path = tmp_path / f"new {attempt}.db"
        for each in children:
            send_line(each.stdin, str(path))
        for each in children:
            assert line_from(each.stdout) == "done", finished(each)
        with SqliteSaver(path) as saver:
            names = {item.checkpoint["channel_values"]["a"] for item in saver.list(None)}
        assert names == {f"thread {number}" for number in range(8)}
        with looking_at(path) as connection:
            assert connection.execute("SELECT count(*) FROM threadmark_migration").fetchone() == (CURRENT,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    for each in children:
        finished(each)


def test_many_processes_write_to_one_thread(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    children = [child(WRITE, path, f"ns {number}") for number in range(4)]
    for each in children:
        assert line_from(each.stdout) == "ready"
    for each in children:
        send_line(each.stdin)
    for each in children:
        finished(each)
    with SqliteSaver(path) as saver:
        for number in range(4):
            found = list(saver.list(at("shared", f"ns {number}")))
            assert [item.checkpoint["channel_values"]["a"] for item in found] == [
                [f"ns {number}", step] * 50 for step in range(39, -1, -1)
            ]
            assert all(len(item.pending_writes or []) == 1 for item in found)
    with looking_at(path) as connection:
        common = "SELECT count(*) FROM threadmark_write WHERE checkpoint_id = 'common'"
        assert connection.execute(common).fetchone() == (160,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("attempt", range(6))
def test_what_was_acknowledged_survives_a_kill(attempt: int, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    wait = random.Random(attempt).uniform(0.0, 0.25)
    with child(ACKNOWLEDGE, path) as victim:
        assert line_from(victim.stdout) == "0"
        time.sleep(wait)
        victim.send_signal(signal.SIGKILL)
        acknowledged = 0
        for line in victim.stdout or ():
            acknowledged = int(line) if line.endswith("\n") else acknowledged
    with SqliteSaver(path) as saver:
        found = {item.metadata["n"]: item for item in saver.list(at("thread"))}
        for number in range(acknowledged + 1):
            values = found[number].checkpoint["channel_values"]
            assert values == {"a": [number] * 200, "b": "x" * 2000}
            assert found[number].pending_writes == [("task", "a", number), ("task", "b", "y" * 2000)]
        # The step that was under way is there whole or not at all.
        if (last := found.get(acknowledged + 1)) is not None:
            assert last.checkpoint["channel_values"]["a"] == [acknowledged + 1] * 200
            assert len(last.pending_writes or []) in {0, 2}
        assert set(found) <= set(range(acknowledged + 2))
        saver.put(at("thread"), found[0].checkpoint, {"n": "after"}, {})
