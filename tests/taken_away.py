"""A process without something that POSIX or Linux has, in which behaviours of the suite are run.

It is run as a program: `python tests/taken_away.py fork,inodes 0 12` takes both away and runs every twelfth behaviour,
from the first on, in memory and on a SQLite file.
"""

import asyncio
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
_FOLDERS = ("/proc", "/dev/fd", "/sys")
_FORKS = ("fork", "forkpty", "register_at_fork")
_SIGNALS = ("pthread_kill", "pthread_sigmask", "setitimer", "getitimer", "alarm", "sigwait", "SIGALRM", "SIGUSR1")
_POSIX = ("pread", "pwrite", "fchmod", "fchown", "getuid", "geteuid", "uname", "sync", "sched_getaffinity", "O_CLOEXEC")
_MOST_FILES = 256
"""So many numbers of open files are looked at."""
_READERS = ("add_reader", "remove_reader", "add_writer", "remove_writer", "add_signal_handler")


def _lacks(thing: object, names: tuple[str, ...]) -> None:
    for name in names:
        with suppress(AttributeError):
            delattr(thing, name)
        assert not hasattr(thing, name)


def fork() -> None:
    """No process can fork."""
    _lacks(os, _FORKS)


def signals() -> None:
    """Only the functions and signals that Windows has."""
    _lacks(signal, _SIGNALS)


def posix() -> None:
    """Python says that this is Windows, and has no module or function of POSIX."""
    importlib.import_module("zoneinfo")  # asks how Python was built, in a file that is named after the platform
    sys.platform = "win32"
    _lacks(os, _POSIX)
    modules: dict[str, Any] = sys.modules
    for name in _MODULES:
        modules[name] = None  # which makes an import fail
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        raise AssertionError(f"{name} is still there")


def folders() -> None:
    """No `/proc`, and no folder of the open files."""

    def hide(event: str, arguments: tuple[Any, ...]) -> None:
        path = arguments[0] if event in ("open", "os.listdir", "os.scandir") else None
        if isinstance(path, (str, os.PathLike)) and f"{os.fspath(path)}/".startswith(tuple(f"{f}/" for f in _FOLDERS)):
            raise FileNotFoundError(path)

    sys.addaudithook(hide)
    for look in (os.listdir, os.scandir, lambda path: os.open(path, os.O_RDONLY)):
        for folder in _FOLDERS:
            try:
                look(folder)
            except FileNotFoundError:
                continue
            raise AssertionError(f"{folder} is still there")


def inodes() -> None:
    """A file system that gives no inodes: every file has the same."""
    for name in ("stat", "lstat", "fstat"):
        setattr(os, name, _without_inode(getattr(os, name)))
    assert {os.stat(path).st_ino for path in (__file__, sys.executable)} == {0}  # noqa: PTH116 - what was replaced
    assert Path(__file__).stat().st_ino == 0


def _without_inode(status: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    @wraps(status)
    def changed(*arguments: Any, **options: Any) -> os.stat_result:
        found: Any = status(*arguments, **options).__reduce__()
        _, (plain, others) = found
        return os.stat_result((plain[0], 0, *plain[2:]), others)

    return changed


def readers() -> None:
    """The event loops cannot wait for a socket of yours, as the default loop of Windows cannot."""
    for name in _READERS:
        missing = getattr(asyncio.AbstractEventLoop, name)
        for kind in asyncio.SelectorEventLoop.__mro__:
            if name in vars(kind):
                setattr(kind, name, missing)

    async def read() -> None:
        try:
            asyncio.get_running_loop().add_reader(0, print)
        except NotImplementedError:
            return
        raise AssertionError("add_reader is still there")

    asyncio.run(read())


def open_files() -> None:
    """A file that this process has open can be neither deleted, nor moved, nor replaced."""
    fstat, stat = os.fstat, os.stat

    def is_open(path: Any, folder: int | None) -> bool:
        with suppress(OSError):
            found = stat(path, dir_fd=folder, follow_symlinks=False)
            for number in range(_MOST_FILES):
                with suppress(OSError):
                    if os.path.samestat(found, fstat(number)):
                        return True
        return False

    def keep(change: Callable[..., None]) -> Callable[..., None]:
        @wraps(change)
        def refusing(*paths: Any, dir_fd: int | None = None, **options: Any) -> None:
            for path in paths:
                if is_open(path, dir_fd):
                    raise PermissionError(13, "it is open", path)
            change(*paths, **options if dir_fd is None else {"dir_fd": dir_fd, **options})

        return refusing

    for name in ("unlink", "remove", "rename", "replace"):
        setattr(os, name, keep(getattr(os, name)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        with path.open("w"):
            try:
                path.unlink()
            except PermissionError:
                return
        raise AssertionError("an open file was deleted")


THINGS: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (fork, signals, open_files, folders, inodes, readers, posix)
}
"""In this order: open files are told by their inodes, and after the last one Python says that this is Windows."""


@contextmanager
def _sqlite_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def run_behaviours(first: int, stride: int) -> int:
    """Run a share of the behaviours, in memory and on a SQLite file. Returns how many there were."""
    from backends import BACKENDS
    from threadmark_conformance import CASES, run_case

    chosen = CASES[first::stride]
    for case in chosen:
        for backend, api in (("memory", "blocking"), ("sqlite file", "asyncio")):
            with _sqlite_file() as folder:
                try:
                    run_case(case, BACKENDS[backend], api, folder)
                except BaseException as error:
                    error.add_note(f"{case} on {backend} ({api})")
                    raise
    return len(chosen)


def take_away(names: list[str]) -> None:
    """Take these away; each checks that it is gone."""
    assert not any(name.startswith("threadmark") for name in sys.modules)
    for name, take in THINGS.items():
        if name in names:
            take()


if __name__ == "__main__":
    os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"
    importlib.import_module("hypothesis.stateful")  # looks at the system while it is imported
    taken, begin, step = sys.argv[1:]
    assert set(taken.split(",")) <= THINGS.keys()
    take_away(taken.split(","))
    sys.stdout.write(str(run_behaviours(int(begin), int(step))))
