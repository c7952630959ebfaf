"""The `repr` of savers, serializers and keyrings: their kind and their place, and no secret."""

import sqlite3
import traceback
from pathlib import Path

import pytest
from psycopg_pool import ConnectionPool

from threadmark import ConfigError, Keyring, MemorySaver, Serde
from threadmark.sealing import cipher_of
from threadmark.serde import Registry
from threadmark.types import Problem, VerifyReport
from threadmark_langgraph import PostgresSaver as LangGraphPostgres
from threadmark_langgraph import RedisSaver as LangGraphRedis
from threadmark_langgraph import SqliteSaver as LangGraphSqlite
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

SECRET = "hunter2"  # noqa: S105 - made up

URLS = [
    f"postgresql://me:{SECRET}@db.example:5433/agents",
    f"postgresql://db.example:5433/agents?user=me&password={SECRET}&sslpassword={SECRET}",
    f"host=db.example port=5433 dbname=agents user=me password={SECRET}",
]
WRONG = [
    f"postgresql://me:x@{SECRET}@db.example:5433/agents",
    f"postgresql://me:{SECRET}/x@db.example:5433/agents",
    f"postgresql://me:x/{SECRET}@db.example:5433/agents",
]
"""Passwords with characters that should have been written as %40 and %2F."""


@pytest.mark.parametrize("url", WRONG)
def test_a_password_that_is_not_escaped_is_an_error_without_it(url: str) -> None:
    with pytest.raises(ConfigError, match="%40") as caught:
        PostgresSaver(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{SECRET}@db.example:6380/2",
        f"rediss+cluster://:{SECRET}@db.example:6380,other.example",
        f"redis+sentinel://me:{SECRET}@db.example/main?sentinel_password={SECRET}",
    ],
)
def test_a_redis_saver_shows_where_it_is_and_no_password(url: str) -> None:
    with RedisSaver(url) as saver, LangGraphRedis(url) as named:
        for text in (repr(saver), repr(named), str(saver)):
            assert SECRET not in text
            assert "db.example" in text
        assert repr(saver).startswith("<RedisSaver on Redis ")


@pytest.mark.parametrize("url", URLS)
def test_a_postgres_saver_shows_where_it_is_and_no_password(url: str) -> None:
    with PostgresSaver(url, schema="app") as saver, LangGraphPostgres(url) as named:
        for text in (repr(saver), repr(named), str(saver)):
            assert SECRET not in text
            assert "agents" in text
            assert "db.example" in text
        assert repr(saver).startswith("<PostgresSaver on Postgres ")
        assert repr(saver).endswith("schema=app>")
        assert repr(named).startswith("PostgresSaver(<PostgresSaver on Postgres ")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:x/?{SECRET}@host/db",
        f"host=a password='{SECRET}",
        f'a"{SECRET}',
    ],
)
def test_the_error_about_a_connection_string_shows_no_password(url: str) -> None:
    with pytest.raises(ConfigError, match="not a Postgres connection string") as caught:
        PostgresSaver(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value, limit=0))


def test_a_pool_of_the_user_is_shown_by_its_database() -> None:
    pool = ConnectionPool(URLS[0], open=False)
    assert repr(PostgresSaver(pool)) == "<PostgresSaver on Postgres host=db.example port=5433 dbname=agents>"
    unusual = ConnectionPool("this is no connection string", open=False)
    assert repr(PostgresSaver(unusual)) == "<PostgresSaver on Postgres>"


def test_a_sqlite_saver_shows_its_path(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    for saver in (SqliteSaver(path), SqliteSaver(f"sqlite:///{path}"), SqliteSaver(sqlite3.connect(path))):
        with saver:
            assert repr(saver) == f"<SqliteSaver on SQLite database '{path}'>"
    with SqliteSaver(":memory:") as saver:
        assert repr(saver) == "<SqliteSaver on SQLite database ':memory:'>"
    with LangGraphSqlite(path) as named:
        assert repr(named) == f"SqliteSaver(<SqliteSaver on SQLite database '{path}'>)"


def test_a_memory_saver_says_that_it_is_one() -> None:
    with MemorySaver() as saver:
        assert repr(saver) == "<MemorySaver on the memory of this process>"
    assert repr(saver), "a closed saver is shown as well"


def test_a_saver_that_could_not_be_made_is_shown_too() -> None:
    for kind in (MemorySaver, SqliteSaver, PostgresSaver, LangGraphSqlite, LangGraphPostgres):
        assert kind.__name__ in repr(kind.__new__(kind))


def test_a_serializer_shows_what_it_allows() -> None:
    assert repr(Serde()) == "Serde()"
    assert repr(Serde(allow=["shop:Order", Path])) == f"Serde(allow=['{Path.__module__}:Path', 'shop:Order'])"
    assert repr(Serde(dangerously_import_anything=True)) == "Serde(dangerously_import_anything=True)"
    assert "registry=" in repr(Serde(registry=Registry()))


def test_a_keyring_shows_names_of_keys_only() -> None:
    key, secret = b"K" * 32, b"S" * 32
    keyring = Keyring({"2025": key, "2026": key}, "2026", digest_secret=secret)
    assert repr(keyring) == "Keyring(['2025', '2026'], newest='2026')"
    with MemorySaver(keyring=keyring) as saver:
        for text in (repr(keyring), repr(saver), repr(saver._context)):  # tools that report errors show local variables
            assert str(cipher_of(keyring).digest_key)[2:-1] not in text
            assert "KKKK" not in text
            assert "SSSS" not in text


def test_a_long_list_of_problems_is_cut() -> None:
    found = [Problem("damaged", f"thread '{number}'", "cut short") for number in range(120)]
    shown = repr(VerifyReport(120, 120, 0, found, []))
    assert shown.startswith("VerifyReport(threads=120, checkpoints=120, writes=0, problems=[Problem(kind='damaged', ")
    assert shown.endswith(", ... and 115 more], unreadable=[])")
