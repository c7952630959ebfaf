"""The compiled serializer and the one in Python on the same value, or on the same bytes."""

from typing import Any

from serde.packers import in_python
from threadmark.errors import LocatedError
from threadmark.serde import Registry, Serde
from threadmark.serde.registry import DEFAULT


class Both:
    """A serializer of each sort. They are used again and again, so that they know how objects look."""

    def __init__(self, registry: Registry = DEFAULT) -> None:
        self._compiled = Serde(registry=registry)
        self._in_python = Serde(registry=registry)

    def encoding(self, value: Any) -> tuple[str, bytes] | Exception:
        """Return both results for a value: the tag and the bytes, or an error that says the same."""
        compiled: tuple[str, bytes] | Exception = _outcome(self._compiled.dumps_typed, value)
        with in_python():
            reference = _outcome(self._in_python.dumps_typed, value)
        assert _comparable(compiled) == _comparable(reference)
        return compiled

    def value(self, stored: tuple[str, bytes]) -> Any:
        """Return both results for stored bytes: a value, or an error that says the same."""
        compiled = _outcome(self._compiled.loads_typed, stored)
        with in_python():
            reference = _outcome(self._in_python.loads_typed, stored)
            # Values are compared by their stored form: some of them have no equality that works.
            found = [
                each if isinstance(each, LocatedError) else _outcome(self._in_python.dumps_typed, each)
                for each in (compiled, reference)
            ]
        assert _comparable(found[0]) == _comparable(found[1])
        return compiled

    def agree(self, value: Any) -> None:
        """Check that both write the same and read the same, also the second time, when they know the objects."""
        for _ in range(2):
            stored = self.encoding(value)
            if not isinstance(stored, Exception):
                self.value(stored)


def _outcome(action: Any, argument: Any) -> Any:
    try:
        return action(argument)
    except LocatedError as error:
        return error


def _comparable(outcome: Any) -> Any:
    if isinstance(outcome, LocatedError):
        return type(outcome), str(outcome), outcome.location
    return outcome
