"""The databases of chaos rounds: servers that are killed, stopped and restarted, and files that cannot be."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol, Self

from postgres.cluster import Cluster, processes
from redis_backend.processes import DURABLE, RedisProcess
from threadmark import Saver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisSaver
from threadmark_sqlite import SqliteSaver

_numbers = count()
_LONG = 30.0


def open_side(url: str) -> Saver:
    """Open one side of a pair by itself."""
    if url.startswith("postgresql:"):
        return PostgresSaver(url)
    return RedisSaver(url) if url.startswith("redis:") else SqliteSaver(url)


class Server(Protocol):
    """A database for one side of a pair."""

    port: int

    def new(self, folder: Path) -> Callable[[int], str]:
        """Make an empty database. Returns its URL, by the port through which it is reached."""

    def kill(self) -> None:
        """End it at once."""

    def start(self) -> object:
        """Start it again."""

    def restart(self) -> None:
        """Stop it in good order, and start it again."""

    def suspend(self) -> None:
        """Let it hang: connections stay, nothing is answered."""

    def resume(self) -> None:
        """Let it go on."""


class PostgresPlace(Cluster):
    """A Postgres server that can be stopped with all its processes."""

    def __init__(self, *, durable: bool = True, settings: Mapping[str, str] = {}) -> None:
        super().__init__(durable=durable, settings=settings)
        self._stopped: list[int] = []

    def new(self, _: Path) -> Callable[[int], str]:
        """Make an empty database."""
        name = f"chaos_{os.getpid()}_{next(_numbers)}"
        self.database(name)
        return lambda port: f"postgresql://postgres@127.0.0.1:{port}/{name}"

    def start(self) -> None:
        """Start the server and wait for it. Sessions of one that was killed may hold its memory for a moment."""
        until = time.monotonic() + _LONG
        while True:
            try:
                super().start()
            except AssertionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def suspend(self) -> None:
        """Let it hang."""
        os.kill(processes(self.data)[0], signal.SIGSTOP)  # it starts no other process from now on
        first, *children = processes(self.data)
        self._stopped = [*children, first]
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._stopped:
            with suppress(ProcessLookupError):  # it ended before it was stopped
                os.kill(process, number)


class RedisPlace(RedisProcess):
    """A Redis server that keeps all acknowledged writes."""

    def __init__(self) -> None:
        super().__init__({**DURABLE, "databases": "1000"})
        self.start()

    def new(self, _: Path) -> Callable[[int], str]:
        """Choose an unused database."""
        number = next(_numbers)
        return lambda port: f"redis://127.0.0.1:{port}/{number}"


def _cannot(_: object) -> None:
    raise NotImplementedError("a file is no process")


class FilePlace:
    """SQLite files, which no process serves: clients find the way to them closed."""

    port = 0
    kill = start = restart = suspend = resume = _cannot

    def new(self, folder: Path) -> Callable[[int], str]:
        """Choose a file that is not there yet."""
        path = folder / f"side{next(_numbers)}.db"
        return lambda _: f"sqlite:///{path}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
