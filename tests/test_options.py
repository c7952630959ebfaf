"""Options: type checkers see the arguments of constructors, and the error about an unknown option lists all."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import pytest

from threadmark import ConfigError, MemorySaver, Saver
from threadmark.memory import saver as memory_saver
from threadmark.saver import SaverOptions, StorageOptions, ThreadOptions
from threadmark.types import PruneStrategy
from threadmark_langgraph import (
    AsyncPostgresSaver,
    AsyncRedisSaver,
    AsyncShallowPostgresSaver,
    AsyncSqliteSaver,
    Checkpointer,
    InMemorySaver,
    PostgresSaver,
    RedisSaver,
    ShallowPostgresSaver,
    SqliteSaver,
    options,
)
from threadmark_postgres import PostgresOptions
from threadmark_postgres import PostgresSaver as PostgresBackend
from threadmark_postgres import saver as postgres_saver
from threadmark_postgres.options import ConnectionOptions
from threadmark_redis import RedisOptions
from threadmark_redis import RedisSaver as RedisBackend
from threadmark_redis import saver as redis_saver
from threadmark_redis.options import ServerOptions
from threadmark_sqlite import SqliteOptions
from threadmark_sqlite import SqliteSaver as SqliteBackend
from threadmark_sqlite import saver as sqlite_saver
from threadmark_sqlite.options import FileOptions

OWN = [(SqliteBackend, FileOptions), (PostgresBackend, ConnectionOptions), (RedisBackend, ServerOptions)]
TYPED: list[tuple[Callable[..., Any], type]] = [
    (MemorySaver, SaverOptions),
    (memory_saver.open_url, SaverOptions),
    (SqliteBackend, SaverOptions),
    (sqlite_saver.open_url, SqliteOptions),
    (PostgresBackend, SaverOptions),
    (postgres_saver.open_url, PostgresOptions),
    (RedisBackend, SaverOptions),
    (redis_saver.open_url, RedisOptions),
    *((name, options.RedisOptions) for name in (RedisSaver, AsyncRedisSaver)),
    *((name.from_conn_string, options.RedisArguments) for name in (RedisSaver, AsyncRedisSaver)),
    *(
        (each, options.SqliteOptions)
        for name in (SqliteSaver, AsyncSqliteSaver)
        for each in (name, name.from_conn_string)
    ),
    *(
        (each, options.PostgresOptions)
        for name in (PostgresSaver, AsyncPostgresSaver, ShallowPostgresSaver, AsyncShallowPostgresSaver)
        for each in (name, name.from_conn_string)
    ),
]


@pytest.mark.parametrize(("saver", "typed"), OWN)
def test_the_types_of_a_backends_options_are_those_of_its_constructor(saver: type, typed: type) -> None:
    parameters = inspect.signature(saver).parameters.values()
    assert {
        each.name: each.annotation for each in parameters if each.kind is each.KEYWORD_ONLY
    } == typed.__annotations__


@pytest.mark.parametrize(("taker", "typed"), TYPED)
def test_no_option_is_taken_without_its_type(taker: Callable[..., Any], typed: type) -> None:
    (rest,) = (each for each in inspect.signature(taker).parameters.values() if each.kind is each.VAR_KEYWORD)
    assert rest.annotation == f"Unpack[{typed.__name__}]" or get_args(rest.annotation) == (typed,)


def test_all_savers_have_the_same_options_beside_their_own() -> None:
    assert SqliteOptions.__annotations__ == FileOptions.__annotations__ | SaverOptions.__annotations__
    assert PostgresOptions.__annotations__ == ConnectionOptions.__annotations__ | SaverOptions.__annotations__
    assert RedisOptions.__annotations__ == ServerOptions.__annotations__ | SaverOptions.__annotations__
    parts = StorageOptions.__annotations__ | ThreadOptions.__annotations__
    assert SaverOptions.__annotations__.keys() - parts.keys() == {"serde"}
    # LangGraph's constructors have an argument for the serializer, and databases may hold LangGraph's threads.
    moving = options.MovingOptions.__annotations__.keys()
    of_sqlite, of_postgres = SqliteOptions.__annotations__.keys(), PostgresOptions.__annotations__.keys()
    assert options.SqliteOptions.__annotations__.keys() == of_sqlite - {"serde"} | moving
    assert options.PostgresOptions.__annotations__.keys() == of_postgres - {"serde"} | moving
    assert options.RedisOptions.__annotations__.keys() == RedisOptions.__annotations__.keys() - {"serde", "ttl"}
    named = {each.name for each in inspect.signature(RedisSaver).parameters.values() if each.kind is each.KEYWORD_ONLY}
    assert options.RedisArguments.__annotations__.keys() == options.RedisOptions.__annotations__.keys() | named


class Subclass(SqliteBackend):
    """A saver of the user's, with its own option."""

    def __init__(self, path: str, *, prefix: str = "", **rest: Any) -> None:
        super().__init__(path, **rest)
        self.prefix = prefix


