"""Names for classes that were defined inside a function, or replaced: no name of the language leads to them.

A store that ends with the process can keep their instances under a name that this process makes up. The class lives as
long as the program, or a serializer that has stored one of its objects, holds it.
"""

from itertools import count
from threading import Lock
from weakref import WeakKeyDictionary, WeakValueDictionary

MARK = "#"
"""Stands in such a name before its number, and in no other one."""

_names: WeakKeyDictionary[type, str] = WeakKeyDictionary()
_classes: WeakValueDictionary[str, type] = WeakValueDictionary()
_numbers = count(1)
_lock = Lock()


def local_name(cls: type, name: str) -> str:
    """Return the name of such a class, which begins with its canonical one."""
    with _lock:
        if cls not in _names:
            _names[cls] = f"{name}{MARK}{next(_numbers)}"
            _classes[_names[cls]] = cls
        return _names[cls]


def local_class(name: str) -> type | None:
    """Return the class of such a name, None where the program no longer holds it."""
    return _classes.get(name)
