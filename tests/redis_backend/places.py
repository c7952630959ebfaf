"""The three set-ups by name, so that one test serves all: servers that every test shares, none of which is killed."""

from collections.abc import Callable, Mapping
from typing import Any

from redis_backend import cluster, processes, sentinel
from redis_backend.backends import OPTIONS
from threadmark_redis import RedisSaver

PLACES: Mapping[str, Callable[[], str]] = {
    "single": lambda: processes.shared().url,
    "cluster": lambda: cluster.shared().url,
    "sentinel": lambda: sentinel.shared().url,
}
"""The URL of each."""


def saver_at(place: str, prefix: str, **options: Any) -> RedisSaver:
    """A saver at one of them."""
    return RedisSaver(PLACES[place](), prefix=prefix, **{**OPTIONS, **options})
