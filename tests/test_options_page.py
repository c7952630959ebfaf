"""docs/reference/options.md has every option of every backend and service, with its type and default, and no other."""

import ast
import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from threadmark import (
    CleanedStates,
    Effects,
    Keyring,
    MemoryCache,
    MemorySaver,
    Retention,
    Saver,
    cached,
    replicated,
)
from threadmark.encryption.store import SealedStore
from threadmark.saver import SaverOptions
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver.settings import TCP_DEFAULTS
from threadmark_redis import RedisCache, RedisSaver
from threadmark_redis.driver.connecting import DEFAULTS
from threadmark_sqlite import SqliteSaver

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "options.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _rows(section: str, columns: int) -> dict[str, tuple[str, ...]]:
    """The rows of the tables with this many columns, by their first cell, without the last one, which explains."""
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == columns and cells[0].startswith("`"):
            assert cells[-1].endswith("."), f"{cells[0]} is not explained"
            rows[cells[0].strip("`")] = tuple(cell.strip("`") for cell in cells[1:-1])
    return rows


def _type(annotation: object) -> str:
    """A type as it is written in a signature."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(text, str):
        return text
    return annotation.__name__ if isinstance(annotation, type) else re.sub(r"\b\w+\.", "", str(annotation))


def _own(saver: Callable[..., object]) -> dict[str, tuple[str, str]]:
    """The options that only this saver has: type and default."""
    parameters = inspect.signature(saver).parameters.values()
    return {
        each.name: (_type(each.annotation), _literal(each.default))
        for each in parameters
        if each.kind is each.KEYWORD_ONLY
    }


def _literal(value: object) -> str:
    if isinstance(value, timedelta):
        return f"timedelta(hours={value // timedelta(hours=1)})"
    if isinstance(value, tuple):
        return f"({', '.join(each.__name__ for each in value)})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


@pytest.mark.parametrize(
    ("title", "saver"),
    [
        ("Memory", MemorySaver),
        ("SQLite", SqliteSaver),
        ("Postgres", PostgresSaver),
        ("Redis", RedisSaver),
        ("Replicated", replicated),
        ("Effects", Effects),
        ("Retention", Retention),
        ("Cleaned states", CleanedStates),
        ("Cached saver", cached),
        ("Cache in memory", MemoryCache),
        ("Cache on Redis", RedisCache),
    ],
)
def test_the_page_has_the_options_of_a_backend(title: str, saver: Callable[..., object]) -> None:
    own = _own(saver)
    assert own
    assert _rows(_section(title), columns=4) == own


def test_the_page_has_the_options_of_every_saver() -> None:
    rows = _rows(_section("Common options"), columns=4)
    assert {name: kind for name, (kind, _) in rows.items()} == {
        name: _type(annotation) for name, annotation in SaverOptions.__annotations__.items()
    }


def test_the_defaults_on_the_page_are_those_of_a_saver() -> None:
    rows = _rows(_section("Common options"), columns=4)
    defaults = {name: ast.literal_eval(default) for name, (_, default) in rows.items()}
    keyring = Keyring({"k": bytes(32)}, newest="k", digest_secret=bytes(32))
    assert defaults.pop("keyring") is None
    assert _observed(MemorySaver(keyring=keyring)) == _observed(MemorySaver(keyring=keyring, **defaults))
    assert _observed(MemorySaver()) == _observed(MemorySaver(keyring=None, **defaults))


def _observed(saver: Saver) -> list[object]:
    """The effects of a saver's options."""
    context = saver._context
    kinds: list[object] = [type(context.store), type(context.serde)]
    metadata = context.store._seal_metadata if isinstance(context.store, SealedStore) else None
    return [*kinds, context.encoding_cache.capacity, context.expansion, context.pause_gc, metadata, context.threads]


def test_the_page_has_the_parameters_that_differ_from_libpqs() -> None:
    rows = _rows(_section("Postgres"), columns=3)
    assert rows == {name: (str(value),) for name, value in TCP_DEFAULTS.items()}


def test_the_page_has_the_times_that_a_url_of_redis_need_not_name() -> None:
    rows = _rows(_section("Redis"), columns=3)
    assert rows == {name: (f"{value:g}",) for name, value in DEFAULTS.items()}
