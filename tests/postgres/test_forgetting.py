"""Marks of deleted threads: a deletion looks for old ones now and then, and not each time."""

import psycopg

from postgres.steps import play
from threadmark.program import run, write
from threadmark.store.contract import TOMBSTONE_MICROSECONDS, now
from threadmark_postgres import PostgresSaver

LOOKS = 1000 * (now() // 1000) + 2 * TOMBSTONE_MICROSECONDS
"""A moment in two days at which a deletion looks; a microsecond later it does not."""


def test_a_deletion_forgets_old_ones_now_and_then(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url) as saver:
        for name in ("a", "b", "c"):
            play(saver, name, 1)
        saver.delete_thread("a")
        run(saver._driver, write(saver._store.drop, "b", LOOKS + 1))
        assert _marks(tables) == ["a", "b"]
        run(saver._driver, write(saver._store.drop, "c", LOOKS + 1000))
        assert _marks(tables) == ["b", "c"]


def test_a_thread_is_not_forgotten_if_an_entry_comes_during_the_forgetting(
    url: str, tables: psycopg.Connection
) -> None:
    with PostgresSaver(url) as saver:
        for name in ("a", "b", "c"):
            play(saver, name, 1)
        saver.delete_thread("a")
        saver.delete_thread("b")
        # As if another client recorded it for the thread that is looked at next.
        tables.execute(
            "CREATE FUNCTION record_others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO threadmark_outbox (thread_id, position, body) "
            "SELECT t.thread_id, 1, '' FROM threadmark_thread AS t "
            "WHERE NOT t.live AND t.thread_id NOT IN (OLD.thread_id, 'c'); RETURN OLD; END $$"
        )
        tables.execute(
            "CREATE TRIGGER one BEFORE DELETE ON threadmark_thread FOR EACH ROW EXECUTE FUNCTION record_others()"
        )
        run(saver._driver, write(saver._store.drop, "c", LOOKS))
        assert len(_marks(tables)) == 2
        tables.execute("DROP FUNCTION record_others CASCADE")


def _marks(tables: psycopg.Connection) -> list[str]:
    query = "SELECT thread_id FROM threadmark_thread WHERE NOT live ORDER BY thread_id"
    return [name for (name,) in tables.execute(query).fetchall()]
