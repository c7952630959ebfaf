"""`PersistentDict`: a dict that is kept in a file. With flag "r", it is of a class that refuses changes."""

import os
from collections.abc import Iterable
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from threadmark.errors import ConfigError, short_repr
from threadmark.persistent.ending import AtExit
from threadmark.saver.kit import checked_serde
from threadmark.serde import Serde, Serializer

if TYPE_CHECKING:
    from threadmark.persistent.storage import Flag, Storage

K = TypeVar("K")
V = TypeVar("V")

KIND = "dictionary"
_FLAGS = {"r": "read", "w": "write", "c": "create where it is missing", "n": "begin a new one"}


class PersistentDict(dict[K, V]):
    """A dict that is read from a file when it is opened, and stored there by `sync` and `close`.

    Between the two it is a plain dict: no access reads or writes the file. `sync` compares every key and value with the
    last stored ones, including changes inside a value, and stores the difference in one transaction. Use it as a
    context manager, or close it. If your program does not close it, it is stored when the program ends.

    Args:
        path: The file.
        flag: "r" only reads, even while the file is open for writing elsewhere; "w" needs an existing file; "c" creates
            it if it is missing; "n" begins with an empty dictionary, which replaces the contents of the file at the
            first `sync` or `close`.
        serde: The serializer of keys and values. The default is `threadmark.Serde()`.
    """

    __slots__ = ("__weakref__", "_at_exit", "_storage")

    _storage: "Storage"
    _at_exit: AtExit

    def __new__(cls, path: str | os.PathLike[str], flag: "Flag" = "c", *, serde: Serializer | None = None) -> Self:
        """Make an object of a class that refuses changes if the flag does, so that other objects pay nothing."""
        del path, serde  # see `__init__`
        return super().__new__(read_only(cls) if flag == "r" else cls)

    def __init__(self, path: str | os.PathLike[str], flag: "Flag" = "c", *, serde: Serializer | None = None) -> None:
        # SQLite is imported by those who use it.
        from threadmark.persistent.storage import Storage

        super().__init__()
        storage = Storage(
            checked_path(path), _checked_flag(flag), KIND, Serde() if serde is None else checked_serde(serde)
        )
        try:
            dict.update(self, storage.read())
        except BaseException:
            storage.close()
            raise
        self._storage = storage
        if flag != "r":
            self._at_exit = AtExit(self, storage.path)

    def sync(self) -> None:
        """Store all differences from the last stored contents, or none. When this returns, they are on the disk.

        Other threads may go on: the keys and their values are taken at one moment. A value that is changed inside while
        it is encoded is stored in one of its states or between them, and again by the next call.
        """
        self._storage.store(self._snapshot)

    def close(self) -> None:
        """Store everything and let others open the file. The contents in memory stay readable. You may call it again.

        From then on a change raises ClosedError, as nothing would store it.
        If it cannot be stored, this raises, and the dictionary stays open: nothing is lost, and you can close it again.
        """
        storage = self._storage
        if storage.is_open and hasattr(self, "_at_exit"):
            self.sync()
            self._at_exit.forget()
        storage.close()
        if not isinstance(self, _ReadOnly):
            self.__class__ = read_only(type(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_storage"):  # it was opened
            try:
                self.close()
            finally:
                self._storage.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and pickles plain dicts, because only one object has the file."""
        return dict, (dict(self),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def _snapshot(self) -> Iterable[tuple[K, V]]:
        """The keys and values of one moment."""
        while True:
            try:
                return dict.copy(self).items()
            except RuntimeError:  # another thread has just changed it
                continue


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file, without symbolic links. Raises ConfigError for anything but a path."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise ConfigError(f"expected the path of a file, not {short_repr(path)}")
    if name == ":memory:":
        raise ConfigError("':memory:' is no file: use a plain dict for data that need not be kept")
    return os.path.realpath(name)


def _checked_flag(flag: "Flag") -> "Flag":
    if not isinstance(flag, str) or flag not in _FLAGS:
        known = ", ".join(f"{each!r} ({meaning})" for each, meaning in _FLAGS.items())
        raise ConfigError(f"the flag must be one of {known}, not {short_repr(flag)}")
    return flag


D = TypeVar("D")


class _ReadOnly:
    """Refuses every method that changes a dict."""

    __slots__ = ()

    _storage: "Storage"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        self._storage.expect_open()
        raise AssertionError("a file that is open for reading only is never open for changes")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


@cache
def read_only(cls: type[D]) -> type[D]:
    """Return the variant of a dictionary class that refuses changes."""
    return type(cls.__name__, (_ReadOnly, cls), {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__})
