"""Errors as callers catch them, and as processes hand them on."""

import pickle

import pytest

import threadmark
from threadmark import ConfigError, MissingDependencyError, StoreError, ThreadDeletedError, TransientStoreError
from threadmark.errors import LocatedError, ThreadmarkError

ERRORS: list[type[Exception]] = sorted(
    (each for each in vars(threadmark).values() if isinstance(each, type) and issubclass(each, ThreadmarkError)),
    key=lambda error: error.__name__,
)


def test_a_retry_policy_can_name_what_passes() -> None:
    assert issubclass(TransientStoreError, StoreError)
    assert [error for error in ERRORS if issubclass(error, StoreError)] == [StoreError, TransientStoreError]


def test_an_argument_is_to_blame_for_nothing_but_a_config_error() -> None:
    assert [error for error in ERRORS if issubclass(error, ValueError)] == [ConfigError]
    assert not issubclass(ThreadDeletedError, StoreError)


def test_what_is_not_installed_is_an_import_error_with_its_name() -> None:
    error = MissingDependencyError("pip install it", name="it")
    assert isinstance(error, ImportError)
    assert (str(error), error.name) == ("pip install it", "it")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_crosses_to_another_process(error: type[ThreadmarkError]) -> None:
    made = error("the problem", "the location") if issubclass(error, LocatedError) else error("the problem")
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    assert type(again) is error
    assert "the problem" in str(again)
