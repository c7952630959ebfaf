"""The serializer that savers use: from a value to a tag and bytes, and back to an equal value of the same types."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Protocol, TypeGuard, runtime_checkable

from threadmark.errors import CorruptDataError, LocatedError, SerializationError
from threadmark.serde.classes import Classes, checked_classes
from threadmark.serde.decoder import decode, decode_plain
from threadmark.serde.dispatch import Dispatch, is_inside_encode
from threadmark.serde.encoder import SCALARS, encode
from threadmark.serde.locations import where_unstorable
from threadmark.serde.parts import Items, Source, items, part
from threadmark.serde.registry import DEFAULT, Registry
from threadmark.serde.showing import ShowingDispatch
from threadmark.serde.steps import Step, taken
from threadmark.serde.wire import pack_scalar

NONE, PLAIN, TYPED = "n", "m", "t"
OWN_TAGS = frozenset({NONE, PLAIN, TYPED})


@runtime_checkable
class Serializer(Protocol):
    """The interface of a serializer. Any object with these two methods will do."""

    def dumps_typed(self, obj: Any, /) -> tuple[str, bytes]:
        """Return a short tag, which is stored with the value, and the bytes."""

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        """Return the value from the result of `dumps_typed`."""


class Serde:
    """Threadmark's serializer. A value comes back equal and of the same types, or storing it is an error.

    Args:
        allow: The only classes, besides builtin kinds and registered classes, that may be stored and loaded: classes,
            "module:Class" or "module:*". By default, every class of a known family (dataclass, enum, pydantic model
            ...) whose module the program has imported.
        dangerously_import_anything: Let names in stored data import modules. Importing runs code, so use this only for
            data that no one else could have written.
        registry: The registered classes. By default those of `threadmark.serde.register`.
    """

    def __init__(
        self,
        *,
        allow: Iterable[type | str] | None = None,
        dangerously_import_anything: bool = False,
        registry: Registry = DEFAULT,
    ) -> None:
        self._allow = None if allow is None else checked_classes(allow)
        self._import_anything = dangerously_import_anything
        self._registry = registry
        self._shows = self._keeps_local = False
        self._showing: Serde | None = None
        self._dispatch = Dispatch(registry, self._classes())

    def __repr__(self) -> str:
        arguments = []
        if self._allow is not None:
            names = sorted(
                each if isinstance(each, str) else f"{each.__module__}:{each.__qualname__}" for each in self._allow
            )
            arguments.append(f"allow={names}")
        if self._import_anything:
            arguments.append("dangerously_import_anything=True")
        if self._registry is not DEFAULT:
            arguments.append(f"registry={self._registry!r}")
        return f"Serde({', '.join(arguments)}){'.showing()' if self._shows else ''}"

    def allowing(self, classes: Iterable[type | str]) -> "Serde":
        """Return a serializer that also allows these classes, or this one if it already does."""
        added = checked_classes(classes)
        if self._allow is None or added <= self._allow:
            return self
        allowing = Serde(
            allow=self._allow | added,
            dangerously_import_anything=self._import_anything,
            registry=self._registry,
        )
        if self._keeps_local:
            allowing = allowing.keeping_local_classes()
        return allowing.showing() if self._shows else allowing

    def keeping_local_classes(self) -> "Serde":
        """Return a serializer that also stores objects of classes that no name leads to, such as one in a function.

        Use it only for stores that end with the process, because another process cannot find these classes.
        """
        if self._keeps_local:
            return self
        other = copy(self)
        other._keeps_local, other._shows, other._showing = True, False, None  # noqa: SLF001 - our own copy
        other._dispatch = Dispatch(self._registry, other._classes())  # noqa: SLF001 - see above
        return other.showing() if self._shows else other

    def _classes(self) -> Classes:
        return Classes(
            self._registry, self._allow, import_anything=self._import_anything, keeps_local=self._keeps_local
        )

    def showing(self) -> "Serde":
        """Return a serializer that reads objects as `ObjectView`, without their classes, and writes like this one."""
        if self._shows:
            return self
        if self._showing is None:
            other = copy(self)
            other._dispatch = ShowingDispatch(self._registry, self._classes())  # noqa: SLF001 - our own copy
            other._shows = True  # noqa: SLF001 - see above
            self._showing = other  # so that its knowledge of marks is kept
        return self._showing

    def dumps_typed(self, obj: Any, /) -> tuple[str, bytes]:
        """Encode a value as a tag and bytes. Equal values give equal bytes in every process."""
        if obj is None:
            return NONE, b""
        if type(obj) in SCALARS:
            try:
                return PLAIN, pack_scalar(obj)
            except OverflowError:
                pass  # an int of more than 64 bits has a mark
        try:
            encoded, typed = encode(obj, self._dispatch)
        except Exception as error:
            # Inside a registered function, only the outermost call looks for the location: to look in each would take
            # twice as long at every level.
            found = None if is_inside_encode() else where_unstorable(obj, self._dispatch)
            if found is None and isinstance(error, LocatedError):
                raise
            raise found or SerializationError(f"it cannot be stored: {error}") from error
        return (TYPED if typed else PLAIN), encoded

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        """Return the value from the result of `dumps_typed`."""
        tag, encoded = data
        if tag == PLAIN:
            return decode_plain(encoded, self._dispatch)
        if tag == TYPED:
            return decode(encoded, self._dispatch)
        if tag == NONE and not encoded:
            return None
        raise _unknown_tag(tag)

    def loads_part(self, data: tuple[str, bytes], steps: Sequence[Step], /) -> Any:
        """Return the part of a value at the end of some steps, without decoding the rest.

        Returns `NOTHING` if there is none.
        """
        source = self._source(data)
        return taken(None, steps) if source is None else part(source, steps)

    def loads_items(self, data: tuple[str, bytes], /) -> Items | None:
        """Find the items of a list or a tuple, to decode some of them. Returns None for any other value."""
        source = self._source(data)
        return None if source is None else items(source)

    def _source(self, data: tuple[str, bytes]) -> Source | None:
        tag, encoded = data
        if tag == NONE and not encoded:
            return None
        if tag not in (PLAIN, TYPED):
            raise _unknown_tag(tag)
        return Source(encoded, tag == TYPED, self._dispatch)


def finds_parts(serde: Serializer) -> TypeGuard[Serde]:
    """Return whether a serializer can find a part of a value that it wrote."""
    return isinstance(serde, Serde) and type(serde).loads_typed is Serde.loads_typed


def _unknown_tag(tag: str) -> CorruptDataError:
    return CorruptDataError(f"the tag {tag!r} is not one that this serializer writes")
