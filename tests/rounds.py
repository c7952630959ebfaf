"""The scripts of benchmarks/ that kill and stop processes in rounds, and the databases that they take."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres.cluster import shared
from redis_backend.processes import FORGETFUL, RedisProcess

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it


def output_of(script: str, *arguments: object, in_memory: bool = False, within: float | None = None) -> str:
    """Run a script of benchmarks/ to its end, and return its output. Fails if the script does.

    It is a separate process, because the rounds fork, which a process with threads must not. With `in_memory` its files
    never reach a disk: a killed process leaves them in the page cache all the same.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if in_memory and MEMORY.is_dir():
        environment["TMPDIR"] = str(MEMORY)
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=within, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@contextmanager
def database_of(backend: str) -> Iterator[str]:
    """Give the argument for a script: "sqlite", for which it makes a file, or the URL of an empty database."""
    if backend == "redis":
        with RedisProcess(FORGETFUL).start() as server:
            yield server.url
    elif backend == "postgres":
        name = f"rounds_{os.getpid()}"
        yield shared().database(name)
        shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
    else:
        yield backend
