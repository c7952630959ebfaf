"""Exceptions come back without a line of their class running, or are refused when they are put."""

from itertools import pairwise
from typing import Any, Self

import pytest
from msgpack import ExtType, packb
from pydantic_core import PydanticCustomError, PydanticOmit

from serde import specimens as s
from serde.test_exact import round_trip
from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde import Registry, Serde

ran: list[str] = []


def _runs(name: str) -> Any:
    return property(lambda _: ran.append(name), lambda *_: ran.append(f"{name} = ..."))


class GuardedError(Exception):
    """Notes whatever of it runs."""

    args = _runs("args")
    __cause__ = _runs("__cause__")
    __context__ = _runs("__context__")
    __suppress_context__ = _runs("__suppress_context__")
    __notes__ = _runs("__notes__")

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append(name)


class GuardedGroup(ExceptionGroup[Exception]):
    """The same for groups."""

    message = _runs("message")
    exceptions = _runs("exceptions")

    def __new__(cls, *_: Any) -> Self:
        ran.append("__new__")
        return BaseExceptionGroup.__new__(cls, "m", [ValueError(1)])

    def __init__(self, *args: Any) -> None:
        ran.append("__init__")
        super().__init__(*args)


class Errors(list[Exception]):
    """A list that would run at load, if a group got it."""

    def __iter__(self) -> Any:
        ran.append("__iter__")
        return super().__iter__()


class Listed(ExceptionGroup[Exception]):
    """The list it was made of is its second argument."""


class EmptyError(Exception):
    """False, though it is an exception."""

    def __len__(self) -> int:
        return 0


def test_nothing_of_an_exceptions_class_runs() -> None:
    error = GuardedError("a", 1)
    vars(error).update(code=3, __notes__=["n"])
    BaseException.__setattr__(error, "code", 3)
    vars(BaseException)["__cause__"].__set__(error, KeyError("k"))
    ran.clear()
    found = round_trip(error)
    assert ran == []
    read = {name: vars(BaseException)[name].__get__(found) for name in ("args", "__cause__", "__suppress_context__")}
    assert read.pop("__cause__").args == ("k",)
    assert read == {"args": ("a", 1), "__suppress_context__": True}
    assert vars(found) == {"code": 3, "__notes__": ["n"]}


def test_nothing_of_a_groups_class_runs() -> None:
    group = GuardedGroup("other", 1)
    listed = Listed("m", Errors([ValueError(1)]))
    ran.clear()
    found, found_listed = round_trip([group, listed])
    assert ran == []
    assert found.args == group.args == ("other", 1)
    assert vars(BaseExceptionGroup)["message"].__get__(found) == "m"
    assert [type(each) for each in vars(BaseExceptionGroup)["exceptions"].__get__(found)] == [ValueError]
    assert type(found_listed.args[1]) is Errors
    assert [each.args for each in found_listed.exceptions] == [(1,)]


def test_a_groups_exceptions_are_its_arguments_still() -> None:
    for group, location in [(ExceptionGroup("g", [ValueError(1)]), 1), (s.ExitGroup([ValueError(1)], 3), 0)]:
        found = round_trip(group)
        assert found.args[location][0] is found.exceptions[0]


def test_groups_in_groups_are_not_written_again_at_each_level() -> None:
    lengths = []
    for depth in range(1, 13):
        group: Exception = ValueError(1)
        for _ in range(depth):
            group = s.ExitGroup([group], 3)
        lengths.append(len(Serde().dumps_typed(group)[1]))
    assert len({after - before for before, after in pairwise(lengths[1:])}) == 1


def test_a_context_that_is_false_is_one_all_the_same() -> None:
    found = round_trip(s.handled(ValueError("a"), EmptyError("b")))
    assert (found.__cause__, type(found.__context__)) == (None, EmptyError)


@pytest.mark.parametrize(
    "error",
    [s.unbuildable(), PydanticCustomError("kind", "text"), PydanticOmit()],
    ids=lambda error: type(error).__name__,
)
def test_a_class_that_cannot_be_built_is_refused_wherever_it_is(error: Exception) -> None:
    inside = [error, s.raised(ValueError("a"), error), s.handled(ValueError("a"), error)]
    for value in [*inside, *(BaseExceptionGroup("g", [each]) for each in inside), ValueError(error)]:
        with pytest.raises(SerializationError) as refused:
            Serde().dumps_typed({"error": value})
        assert str(refused.value).startswith("['error']")
        assert f"pydantic_core._pydantic_core.{type(error).__name__} cannot be stored" in str(refused.value)


def test_a_class_that_cannot_be_built_may_be_registered() -> None:
    registry = Registry()
    registry.register(
        PydanticCustomError,
        "custom-error",
        lambda error: [error.type, error.message_template],
        lambda state: PydanticCustomError(*state),
    )
    serde = Serde(registry=registry)
    stored = serde.dumps_typed(s.raised(ValueError("a"), PydanticCustomError("kind", "text")))
    assert str(serde.loads_typed(stored).__cause__) == "text"


@pytest.mark.parametrize(
    "items",
    [
        (["m"], {}, {}),
        (["m", 5], {}, {}),
        (["m", []], {}, {}),
        (["m", [1]], {}, {}),
        ([], {"message": "m"}, {}),
        ([], {"message": "m", "exceptions": 0}, {}),
        ([], {"message": "m", "exceptions": True}, {}),
        ([[]], {"message": 1, "exceptions": 0}, {}),
    ],
)
def test_a_group_of_no_exceptions_is_corrupt(items: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(("t", packb([ExtType(84, packb(["Xbuiltins:ExceptionGroup"])), *items])))


@pytest.mark.parametrize(
    "causes", [(None,), (None, None), (1, None, False), (None, None, None), (None, None, False, 1)]
)
def test_causes_that_are_none_are_corrupt(causes: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(("t", packb([ExtType(84, packb(["Xbuiltins:ValueError"])), ["a"], {}, {}, *causes])))


def test_a_group_stored_by_its_arguments_alone_is_read() -> None:
    """As most are, and as all were."""
    head, member = (ExtType(84, packb([f"Xbuiltins:{name}"])) for name in ("ExceptionGroup", "ValueError"))
    found = Serde().loads_typed(("t", packb([head, ["g", [[member, [1], {}, {}]]], {}, {}])))
    assert (found.message, found.exceptions[0].args) == ("g", (1,))
