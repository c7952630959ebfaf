"""Registration of your own classes with the serializer.

A name in stored data is never trusted, but a registered class is: it may be stored and loaded under every policy, with
the functions and the old names of its registration.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from threadmark.errors import ConfigError
from threadmark.runtime.processes import reset_after_fork
from threadmark.serde.kinds_api import Upgrade

T = TypeVar("T")


class Registered(NamedTuple):
    """One registered class. Without `encode` and `decode`, the family that accepts it stores its values."""

    cls: type
    name: str
    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any] | None
    upgrade: Upgrade | None


class Registry:
    """Registered classes, by class and by every name that stored data may have for them."""

    def __init__(self) -> None:
        self._reset_after_fork()
        self._by_class: MappingProxyType[type, Registered] = MappingProxyType({})
        self._by_name: MappingProxyType[str, Registered] = MappingProxyType({})
        reset_after_fork(self)

    def register(
        self,
        cls: type[T],
        name: str | None = None,
        encode: Callable[[T], Any] | None = None,
        decode: Callable[[Any], T] | None = None,
        *,
        aliases: Iterable[str] = (),
        upgrade: Upgrade | None = None,
    ) -> None:
        """Allow values of `cls` (not of its subclasses) to be stored, and define how if no family accepts it.

        Args:
            cls: The class.
            name: The name of the class in stored data, by default "module:Class". It must never change.
            encode: Returns a value as data of other kinds. Give it with `decode`, or give neither.
            decode: Returns the value from the data that `encode` returned.
            aliases: Other names that stored data may use: of another registration, or "module:Class".
            upgrade: For a dataclass, model or other record whose fields have changed: takes the stored fields and
                returns the fields that the class has now. A field that is left out gets the class's default.
        """
        if (encode is None) is not (decode is None):
            raise ConfigError(f"register({cls.__name__}): give both encode and decode, or neither")
        if encode is not None and upgrade is not None:
            raise ConfigError(
                f"register({cls.__name__}): give upgrade or decode, not both: decode gets the old state itself"
            )
        own_name = name or f"{cls.__module__}:{cls.__qualname__}"
        entry = Registered(cls, own_name, encode, decode, upgrade)
        with self._lock:
            by_class, by_name = dict(self._by_class), dict(self._by_name)
            if previous := by_class.pop(cls, None):
                by_name = {key: other for key, other in by_name.items() if other is not previous}
            for each in (own_name, *aliases):
                taken = by_name.get(each)
                if taken is not None and not _same_location(taken.cls, cls):
                    raise ConfigError(f"register({cls.__name__}): the name {each!r} belongs to {taken.cls!r}")
                by_name[each] = entry
            by_class[cls] = entry
            self._by_class, self._by_name = MappingProxyType(by_class), MappingProxyType(by_name)

    def _reset_after_fork(self) -> None:
        """Make a new lock in the child of a fork: the thread that held the old one does not exist there."""
        self._lock = Lock()

    def of_class(self, cls: type) -> Registered | None:
        """Return the registration of exactly this class, or None."""
        return self._by_class.get(cls)

    def of_name(self, name: str) -> Registered | None:
        """Return the registration of a name or an alias, or None."""
        return self._by_name.get(name)


def _same_location(one: type, other: type) -> bool:
    """Return whether one class is the other, defined again (in a notebook's cell, or by a reload)."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


DEFAULT = Registry()
register = DEFAULT.register
