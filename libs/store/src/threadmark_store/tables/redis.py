"""The scripts of a store on Redis, and tables there, which need no creation."""

from functools import cache
from hashlib import sha1
from importlib import resources

from threadmark.backends import Program
from threadmark_redis.steps import Script
from threadmark_redis.store import RedisStore


@cache
def script(folder: str) -> Script:
    """Return the script of a folder of this package, `redis.lua`."""
    text = (resources.files(f"threadmark_store.{folder}") / "redis.lua").read_text("utf-8")
    return Script(f"store_{folder}", text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class RedisTable:
    """Keys of a saver's database, which are there as soon as they have something."""

    def __init__(self, rows: RedisStore) -> None:
        self._prefix = rows.settings.prefix
        self._clustered = rows.settings.clustered

    def exists(self) -> Program[bool]:
        yield from ()
        return True

    def create(self) -> Program[None]:
        yield from ()
