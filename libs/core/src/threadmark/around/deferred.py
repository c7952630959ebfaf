"""A store that answers nothing itself: the real store is chosen when a program runs.

A saver over two databases, or over a cache, is made of the same operations as any other. Their programs ask a
`deferred_store()`, so each of their steps is a `StoreCall`; a driver chooses a real store, and runs `resolved`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from threadmark.program import Program, Step, Transaction, relay
from threadmark.store.contract import Store

T = TypeVar("T")


@dataclass(slots=True)
class StoreCall(Step):
    """One operation of `Store`, with its arguments."""

    method: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def on(self, store: Store) -> Program[Any]:
        """Return the program of a real store."""
        program: Program[Any] = getattr(store, self.method)(*self.args, **self.kwargs)
        return program


class _DeferredStore:
    def __init__(self, longest_pack: int | None) -> None:
        self.longest_pack = longest_pack
        """As in `Store`, of the backend that will answer with the least."""

    def __getattr__(self, method: str) -> Callable[..., Program[Any]]:
        if method.startswith("_"):
            raise AttributeError(method)
        return partial(_ask, method)


def _ask(method: str, /, *args: Any, **kwargs: Any) -> Program[Any]:
    return (yield StoreCall(method, args, kwargs))


def deferred_store(*stores: Store) -> Store:
    """Return a store whose programs yield `StoreCall`s, which one of these stores will answer."""
    limits = [limit for store in stores if isinstance(limit := store.longest_pack, int)]
    return cast(
        "Store", _DeferredStore(min(limits, default=None))
    )  # every operation of a Store is a method that returns a program


def is_deferred(store: Store) -> bool:
    """Whether a store is a deferred one. It has every method, so `isinstance` takes it for a store of any protocol."""
    return isinstance(store, _DeferredStore)


def expect_store_call(step: Step) -> StoreCall:
    """Return the step. Raises TypeError for one that is not a deferred store's, but a backend's own."""
    if not isinstance(step, StoreCall):
        raise TypeError(f"a deferred store has no {type(step).__name__}")
    return step


def resolved(transaction: Transaction[T], store: Store) -> Transaction[T]:
    """Return a transaction that makes the calls of the program, which has a deferred store, on a real one."""
    return transaction.through(resolve, store)


def resolve(program: Callable[[], Program[T]], store: Store) -> Program[T]:
    """Run a program of a deferred store on a real one."""
    return relay(program(), lambda step: expect_store_call(step).on(store))
