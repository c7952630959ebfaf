"""A PgBouncer in front of a cluster, in transaction mode: each transaction may meet another session of the server."""

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import pytest

from ports import free_port
from postgres.cluster import ROOT, PostgresServer, as_user, server_user, shared

_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
logfile = {folder}/log
"""


class Bouncer:
    """The program with its files."""

    def __init__(self, cluster: PostgresServer, program: str) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="threadmark-pgbouncer-"))
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=cluster.port, port=self.port, folder=self._folder))
        user = server_user()
        if user:
            shutil.chown(self._folder, user)
            shutil.chown(settings, user)
        self._process = subprocess.Popen(
            as_user(user, [program, str(settings)]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()

    @property
    def url(self) -> str:
        """The cluster's own database, through the program."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        log = self._folder / "log"
        raise AssertionError(f"pgbouncer did not start: {log.read_text() if log.exists() else 'it left no log'}")


def shared_bouncer() -> Bouncer:
    """The one in front of `shared()`, which ends with the process. If there is no PgBouncer, the test is skipped."""
    return _running(_installed())


def bouncer_before(server: PostgresServer) -> Bouncer:
    """A separate one in front of a server. If there is no PgBouncer, the test is skipped."""
    return Bouncer(server, _installed())


def _installed() -> str:
    program = _program()
    if program is None:
        if "CI" in os.environ:
            raise AssertionError("PgBouncer is not installed, and in CI nothing may be skipped")
        pytest.skip("PgBouncer is not installed; scripts/ensure-pgbouncer says how")
    return program


@functools.cache
def _running(program: str) -> Bouncer:
    bouncer = Bouncer(shared(), program)
    atexit.register(bouncer.__exit__)
    return bouncer


@functools.cache
def _program() -> str | None:
    script = ROOT / "scripts" / "ensure-pgbouncer"
    found = subprocess.run([script], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None
