"""Databases with two threads, for commands that change them, and a terminal to run them in."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import threadmark
from citus.nodes import ALSO, shared_nodes
from postgres.cluster import shared
from redis_backend.processes import DURABLE, RedisProcess
from threadmark import SaverProtocol, new_id

if sys.platform != "win32":
    import pty

STEPS = 5
_DEADLINE = 120.0


def config(thread_id: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    """The configuration that names a checkpoint of a thread, or its newest."""
    named = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **named}}


def fill(saver: SaverProtocol, thread_id: str = "one", steps: int = STEPS) -> list[str]:
    """Put some checkpoints that count, and a pending write of the last. Returns their ids."""
    ids: list[str] = []
    for step in range(steps):
        values = {"count": step, "log": [f"step {each}" for each in range(step + 1)]}
        versions = dict.fromkeys(values, step + 1)
        stored: Any = {
            "v": 4,
            "id": new_id(),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": values,
            "channel_versions": versions,
            "versions_seen": {},
        }
        saver.put(config(thread_id, ids[-1] if ids else None), stored, {"source": "loop", "step": step}, versions)
        ids.append(stored["id"])
    saver.put_writes(config(thread_id, ids[-1]), [("count", 99)], "a-task")
    return ids


def values(url: str, thread_id: str, checkpoint_id: str | None = None) -> Any:
    """The state of a thread, None if there is none."""
    with threadmark.open(url) as saver:
        found = saver.get_tuple(config(thread_id, checkpoint_id))
    return found and found.checkpoint["channel_values"]


def sizes(url: str) -> dict[str, int]:
    """The threads of a database, with how many checkpoints they have."""
    with threadmark.open(url) as saver:
        return {each.id: each.checkpoints for each in saver.list_threads(limit=1000).threads}


@contextmanager
def sqlite_url(folder: Path) -> Iterator[str]:
    """A file."""
    yield f"sqlite:///{folder / 'agents.db'}"


@contextmanager
def postgres_url(folder: Path) -> Iterator[str]:  # noqa: ARG001 - it has a server
    """A database of the tests' server."""
    yield shared().database(f"manage{uuid4().hex}")


@contextmanager
def redis_url(folder: Path) -> Iterator[str]:  # noqa: ARG001 - it has a server
    """A separate server."""
    with RedisProcess(DURABLE).start() as server:
        yield server.url


@contextmanager
def citus_url(folder: Path) -> Iterator[str]:  # noqa: ARG001 - it has a cluster
    """A database of the tests' cluster."""
    yield shared_nodes().database(f"manage{uuid4().hex}")


URLS = {"sqlite": sqlite_url, "postgres": postgres_url, "redis": redis_url} | dict.fromkeys(ALSO, citus_url)


class Ran(NamedTuple):
    """The outcome of a command in a terminal."""

    code: int
    screen: str


def answering(arguments: Sequence[str], *, answer: bytes, after: str = "[y/N]") -> Ran:
    """Run the command in a pseudo-terminal, and type an answer, or Ctrl-C, once a text has appeared."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-m", "threadmark_cli", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        preexec_fn=_lead,  # noqa: PLW1509 - so that Ctrl-C reaches it, as from its own terminal
    ) as process:
        os.close(theirs)
        screen, waiting, end = "", True, time.monotonic() + _DEADLINE
        while time.monotonic() < end and (found := _read(ours)) is not None:
            screen += found
            if waiting and after in screen:
                waiting = False
                os.write(ours, answer)
        if process.poll() is None and time.monotonic() >= end:
            process.send_signal(signal.SIGKILL)
        os.close(ours)
        return Ran(process.wait(), screen)


def _lead() -> None:
    os.setsid()
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(terminal: int) -> str | None:
    """The output since the last call; None once the writers are gone."""
    if not select.select([terminal], [], [], 0.1)[0]:
        return ""
    try:
        data = os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return None
    return data.decode("utf-8", "replace") or None
