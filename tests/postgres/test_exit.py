"""A program that ends without closing its Postgres saver ends without a word, and at once."""

import psycopg
import pytest

from children import child
from patience import wait_until

_BEGINNING = """
import asyncio, os, sys, threading
import threadmark
from threadmark_postgres import PostgresSaver

def at(name):
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}

def step():
    return {"v": 4, "id": threadmark.new_id(), "ts": "", "channel_values": {"n": 1}, "channel_versions": {"n": 1},
            "versions_seen": {}}

def play(saver, name="thread"):
    saver.put(at(name), step(), {}, {"n": 1})

async def aplay(saver, name="thread"):
    await asyncio.gather(*(saver.aput(at(f"{name} {n}"), step(), {}, {"n": 1}) for n in range(5)))

saver = PostgresSaver(sys.argv[1])
"""

_ENDINGS = {
    "blocking": "play(saver)",
    "asyncio": "asyncio.run(aplay(saver))",
    "a loop that still runs": """
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
asyncio.run_coroutine_threadsafe(aplay(saver), loop).result()
threading.Thread(target=play, args=(saver,)).start()
""",
    "langgraph's name": """
from threadmark_langgraph import PostgresSaver as LangGraphs
named = LangGraphs(sys.argv[1])
play(named.saver)
""",
}


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_saver_that_was_never_closed_says_nothing_at_exit(url: str, tables: psycopg.Connection, ending: str) -> None:
    process = child(_BEGINNING + _ENDINGS[ending], url)
    _, complaints = process.communicate(timeout=120)
    assert (process.returncode, complaints) == (0, "")
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    wait_until(lambda: next(tables.execute(others.encode()))[0] == 0, "sessions are left")
