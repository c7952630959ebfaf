"""Postgres as it is run for high availability: Patroni with etcd, and in front of it HAProxy and PgBouncer.

Every node is reached through ports of this process alone, by its clients, by the other node and on its route to etcd,
so that it can be cut off like a machine whose network is gone.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import psycopg
import pytest

from patience import wait_until
from ports import free_port
from postgres.bouncer import Bouncer
from postgres.cluster import ROOT, PostgresServer, as_user, processes, server_binaries, server_user
from postgres.proxy import Proxy

_TTL = 20
"""Seconds after which a primary that renews its lease no more is replaced. Patroni takes no shorter time."""

_HAPROXY = """
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 1s
"""

_LISTEN = """
listen {role}
    bind 127.0.0.1:{port}
    option httpchk OPTIONS /{role}
    http-check expect status 200
    default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
"""


class Node:
    """A Patroni with its server."""

    def __init__(self, name: str, folder: Path, etcd: int, *, synchronous: bool) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self._server, self._rest = free_port(), free_port()
        self.clients, self.asked, self._etcd = Proxy(self._server), Proxy(self._rest), Proxy(etcd)
        self._settings = self.folder / "patroni.json"  # JSON is YAML
        self._settings.write_text(json.dumps(self._configuration(synchronous=synchronous)))
        user = server_user()
        if user:
            for path in (self.folder, self._settings):
                shutil.chown(path, user)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Patroni, which starts the server."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                as_user(server_user(), [_program("patroni"), str(self._settings)]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
            )

    def role(self) -> str:
        """Return the role of this node by Patroni: "master" or "primary", "replica", or "" if it says nothing."""
        with suppress(OSError, ValueError), urlopen(f"http://127.0.0.1:{self._rest}/patroni", timeout=1) as answer:
            found = json.load(answer)
            return str(found["role"]) if found["state"] == "running" else ""
        return ""

    def kill(self) -> None:
        """End Patroni and the server at once, as a power cut does."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(30)

    def pause(self) -> None:
        """Stop them in the middle of their work, as a machine that is suspended."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def cut_off(self) -> None:
        """Let nothing through: to clients, to the other node and to etcd."""
        for route in (self.clients, self.asked, self._etcd):
            route.fall_silent()

    def reconnect(self) -> None:
        """Let everything through again."""
        for route in (self.clients, self.asked, self._etcd):
            route.speak_again()

    def end(self) -> None:
        """End the remaining processes."""
        with suppress(FileNotFoundError, ProcessLookupError):
            self.resume()
            self.kill()
        for route in (self.clients, self.asked, self._etcd):
            route.__exit__()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _processes(self) -> list[int]:
        """Patroni first, so that it does not start the server again."""
        found = [self._process.pid] if self._process is not None and self._process.poll() is None else []
        with suppress(FileNotFoundError, ValueError, IndexError):
            found += processes(self.folder / "data")
        return found

    def _configuration(self, *, synchronous: bool) -> dict[str, Any]:
        user = {"username": "postgres", "password": "postgres"}
        return {
            "scope": "threadmark",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self._rest}", "connect_address": f"127.0.0.1:{self.asked.port}"},
            "etcd3": {"proxy": f"http://127.0.0.1:{self._etcd.port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": _TTL,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "synchronous_mode": synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 100}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self._server}",
                "connect_address": f"127.0.0.1:{self.clients.port}",
                "data_dir": str(self.folder / "data"),
                "bin_dir": str(server_binaries()),
                "pgpass": str(self.folder / "pgpass"),
                "authentication": {"superuser": user, "replication": user, "rewind": user},
                "parameters": {"unix_socket_directories": str(self.folder), "shared_buffers": "32MB"},
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 trust",
                    "host replication all 127.0.0.1/32 trust",
                ],
            },
        }


class Topology:
    """Two nodes, of which one is the primary, behind HAProxy and PgBouncer."""

    def __init__(self, *, synchronous: bool) -> None:
        self.synchronous = synchronous
        self._stack = ExitStack()
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise

    def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="threadmark-patroni-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        user = server_user()
        if user:
            shutil.chown(folder, user)
        etcd = self._start_etcd(folder)
        self.nodes = [Node(name, folder, etcd, synchronous=self.synchronous) for name in ("one", "two")]
        for node in self.nodes:
            self._stack.callback(node.end)
            node.start()
            wait_until(lambda node=node: node.role(), f"{node.name} does not start")  # type: ignore[misc]  # bound at once
        self._start_haproxy(folder)
        self._bouncer = self._stack.enter_context(Bouncer(PostgresServer(self.haproxy), _program("pgbouncer")))
        self.wait_until_whole()

    @property
    def urls(self) -> dict[str, str]:
        """The routes to the primary, by name."""
        ports = ",".join(f"127.0.0.1:{node.clients.port}" for node in self.nodes)
        return {
            "libpq": f"postgresql://postgres@{ports}/postgres?target_session_attrs=read-write&connect_timeout=2",
            "HAProxy": f"postgresql://postgres@127.0.0.1:{self.haproxy}/postgres?connect_timeout=2",
            "PgBouncer": f"{self._bouncer.url}&connect_timeout=2",
        }

    @property
    def for_reading(self) -> str:
        """The URL for `read_from="replica"`: HAProxy's two ports."""
        return f"postgresql://postgres@127.0.0.1:{self.haproxy},127.0.0.1:{self.replicas}/postgres?connect_timeout=2"

    def primary(self) -> Node | None:
        """Return the node that is the primary, if there is one that can be reached."""
        found = [node for node in self.nodes if node.role() in ("master", "primary")]
        return found[0] if len(found) == 1 else None

    def wait_until_whole(self) -> None:
        """Wait until one node is the primary and the other one its standby, in step if it is to be."""
        wait_until(self._is_whole, "the standby does not come back", within=120)

    def _is_whole(self) -> bool:
        with suppress(psycopg.Error), psycopg.connect(self.urls["HAProxy"]) as connection:
            rows = connection.execute("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'").fetchall()
            return rows == [("sync" if self.synchronous else "async",)]
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_etcd(self, folder: Path) -> int:
        clients, peers = free_port(), free_port()
        command = [
            *(_program("etcd"), "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync"),
            *("--listen-client-urls", f"http://127.0.0.1:{clients}"),
            *("--advertise-client-urls", f"http://127.0.0.1:{clients}"),
            *("--listen-peer-urls", f"http://127.0.0.1:{peers}"),
            *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}"),
            *("--initial-cluster", f"default=http://127.0.0.1:{peers}"),
        ]
        self._run(as_user(server_user(), command), folder / "etcd.log")
        wait_until(lambda: _answers(f"http://127.0.0.1:{clients}/health"), "etcd does not start")
        return clients

    def _start_haproxy(self, folder: Path) -> None:
        self.haproxy, self.replicas = free_port(), free_port()
        text = _HAPROXY
        for role, port in (("primary", self.haproxy), ("replica", self.replicas)):
            text += _LISTEN.format(role=role, port=port)
            for node in self.nodes:
                text += f"    server {node.name} 127.0.0.1:{node.clients.port} check port {node.asked.port}\n"
        settings = folder / "haproxy.cfg"
        settings.write_text(text)
        self._run([_program("haproxy"), "-db", "-f", str(settings)], folder / "haproxy.log")

    def _run(self, command: list[str], log: Path) -> None:
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/")
        self._stack.callback(process.wait, 30)
        self._stack.callback(process.kill)


def _answers(url: str) -> bool:
    with suppress(OSError), urlopen(url, timeout=1):  # noqa: S310 - it is ours
        return True
    return False


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise AssertionError(f"there is no {name}")
    return found


def expect_programs() -> None:
    """Skip the test if the programs are missing and cannot be installed; in CI that is a failure."""
    for script in ("ensure-patroni", "ensure-pgbouncer"):
        found = subprocess.run([ROOT / "scripts" / script], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            continue
        if "CI" in os.environ:
            raise AssertionError(found.stderr)
        pytest.skip(f"a program is not installed; scripts/{script} says how")
