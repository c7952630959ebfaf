"""`threadmark.open` finds the backend by the URL's scheme, among whatever is installed."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

import threadmark
from announced import announce, announced
from threadmark import ConfigError, MemorySaver, MissingDependencyError, ThreadmarkError, urls
from threadmark.backends import options_in
from threadmark_postgres.options import PostgresOptions
from threadmark_redis import RedisSaver
from threadmark_redis.driver.connecting import PARAMETERS
from threadmark_redis.options import RedisOptions
from threadmark_sqlite import SqliteSaver


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place that announces these packages; more can be added there."""
    return announced(tmp_path, monkeypatch)


@pytest.mark.usefixtures("installed")
def test_memory_is_opened_by_its_scheme() -> None:
    for url in ("memory:", "memory://"):
        with threadmark.open(url, cache_bytes=0) as saver:
            assert isinstance(saver, MemorySaver)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("url", ["memory:", "sqlite://:memory:"])
def test_an_option_that_there_is_not_is_refused(url: str) -> None:
    with pytest.raises((ConfigError, TypeError), match="keyrign"):
        threadmark.open(url, keyrign=None)


@pytest.mark.usefixtures("installed")
def test_sqlite_is_opened_by_its_scheme(tmp_path: Path) -> None:
    with threadmark.open(f"sqlite:///{tmp_path}/threads.db", durability="normal") as saver:
        assert isinstance(saver, SqliteSaver)
        assert saver.get({"configurable": {"thread_id": "t"}}) is None
    assert (tmp_path / "threads.db").exists()
    with threadmark.open("sqlite://:memory:") as saver:
        assert isinstance(saver, SqliteSaver)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+cluster", "rediss+cluster"])
def test_redis_is_opened_by_its_schemes(scheme: str) -> None:
    with threadmark.open(f"{scheme}://host:7000", durability="memory") as saver:
        assert isinstance(saver, RedisSaver)
    with threadmark.open("redis+sentinel://host:26379/main", durability="memory") as saver:
        assert isinstance(saver, RedisSaver)
    with threadmark.open("redis+unix:///run/redis.sock", durability="memory") as saver:
        assert isinstance(saver, RedisSaver)


@pytest.mark.usefixtures("installed")
def test_an_unknown_scheme_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'mysql'.*'memory:'.*'sqlite:///file\.db'") as caught:
        threadmark.open("mysql://host/name")
    assert "'cached:?saver=URL&cache=URL'" in str(caught.value)
    assert "threadmark-mysql" not in str(caught.value), "anybody may register that name"


@pytest.mark.parametrize(
    ("scheme", "extra"),
    [
        ("postgres", "postgres"),
        ("postgresql", "postgres"),
        ("sqlite", "sqlite"),
        ("redis", "redis"),
        ("rediss+cluster", "redis"),
    ],
)
def test_a_backend_that_is_missing_is_named_by_what_installs_it(
    scheme: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urls, "entry_points", lambda **_: ())
    with pytest.raises(MissingDependencyError, match=rf"pip install 'threadmark\[{extra}\]'$"):
        threadmark.open(f"{scheme}://host/name")


def test_a_backend_that_cannot_be_imported_says_what_is_missing(installed: Path) -> None:
    (installed / "half_there.py").write_text("import no_such_driver\n")
    announce(installed, "half", "threadmark.savers", {"half": "half_there:open_half"})
    with pytest.raises(MissingDependencyError, match="no_such_driver") as caught:
        threadmark.open("half:x")
    assert caught.value.name == "no_such_driver"


