"""Dictionaries that were opened with flag "r": a class of their own, so that others look for no flag."""

from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from threadmark.persistent.storage import Storage

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
    """Return the class that refuses changes, of a class of dictionaries."""
    return type(cls.__name__, (_ReadOnly, cls), {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__})
