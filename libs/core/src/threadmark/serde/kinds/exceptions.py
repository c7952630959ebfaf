"""Exceptions: class, arguments, attributes, notes, cause and context. Tracebacks point into a process that is
gone.

Nothing of the class runs: the builtin behind it makes the object, and its fields are set from what was
stored.
"""

import builtins
from typing import Any

from threadmark.errors import CorruptDataError
from threadmark.serde.attributes import Attributes, checked_state
from threadmark.serde.plan import Definer, Give, Stored, Take

# Fields that builtin exceptions keep outside of `args` and `__dict__`. AttributeError's `obj` is left out: it
# is whatever object lacked the attribute, not data of the error.
_FIELDS: dict[type[BaseException], tuple[str, ...]] = {
    OSError: ("errno", "strerror", "filename", "filename2"),
    BlockingIOError: ("characters_written",),
    ImportError: ("name", "path", "msg"),
    SyntaxError: (
        "msg",
        "filename",
        "lineno",
        "offset",
        "text",
        "end_lineno",
        "end_offset",
        "print_file_and_line",
    ),
    StopIteration: ("value",),
    SystemExit: ("code",),
    UnicodeError: ("encoding", "object", "start", "end", "reason"),
    NameError: ("name",),
    AttributeError: ("name",),
}


class Exceptions:
    """Every exception, groups included."""

    letter = "X"
    title = "an exception"

    def accepts(self, cls: type) -> bool:
        """Whether the class is an exception."""
        return issubclass(cls, BaseException)

    def writer(self, define: Definer) -> Take:
        """Arguments, the builtin's fields, attributes, cause, context, whether the context is suppressed."""
        cls = define.cls
        shape, names, builtin, read = define.shape(), _field_names(cls), _builtin(cls), Attributes(cls).read

        def take(error: BaseException) -> list[Any]:
            own = {name: getattr(builtin, name).__get__(error) for name in names if _is_set(builtin, name, error)}
            items = [shape, list(error.args), own, read(error)]
            if error.__cause__ or error.__context__ or error.__suppress_context__:
                items += [error.__cause__, error.__context__, error.__suppress_context__]
            return items

        return take

    def reader(self, stored: Stored) -> Give:
        """Made by the builtin's `__new__`; only a group's reads its arguments."""
        cls = stored.cls
        names, builtin, write = frozenset(_field_names(cls)), _builtin(cls), Attributes(cls).write
        is_group = issubclass(cls, BaseExceptionGroup)

        def give(items: list[Any]) -> BaseException:
            args, own, state, *causes = items
            if type(args) is not list or not checked_state(own).keys() <= names:
                raise CorruptDataError("a stored exception is not one")
            error: BaseException = builtin.__new__(cls, *(args if is_group else ()))
            error.args = tuple(args)
            for name, value in own.items():
                getattr(builtin, name).__set__(error, value)
            write(error, checked_state(state))
            if causes:
                error.__cause__, error.__context__, error.__suppress_context__ = causes
            return error

        return give


def _field_names(cls: type) -> list[str]:
    return [name for owner, own in _FIELDS.items() if issubclass(cls, owner) for name in own]


def _builtin(cls: type) -> Any:
    return next(owner for owner in cls.__mro__ if vars(builtins).get(owner.__name__) is owner)


def _is_set(builtin: type, name: str, error: BaseException) -> bool:
    try:
        return getattr(builtin, name).__get__(error) is not None
    except (AttributeError, TypeError):
        return False


FAMILY = Exceptions()
