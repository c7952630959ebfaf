"""Which releases of Postgres the suite runs on: the machine's own, and the newest when it runs a second time."""

import os

import psycopg

OLDEST, NEWEST = 13, 18


def test_the_server_is_one_that_threadmark_supports(url: str) -> None:
    with psycopg.connect(url) as connection:
        release = connection.info.server_version // 10_000
    assert OLDEST <= release <= NEWEST
    if os.environ.get("THREADMARK_PURE_PYTHON"):
        assert release == NEWEST, "the second run is to be on the newest release: run it by `make test`"
