"""The server reads the intended values, whatever an array holds."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from threadmark.names import to_column
from threadmark_postgres.arrays import Blobs, Numbers, Texts, register_dumpers

_TEXTS = st.text(st.characters(codec=None, exclude_categories=[])).map(to_column)
_KINDS: list[tuple[type[Any], str, st.SearchStrategy[Any]]] = [
    (Texts, "text[]", _TEXTS),
    (Blobs, "bytea[]", st.binary()),
    (Numbers, "bigint[]", st.integers(-(2**63), 2**63 - 1)),
]


def answered(tables: psycopg.Connection, items: Sequence[Any], declared: str) -> Any:
    query = f"SELECT $1::{declared}".encode()
    ((found,),) = psycopg.RawCursor(tables).execute(query, [items], binary=True).fetchall()
    return found


@pytest.mark.parametrize(("kind", "declared", "items"), _KINDS, ids=[declared for _, declared, _ in _KINDS])
def test_an_array_comes_back(
    tables: psycopg.Connection, kind: type[Any], declared: str, items: st.SearchStrategy[Any]
) -> None:
    register_dumpers(tables)

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.none() | items, max_size=5))
    def check(given_items: list[Any]) -> None:
        assert answered(tables, kind(given_items), declared) == given_items

    check()


def test_text_is_written_in_the_encoding_of_the_connection(url: str) -> None:
    with psycopg.connect(url, client_encoding="latin1") as connection:
        register_dumpers(connection)
        assert answered(connection, Texts(["Größe"]), "text[]") == ["Größe"]
