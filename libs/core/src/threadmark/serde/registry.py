"""What the user, or a package on the user's behalf, tells the serializer about classes of their own.

Registering is the act of trust that a name in stored data never is: a registered class may be stored and
loaded under every policy, its functions are the ones given here, and old names lead to it only because they
are listed.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from threadmark.errors import ConfigError
from threadmark.forks import begin_anew_after_fork
from threadmark.serde.kinds_api import Upgrade

T = TypeVar("T")


class Registered(NamedTuple):
    """One registered class. Without `encode` and `decode`, the family of its kind stores it."""

    cls: type
    name: str
    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any] | None
    upgrade: Upgrade | None


class Registry:
    """Registered classes by class and by every name that stored data may give them."""

    def __init__(self) -> None:
        self.begin_anew()
        self._by_class: MappingProxyType[type, Registered] = MappingProxyType({})
        self._by_name: MappingProxyType[str, Registered] = MappingProxyType({})
        begin_anew_after_fork(self)

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
        """Let values of `cls` (not of its subclasses) be stored, and say how where no family knows.

        Args:
            cls: The class.
            name: What the data calls the class; "module:Class" unless given. It must never change.
            encode: Takes a value apart into data of other kinds.
            decode: Builds the value from what `encode` returned. Both or neither.
            aliases: Other names that stored data may use: of another registration, or "module:Class".
            upgrade: For a dataclass, model or other record whose fields have changed: gets the stored fields,
                returns those the class has now. A field that is left out takes the class's default.
        """
        if (encode is None) is not (decode is None):
            raise ConfigError(f"register({cls.__name__}): encode and decode come together")
        if encode is not None and upgrade is not None:
            raise ConfigError(f"register({cls.__name__}): decode sees the old state itself, upgrade has no place")
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

    def begin_anew(self) -> None:
        """In the child of a fork: a thread that was registering a class there is not here."""
        self._lock = Lock()

    def of_class(self, cls: type) -> Registered | None:
        """What was registered for exactly this class."""
        return self._by_class.get(cls)

    def of_name(self, name: str) -> Registered | None:
        """What was registered under a name or an alias."""
        return self._by_name.get(name)


def _same_location(one: type, other: type) -> bool:
    """A class defined again (a notebook's cell, a reload) takes the place of its former self."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


DEFAULT = Registry()
register = DEFAULT.register
