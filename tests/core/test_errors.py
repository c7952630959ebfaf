"""Errors as callers catch them, and as processes hand them on."""

import pickle
from typing import Any

import pytest

import threadmark
from threadmark import ConfigError, MissingDependencyError, Saver, StoreError, ThreadDeletedError, TransientStoreError
from threadmark.errors import LocatedError, ThreadmarkError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.program import Transaction
from threadmark_conformance.engine import at, checkpoint

ERRORS: list[type[Exception]] = sorted(
    (each for each in vars(threadmark).values() if isinstance(each, type) and issubclass(each, ThreadmarkError)),
    key=lambda error: error.__name__,
)


def test_a_retry_policy_can_name_what_passes() -> None:
    assert issubclass(TransientStoreError, StoreError)
    assert {error.__name__ for error in ERRORS if issubclass(error, StoreError)} == {
        "ReplicationError",
        "StoreError",
        "TransientStoreError",
    }


def test_an_argument_is_to_blame_for_nothing_but_a_config_error() -> None:
    assert {error.__name__ for error in ERRORS if issubclass(error, ValueError)} == {"ConfigError"}
    assert issubclass(ConfigError, ValueError)
    assert not issubclass(ThreadDeletedError, StoreError)


def test_what_is_not_installed_is_an_import_error_with_its_name() -> None:
    error = MissingDependencyError("pip install it", name="it")
    assert isinstance(error, ImportError)
    assert (str(error), error.name) == ("pip install it", "it")


class Restless(MemoryDriver):
    """Before each transaction of one kind, another caller's removal ends the epoch of the thread."""

    def __init__(self, *, writes: bool) -> None:
        super().__init__()
        self.begun = False
        self._writes = writes

    def run(self, transaction: Transaction[Any]) -> Any:
        if self.begun and transaction.writes == self._writes:
            super().run(Transaction(MemoryStore().remove, ("thread", (), ()), writes=True))
        return super().run(transaction)


def test_a_thread_that_never_rests_is_a_transient_error() -> None:
    big = "".join(map(str, range(3000)))
    driver = Restless(writes=True)
    with Saver(MemoryStore(), driver) as saver:
        config = saver.put(at("thread"), checkpoint({"a": big}), {}, {"a": 1})
        driver.begun = True
        with pytest.raises(TransientStoreError, match=r"'thread'.*deleted .* times.*try again"):
            saver.put(config, checkpoint({"a": big, "b": 1}), {}, {"b": 1})
        driver.begun = False
        saver.put(config, checkpoint({"a": big, "b": 1}), {}, {"b": 1})
    driver = Restless(writes=False)
    with Saver(MemoryStore(), driver) as saver:
        saver.put(at("thread"), checkpoint({"a": big}), {}, {"a": 1})
        driver.begun = True
        with pytest.raises(TransientStoreError, match=r"'thread'.*deleted .* times.*try again"):
            saver.verify("thread")
        driver.begun = False
        assert saver.verify("thread").problems == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_crosses_to_another_process(error: type[ThreadmarkError]) -> None:
    made = error("the problem", "the location") if issubclass(error, LocatedError) else error("the problem")
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    assert type(again) is error
    assert "the problem" in str(again)