WRONG: list[tuple[Callable[..., Any], str, str]] = [
    (MemorySaver, "cachebytes", "did you mean 'cache_bytes'? MemorySaver takes file, cache_bytes"),
    (SqliteBackend, "durabilty", "did you mean 'durability'? SqliteSaver takes durability, timeout, slow, cache_bytes"),
    (SqliteSaver, "fast", "'fast': SqliteSaver takes durability, timeout, slow, cache_bytes"),
    (Subclass, "prefixes", "did you mean 'prefix'? Subclass takes prefix, durability, timeout, slow, cache_bytes"),
    (PostgresBackend, "poolsize", "did you mean 'pool_size'? PostgresSaver takes schema, pool_size"),
    (PostgresSaver, "durability", "PostgresSaver takes schema, pool_size"),
]


@pytest.mark.parametrize(("saver", "wrong", "expected"), WRONG)
def test_an_unknown_option_is_answered_with_those_that_there_are(
    saver: Callable[..., Any], wrong: str, expected: str
) -> None:
    arguments = [] if saver is MemorySaver else [":memory:"] if "Postgres" not in saver.__name__ else ["dbname=none"]
    with pytest.raises(ConfigError, match="unknown option") as caught:
        saver(*arguments, **{wrong: 1})
    assert expected in str(caught.value)


def test_prune_under_langgraphs_names_takes_what_a_savers_takes() -> None:
    parameters = inspect.signature(Saver.prune).parameters
    own = {name: each.annotation for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert own.pop("strategy") is PruneStrategy
    assert get_type_hints(options.PruneRule) == own
    for prune in (Checkpointer.prune, Checkpointer.aprune, InMemorySaver.prune, InMemorySaver.aprune):
        assert inspect.signature(prune).parameters["rule"].annotation == "Unpack[PruneRule]"


MEMORY: list[dict[str, Any]] = [
    {"pause_gc": "no"},
    {"seal_metadata": "no"},
    {"cache_bytes": "64MB"},
    *({"ttl": each} for each in ("3600", True, timedelta(0))),
    {"refresh_on_read": "no", "ttl": timedelta(1)},
    *({"keep_last": each} for each in (0, True, "1")),
    {"owner_key": ""},
    {"expect_newest": "no"},
]
ON_SQLITE: list[dict[str, Any]] = [
    *MEMORY,
    *({"timeout": each} for each in ("30", None, True, -1, float("inf"), float("nan"))),
]
ON_POSTGRES: list[dict[str, Any]] = [
    *ON_SQLITE,
    {"prepare": "no"},
    {"combine": None},
    {"read_only": None},
    {"application_name": 3},
    {"schema": 3},
    {"pool_size": "16"},
]
SAVERS: list[tuple[Callable[..., Any], list[dict[str, Any]]]] = [
    (MemorySaver, MEMORY),
    (lambda **wrong: SqliteBackend(":memory:", **wrong), ON_SQLITE),
    (lambda **wrong: PostgresBackend("postgresql://nobody@localhost:1/none", **wrong), ON_POSTGRES),
]


@pytest.mark.parametrize(("saver", "wrong"), [(saver, wrong) for saver, each in SAVERS for wrong in each])
def test_an_option_of_a_wrong_type_is_refused_when_the_saver_is_made(
    saver: Callable[..., Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be|cannot be the name of a schema"):
        saver(**wrong)


def test_a_ttl_may_be_longer_than_a_database_can_count() -> None:
    with SqliteBackend(":memory:", ttl=timedelta.max) as saver:
        saver.put_writes({"configurable": {"thread_id": "1", "checkpoint_id": "1"}}, [("a", 1)], "task")
        found = saver.get_thread("1")
        assert found is not None
        assert found.expires_at is not None
        assert found.expires_at.year == 9999
