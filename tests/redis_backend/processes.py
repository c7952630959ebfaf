"""Redis processes for the tests: in a temporary folder, on a free port, gone at the end whatever happens.

A test run that is killed stops nothing itself. So a small watching process waits until the run's end of a pipe is
closed, which the kernel does, then kills every server that the run has started, and removes its folder.
"""

import atexit
import functools
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import redis

from marks import require
from patience import wait_until
from ports import BUS, free_port

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"

FORGETFUL = {"save": '""', "appendonly": "no"}
"""The settings of a server that is never killed."""

DURABLE = {"save": '""', "appendonly": "yes", "appendfsync": "always"}
"""The settings that a saver requires of a server for `durability="full"`."""

_REPLICATION = {"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "0"}

_GUARD = """
trap '' INT TERM HUP
while read -r folder; do folders="$folders $folder"; done
for folder in $folders; do
    [ -f "$folder/pid" ] && kill -KILL "$(cat "$folder/pid")" 2>/dev/null
    rm -rf "$folder"
done
"""


class RedisProcess:
    """One server (or Sentinel) with its files. Making one starts it."""

    def __init__(self, settings: Mapping[str, str], *, port: int | None = None, sentinel: bool = False) -> None:
        self.port = free_port() if port is None else port
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-redis-"))
        _guard(self.folder)
        self._settings = self.folder / "redis.conf"
        self._options = ["--sentinel"] if sentinel else []
        self._process: subprocess.Popen[bytes] | None = None
        own = {"port": str(self.port), "bind": HOST, "dir": str(self.folder), "logfile": "log"}
        shared = {} if sentinel else {**FORGETFUL, **_REPLICATION}
        lines = [f"{name} {value}\n" for name, value in {**shared, **settings, **own}.items()]
        self._settings.write_text("".join(lines))

    def configure(self, lines: Sequence[str]) -> None:
        """Add lines to its settings, before it is started."""
        with self._settings.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"redis://{HOST}:{self.port}"

    @functools.cached_property
    def client(self) -> redis.Redis:
        """A client for the tests, to look at the stored keys and to damage them. It answers with bytes."""
        return redis.Redis(host=HOST, port=self.port)

    def start(self) -> Self:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()
        return self

    def launch(self) -> None:
        """Start it."""
        require("redis")
        self._process = subprocess.Popen(
            [program(), str(self._settings), *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the tests
        )
        (self.folder / "pid").write_text(str(self._process.pid))

    def wait(self, within: float = 60) -> None:
        """Wait until it answers, with everything loaded that it has on disk."""
        until = time.monotonic() + within
        while True:
            try:
                self.client.ping()
            except (redis.ConnectionError, redis.TimeoutError) as error:  # loading the data is one of the first
                if time.monotonic() > until or self._running().poll() is not None:
                    log = self.folder / "log"
                    why = log.read_text()[-2000:] if log.exists() else "it left no log"
                    raise AssertionError(f"redis-server at {self.port} did not start: {why}") from error
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        """End it at once, as the kernel does when memory is short."""
        self._running().kill()
        self._ended()

    def stop(self) -> None:
        """End it as a restart of the service does."""
        self._running().terminate()
        self._ended()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def suspend(self) -> None:
        """Let it hang: connections stay, nothing is answered."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._running().send_signal(signal.SIGCONT)

    def command(self, *arguments: object) -> Any:
        """Execute a command; its reply as the server gave it."""
        execute: Any = self.client.execute_command  # redis-py types no arguments of it
        return execute(*arguments)

    def information(self, section: str) -> dict[str, Any]:
        """A section of the server's INFO."""
        found: dict[str, Any] = self.client.info(section)
        return found

    def wait_for_replicas(self) -> None:
        """Wait until all its replicas have acknowledged everything that it has now.

        A WAIT concerns the changes of its own connection, and nothing else. And a replica whose link is up need not
        get changes yet: after a transfer without a disk the master may begin with them up to a second later, at the
        replica's next acknowledgement.
        """
        now = self.information("replication")["master_repl_offset"]

        def have_it() -> bool:
            found = self.information("replication")
            replicas = [found[f"slave{number}"] for number in range(found["connected_slaves"])]
            return bool(replicas) and all(each["offset"] >= now for each in replicas)

        wait_until(have_it, f"the replicas of the server at {self.port} do not follow it")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError, AssertionError):
            self.kill()
        self.client.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ended(self) -> None:
        self._running().wait(60)
        (self.folder / "pid").unlink(missing_ok=True)  # the number may be another process's before the run ends

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process, "it was not started"
        return self._process


@functools.cache
def program() -> str:
    """The server's program."""
    found = subprocess.run([ROOT / "scripts" / "ensure-redis"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise AssertionError(found.stderr)
    return found.stdout.strip()


def bus_port(port: int) -> int:
    """The port on which a node of a cluster listens for the others."""
    return port + BUS


@functools.cache
def _guardian() -> "subprocess.Popen[bytes]":
    guardian = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(guardian.communicate)
    return guardian


def _guard(folder: Path) -> None:
    stream = _guardian().stdin
    assert stream
    stream.write(f"{folder}\n".encode())
    stream.flush()


def shared() -> RedisProcess:
    """The single server of all tests that need no separate one; it ends with the process."""
    require("redis")
    return _shared()


@functools.cache
def _shared() -> RedisProcess:
    server = RedisProcess(FORGETFUL).start()
    atexit.register(server.__exit__)
    return server
