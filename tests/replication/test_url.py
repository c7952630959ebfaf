"""A pair in one URL, and the arguments of `replicated`."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from replication.lines import number_in, put
from threadmark import ConfigError, MemorySaver, replicated
from threadmark.replication.making import open_url
from threadmark.types import ReplicatedSaver

CORE = Path(__file__).parent.parent.parent / "libs" / "core" / "pyproject.toml"


def _url(folder: Path, options: str = "") -> str:
    sides = [quote(f"sqlite:///{folder}/{name}.db", safe="") for name in ("a&b", "c")]
    return f"replicated:?primary={sides[0]}&secondary={sides[1]}{options}"


def test_the_scheme_leads_to_it() -> None:
    entries = tomllib.loads(CORE.read_text(encoding="utf-8"))["project"]["entry-points"]["threadmark.savers"]
    assert EntryPoint("replicated", entries["replicated"], "threadmark.savers").load() is open_url


def test_a_url_has_both_and_the_options(tmp_path: Path) -> None:
    with open_url(_url(tmp_path, "&mode=async&max_lag=7&deadline=none&health_interval=0.5"), keep_last=3) as saver:
        put(saver, 1)
        assert saver.drain() == 0
        settings = saver._pair.pair.settings
        assert (settings.mode, settings.max_lag, settings.deadline) == ("async", 7, None)
        assert settings.health_interval == 0.5
    assert {path.name for path in tmp_path.glob("*.db")} == {"a&b.db", "c.db"}
    with open_url(_url(tmp_path), mode="async") as saver:
        assert saver.status().mode == "async"
        assert number_in(saver) == 1


@pytest.mark.parametrize(
    "url",
    [
        "replicated:",
        "replicated:secret",
        "replicated:?primary=memory:",
        "replicated:?primary=memory:&secondary=memory:&secondary=secret",
        "replicated:?primary=memory:&secondary=memory:&mode=secret&x",
        "replicated:?primary=memory:&secondary=memory:&secret=1",
        "replicated:?primary=postgresql://u:secret@h/d?sslmode=require&connect_timeout=1&secondary=memory:",
    ],
)
def test_a_url_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_url(url)
    assert "secret" not in str(refused.value)


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("mode", {"mode": "half"}),
    ("on_secondary_failure", {"on_secondary_failure": None}),
    ("failover", {"failover": True}),
    ("max_lag", {"max_lag": 0}),
    ("max_lag", {"max_lag": True}),
    ("max_failover_attempts", {"max_failover_attempts": 1.5}),
    ("deadline", {"deadline": 0}),
    ("deadline", {"deadline": float("inf")}),
    ("health_interval", {"health_interval": 1e300}),
    ("health_interval", {"health_interval": None}),
    ("drain_timeout", {"drain_timeout": "1"}),
    ("failback_delay", {"failback_delay": "5", "failover": "automatic"}),
    ("unknown option 'timeout'", {"timeout": 1}),
    ("unknown option 'mod', did you mean 'mode'.*takes mode, on_secondary_failure.*, keyring", {"mod": "async"}),
]


@pytest.mark.parametrize(("problem", "options"), WRONG)
def test_arguments_are_checked(problem: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=problem):
        replicated(MemorySaver(), MemorySaver(), **options)


def test_numbers_in_a_url_are_checked() -> None:
    for option in ("max_lag=many", "deadline=long", "failback_delay=soon"):
        with pytest.raises(ConfigError, match=r"the URL gives \w+ no valid value: write a (whole )?number"):
            open_url(f"replicated:?primary=memory:&secondary=memory:&{option}")


def test_the_database_in_an_error_and_in_repr_has_no_password() -> None:
    sides = [f"postgresql://user:secret@localhost:1/{name}?connect_timeout=1" for name in ("a", "b")]
    saver = replicated(*sides, deadline=5.0)
    assert isinstance(saver, ReplicatedSaver)
    assert "secret" not in repr(saver)
    assert "localhost" in repr(saver)
    saver.close()
