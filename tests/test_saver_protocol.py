"""`SaverProtocol` is the public interface of every saver, and all that takes a saver takes an object with it."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as PlainSaver

import threadmark
from threadmark import ConfigError, MemorySaver, Saver, SaverProtocol
from threadmark.urls import GROUP
from threadmark_langgraph import InMemorySaver, export, migrate, wrap
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

CLASSES: Sequence[type[Saver]] = (Saver, MemorySaver, SqliteSaver, PostgresSaver)
CONTEXT = {"__enter__", "__exit__", "__aenter__", "__aexit__"}
NO_CONTRACT = {"__init__", "__repr__"}
"""The constructor and the `repr` of a saver are its class's choice."""


def mypy_finds_every_saver_to_have_it(
    saver: Saver, memory: MemorySaver, sqlite: SqliteSaver, postgres: PostgresSaver
) -> Sequence[SaverProtocol]:
    """Never called: it is checked with the types of the tests."""
    return saver, memory, sqlite, postgres


def _public(kind: type) -> Mapping[str, Any]:
    names = {name for each in kind.__mro__[:-1] for name in vars(each) if not name.startswith("_")}
    return {name: inspect.getattr_static(kind, name) for name in (names | CONTEXT) - NO_CONTRACT}


def test_the_protocol_has_every_public_name_of_a_saver_and_no_other() -> None:
    assert _public(SaverProtocol).keys() == _public(Saver).keys()


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", sorted(_public(SaverProtocol)))
def test_every_backend_has_the_protocols_signatures(kind: type[Saver], name: str) -> None:
    promised, there = _public(SaverProtocol)[name], _public(kind)[name]
    if isinstance(promised, property):
        assert isinstance(there, property)
        promised, there = promised.fget, there.fget
    expected, found = inspect.signature(promised), inspect.signature(there)
    for parameter in expected.parameters.values():
        assert found.parameters[parameter.name] == parameter
    # A backend may take more, if it is optional.
    assert all(
        each.default is not each.empty for each in found.parameters.values() if each.name not in expected.parameters
    )
    assert found.return_annotation == expected.return_annotation
    assert inspect.iscoroutinefunction(there) == inspect.iscoroutinefunction(promised)


class Proxy:
    """A saver that is no `Saver`: it has whatever the one behind it has, and counts its calls."""

    def __init__(self, behind: Saver) -> None:
        self._behind = behind
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        return getattr(self._behind, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._behind.close()


def _proxy(behind: Saver) -> Any:
    """No type checker can see the results of `__getattr__`."""
    return Proxy(behind)


def test_any_object_with_the_methods_serves_langgraph_and_the_tools() -> None:
    thread: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    with MemorySaver() as behind, MemorySaver() as there:
        proxy = _proxy(behind)
        checkpointer = wrap(proxy)
        checkpointer.setup()
        checkpointer.put(thread, empty_checkpoint(), {}, {})
        assert checkpointer.get_tuple(thread) is not None
        assert migrate(checkpointer, _proxy(there)).checkpoints == 1
        assert export(proxy, PlainSaver()).checkpoints == 1
        assert proxy.asked > 0


def test_open_gives_whatever_has_the_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _proxy(MemorySaver())

    class Entry:
        name = "mine"

        def load(self) -> Any:
            return lambda _: made

    def announced(*, group: str) -> list[Entry]:
        assert group == GROUP
        return [Entry()]

    monkeypatch.setattr(threadmark.urls, "entry_points", announced)
    with threadmark.open("mine:here") as saver:
        assert saver is made


def test_a_url_in_place_of_a_saver_is_told_what_makes_one() -> None:
    with pytest.raises(ConfigError, match=r"expected a saver, got a string: threadmark\.open\(url\)"):
        wrap("memory:")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("given", [None, 3, InMemorySaver(), PlainSaver()])
def test_what_has_not_the_methods_is_refused_at_once(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"expected a threadmark\.Saver, or an object with its methods, got \w+, which"
    ):
        wrap(given)