INSTEAD = {
    "agents.db": "'sqlite:///agents.db'",
    "/data/agents.db": "'sqlite:////data/agents.db'",
    r"C:\data\agents.db": r"'sqlite:///C:\data\agents.db'",
    ":memory:": "'memory:'",
    "memory": "'memory:'",
    "": "'sqlite:///file.db'",
    "file:agents.db?mode=ro": "'sqlite:///file.db'",
    "sqlite3:///agents.db": "'sqlite:///file.db'",
    "sqlite+aiosqlite:///agents.db": "'sqlite:///file.db'",
    "SQLite:///agents.db": "'sqlite:///file.db'",
    "postgresql+psycopg://me:hunter2@host/agents": "'postgresql://user@host/database'",
    "valkey://:hunter2@host": "'redis://host:6379/0'",
    "redis+asyncio://:hunter2@host": "'redis://host:6379/0'",
    "host=db dbname=agents password=hunter2": "'postgresql://user@host/database'",
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("given", INSTEAD)
def test_what_is_no_url_of_ours_is_answered_with_one(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        threadmark.open(given)
    assert f"write {INSTEAD[given]}" in str(caught.value).replace("\\\\", "\\")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("given", [Path("agents.db"), None, 1])
def test_only_text_is_a_url(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"expected a URL, got \w+: .*sqlite:///"):
        threadmark.open(given)


@pytest.mark.usefixtures("installed")
def test_a_misspelt_url_of_a_cache_asks_for_no_package_that_is_there() -> None:
    for url in ("redis//hunter2", "redis2://hunter2", "cache"):
        with pytest.raises(ConfigError, match="names no cache: write 'redis://host:6379/1'") as caught:
            threadmark.cached("memory:", url)
        assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("installed")
def test_an_option_may_be_in_the_url(tmp_path: Path) -> None:
    query = "durability=normal&timeout=5&slow=none&ttl=3600&keep_last=2&expect_newest=true"
    with threadmark.open(f"sqlite:///{tmp_path}/threads.db?{query}", keep_last=3) as saver:
        assert isinstance(saver, SqliteSaver)
        assert saver.report().durability == "normal"
        assert saver._options == {"ttl": 3600.0, "keep_last": 3, "expect_newest": True}  # the argument wins
    with threadmark.open(f"sqlite:///{tmp_path}/threads.db?timeout=5&mode=ro") as saver, pytest.raises(ThreadmarkError):
        saver.create_thread("it only reads")
    with threadmark.open("memory:?cache_bytes=7") as saver:
        assert isinstance(saver, MemorySaver)
        assert saver._options == {"cache_bytes": 7}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///x.db?timeout=hunter2", "timeout no valid value: write a number"),
        ("sqlite:///x.db?keyring=hunter2", "keyring cannot be written in a URL"),
        ("memory:?pause_gc=hunter2", "pause_gc no valid value: write true or false"),
        ("postgresql://me:hunter2@h/d?pool_size=x", "pool_size no valid value: write a whole number"),
        ("redis://me:hunter2@h?durability=hunter2", "durability must be"),
        ("sqlite:///x.db?durabilty=normal", "did you mean 'durability'. The saver takes durability, timeout"),
        ("memory:?kep_last=2", "did you mean 'keep_last'"),
        ("postgresql://me:hunter2@h/d?shema=agents", "did you mean 'schema'. The saver takes schema, pool_size"),
        ("redis://me:hunter2@h?prefx=agents", "did you mean 'prefix'"),
    ],
)
def test_an_option_of_a_url_that_does_not_fit_is_named(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        threadmark.open(url)
    assert "hunter2@" not in str(caught.value)


def test_no_parameter_of_a_driver_is_taken_for_a_misspelt_option() -> None:
    libpq = {default.keyword.decode() for default in psycopg.pq.Conninfo.get_defaults()}
    for names, options in ((libpq, PostgresOptions), (PARAMETERS, RedisOptions)):
        url = "scheme://host?" + "&".join(sorted(names - options.__annotations__.keys()))
        assert options_in(url, options) == (url, {})


@pytest.mark.usefixtures("installed")
def test_a_memory_saver_has_no_path() -> None:
    with pytest.raises(ConfigError, match="memory:"):
        threadmark.open("memory:///x.db")


def test_another_backend_is_an_install_away(installed: Path) -> None:
    (installed / "their_backend.py").write_text(
        "from threadmark import MemorySaver\n\ndef open_theirs(url, **options):\n    return MemorySaver(**options)\n"
    )
    announce(installed, "theirs", "threadmark.savers", {"their": "their_backend:open_theirs", "bad": "builtins:list"})
    with threadmark.open("their:x", cache_bytes=0) as saver:
        assert isinstance(saver, MemorySaver)
    with pytest.raises(ConfigError, match=r"expected a threadmark\.Saver.* got list, which has no serde, with_serde"):
        threadmark.open("bad:")
