"""A Postgres server for a benchmark: that of a URL, or one that is started here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres(url: str | None) -> Iterator[str]:
    """The URL of an empty database. Without a URL it is on a server that is started here, with fsync."""
    if url:
        yield url
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres.cluster import Cluster

    with Cluster(durable=True) as cluster:
        yield cluster.url
