"""Postgres clusters of the tests' own: made in a temporary folder, on a free port, gone at the end."""

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg

from marks import require
from ports import free_port

if sys.platform != "win32":
    import pwd

ROOT = Path(__file__).parents[2]
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    "log_min_messages": "fatal",
    "shared_preload_libraries": "plpgsql",  # each new session would load it
    # Databases in other languages and with other defaults are more common than this one is.
    "default_transaction_isolation": "repeatable read",
}


_starting = threading.Lock()

_FORGETFUL = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_wal_size": "256MB"}
"""Settings for a server that is never killed."""


class PostgresServer:
    """A server that listens on this machine, and whose superuser needs no password."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def url(self) -> str:
        """The URL of the server, for its superuser."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def database(self, name: str) -> str:
        """The URL of a new, empty database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            # Copied files take less than half the time of copied pages, where a release can do this.
            how = "STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f'CREATE DATABASE "{name}" {how}')
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        """Run one statement as the superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


class Cluster(PostgresServer):
    """A server with its files; `durable` leaves fsync on."""

    def __init__(
        self,
        *,
        durable: bool = False,
        primary: "Cluster | None" = None,
        settings: Mapping[str, str] = {},
        programs: Path | None = None,
    ) -> None:
        require("postgres")
        self._programs = programs or server_binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="threadmark-postgres-"))
        self.data = self.folder / "data"
        super().__init__(free_port())
        self._user = server_user()
        if self._user:
            shutil.chown(self.folder, self._user)
        if primary is None:
            self._command("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
            self._configure(_SETTINGS | ({} if durable else _FORGETFUL) | dict(settings))
        else:
            source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
            self._command("pg_basebackup", "-D", self.data, "-d", source, "-R", "-X", "stream", "-c", "fast")
        self._configure({"port": str(self.port), "unix_socket_directories": f"'{self.folder}'"})
        self.start()

    def start(self) -> None:
        """Start the server and wait for it."""
        self._command("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-s", "start")

    def stop(self) -> None:
        """Stop the server; sessions are ended."""
        self._command("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-s", "stop")

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the server and every session at once, as a power cut would."""
        for process in processes(self.data):
            with suppress(ProcessLookupError):  # it was about to end anyway, as that of a closed connection is
                os.kill(process, signal.SIGKILL)

    def crash(self) -> None:
        """End the server like `kill`, and wait until it is gone, so that it can be started again."""
        self._command("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "-s", "stop")

    def promote(self) -> None:
        """Make a standby the primary."""
        self._command("pg_ctl", "-D", self.data, "-w", "-s", "promote")

    def configure(self, **settings: str) -> None:
        """Change settings that need no restart."""
        self._configure(settings)
        self._command("pg_ctl", "-D", self.data, "-s", "reload")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if (self.data / "postmaster.pid").exists():
            self._command("pg_ctl", "-D", self.data, "-m", "immediate", "-s", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _configure(self, settings: dict[str, str]) -> None:
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {_quoted(value)}\n" for name, value in settings.items())

    def _command(self, program: str, *arguments: object, check: bool = True) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        outcome = subprocess.run(
            as_user(self._user, command),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
        if check and outcome.returncode:
            raise AssertionError(f"{program} failed: {outcome.stdout}{outcome.stderr}")


def newest_programs() -> Path:
    """The programs of the newest Postgres, which has pgvector."""
    script = [sys.executable, str(ROOT / "scripts" / "newest_postgres.py")]
    return Path(subprocess.run(script, capture_output=True, text=True, check=True).stdout.strip())


def processes(data: Path) -> list[int]:
    """The processes of the server on this folder: the first one, then its sessions and other children."""
    first = int((data / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [first, *map(int, children)]


def shared() -> PostgresServer:
    """The one server of a run of tests that need no separate one; it ends with the process.

    THREADMARK_POSTGRES_PORT names the port of another one, so that CI can run them on every version. It is for one
    process at a time, and its databases stay.
    """
    require("postgres")
    with _starting:
        return _shared()


@functools.cache
def with_pgvector() -> PostgresServer:
    """A server that has the extension pgvector: its database in a schema `extensions`, new ones not yet.

    It ends with the process.
    """
    cluster = Cluster(programs=newest_programs())
    atexit.register(cluster.__exit__)
    cluster.execute("CREATE SCHEMA extensions")
    cluster.execute("CREATE EXTENSION vector SCHEMA extensions")
    return cluster


@functools.cache
def _shared() -> PostgresServer:
    given = os.environ.get("THREADMARK_POSTGRES_PORT")
    if given:
        return PostgresServer(int(given))
    cluster = Cluster()
    atexit.register(cluster.__exit__)
    return cluster


def server_user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in users else "nobody"


def as_user(user: str | None, command: list[str]) -> list[str]:
    """The command, run by this user."""
    if user is None:
        return command
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", *command]


@functools.cache
def server_binaries() -> Path:
    """The folder of the server's programs."""
    script = ROOT / "scripts" / "ensure-postgres"
    found = subprocess.run([script], capture_output=True, text=True, check=False)
    if found.returncode:
        raise AssertionError(found.stderr)
    programs = Path(found.stdout.strip())
    user = server_user()
    if subprocess.run(as_user(user, ["test", "-x", str(programs / "postgres")]), check=False, cwd="/").returncode == 0:
        return programs
    # They are in a folder of root's. The programs find their libraries and files next to themselves.
    folder = Path(tempfile.mkdtemp(prefix="threadmark-postgres-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    shutil.copytree(programs.parent, folder / "installed", symlinks=True)
    return folder / "installed" / "bin"


def _quoted(value: str) -> str:
    return value if value.startswith("'") else f"'{value}'"
