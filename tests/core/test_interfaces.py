"""The common rules of all simple interfaces: both APIs, their arguments, and the saver's own rules."""

import inspect
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

import threadmark
from threadmark import (
    CleanedStates,
    ClosedError,
    ConfigError,
    MemorySaver,
    MissingDependencyError,
    Sessions,
    States,
    StoreError,
    TransientStoreError,
)
from threadmark.interfaces import Interface
from threadmark.program import Transaction
from threadmark_langgraph import InMemorySaver

KINDS = [kind for kind in vars(threadmark).values() if isinstance(kind, type) and issubclass(kind, Interface)]
METHODS = [
    (kind, name)
    for kind in KINDS
    for name, _ in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_") and not (name[0] == "a" and hasattr(kind, name[1:]))
]


def test_they_are_found() -> None:
    assert {Sessions, States, CleanedStates} <= set(KINDS)
    assert (States, "save") in METHODS


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_every_method_is_there_for_both_apis(kind: type[Interface], name: str) -> None:
    blocking, asyncio = getattr(kind, name), getattr(kind, f"a{name}")
    assert inspect.iscoroutinefunction(asyncio)
    assert inspect.signature(asyncio) == inspect.signature(blocking)
    assert (inspect.getdoc(asyncio) or "").startswith(f"Like `{name}`,")
    assert inspect.getdoc(blocking)


@pytest.mark.parametrize("given", [None, "memory:", object()])
def test_what_is_no_saver_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"threadmark\.open\(url\) returns one"):
        States(given)


def test_a_checkpointer_is_told_to_give_its_saver() -> None:
    with pytest.raises(ConfigError, match=r"give its `\.saver`"):
        Sessions(InMemorySaver())  # type: ignore[arg-type]  # that is the point


class Failing(MemorySaver):
    """A saver whose database fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()

        def fail(_: Transaction[Any]) -> Any:
            raise error

        self._driver.run = fail  # type: ignore[method-assign, assignment]  # the fault


@pytest.mark.parametrize("error", [StoreError("it is full"), TransientStoreError("it is away")])
def test_a_ping_that_the_database_does_not_answer(error: StoreError) -> None:
    states = States(Failing(error))
    assert states.ping() is False
    with pytest.raises(StoreError):
        states.load("thread")


@pytest.mark.parametrize("error", [ClosedError(), RuntimeError("a mistake")])
def test_a_ping_swallows_no_other_error(error: Exception) -> None:
    with pytest.raises(type(error)):
        States(Failing(error)).ping()


def test_a_ping_of_a_closed_saver() -> None:
    saver = MemorySaver()
    saver.close()
    with pytest.raises(ClosedError):
        States(saver).ping()


def test_compression_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadmark.format.stored._INSTALLED", False)
    with MemorySaver() as saver:
        with pytest.raises(MissingDependencyError, match=r"threadmark\[zstd\]"):
            CleanedStates(saver)
        CleanedStates(saver, compression=False).save("thread", {"a": 1})


def test_max_history_is_no_rule_of_the_saver() -> None:
    with MemorySaver() as saver:
        cleaned, plain = CleanedStates(saver, max_history=2), States(saver)
        for number in range(5):
            cleaned.save("cleaned", number)
            plain.save("plain", number)
        assert len(plain.history("cleaned").states) == 2
        assert len(plain.history("plain").states) == 5


def test_a_state_that_is_changed_while_it_is_saved_is_saved_as_it_was() -> None:
    given: dict[str, Any] = {"a": ["before"]}
    with MemorySaver() as saver:
        run = saver._driver.run

        def changing(transaction: Transaction[Any]) -> Any:
            given["a"].append("meanwhile")
            given[f"key {len(given)}"] = 1
            return run(transaction)

        saver._driver.run = changing  # type: ignore[method-assign]  # as another task may do
        States(saver).save("thread", given)
        assert len(given) > 1
        assert States(saver).load("thread") == {"a": ["before"]}


def test_a_block_starts_and_stops_the_service() -> None:
    with MemorySaver() as saver, CleanedStates(saver, max_age=timedelta(days=1), interval=timedelta(hours=1)) as states:
        with pytest.raises(ConfigError, match="started already"):
            states.start()
        states.save("thread", 1)
        states.stop()
        states.stop()
        states.start()
        assert states.load("thread") == 1


def test_importing_them_imports_no_event_loop() -> None:
    code = "import sys, threadmark.interfaces; print({'asyncio'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
