"""A saver on a connection of the user says which database that leads to."""

import psycopg

from threadmark_postgres import PostgresSaver


def test_a_connection_of_the_user_is_shown_by_its_database(url: str) -> None:
    with psycopg.connect(url) as connection:
        saver = PostgresSaver(connection)
        assert f"dbname={connection.info.dbname}" in repr(saver)
        assert f"port={connection.info.port}" in repr(saver)
        assert f"user={connection.info.user}" not in repr(saver)
    assert repr(PostgresSaver(connection)) == "<PostgresSaver on Postgres>", "a closed one does not tell"
