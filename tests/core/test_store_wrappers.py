"""The whole contract of a store, over every store that stands around another one."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from threadmark import MemorySaver
from threadmark.around.deferred import StoreCall, deferred_store
from threadmark.encryption.store import SealedStore
from threadmark.encryption.threads import SealedThreadStore
from threadmark.memory.store import MemoryStore
from threadmark.program import Transaction
from threadmark.replication.side_store import SideStore, _ActiveStore, _StandbyStore
from threadmark.store.contract import Store
from threadmark.store.forwarding import ForwardingStore
from threadmark.store.owned import OwnedStore
from threadmark.store.replica import ReplicaStore
from threadmark.store.threads import ThreadStore
from threadmark_conformance.engine import at, checkpoint, early_id

PROTOCOLS = (ThreadStore, Store, ReplicaStore)
FOR_REPLICATION = {name for name in vars(ReplicaStore) if inspect.isfunction(getattr(ReplicaStore, name))}
OPERATIONS = {
    name
    for protocol in PROTOCOLS
    for name, member in vars(protocol).items()
    if inspect.isfunction(member) and not name.startswith("_")
}
FOR_REPLICATION &= OPERATIONS

TELLS_ROWS = {
    *("find", "newest", "segments", "segments_of", "page", "page_of_rows", "rows", "writes", "chain"),
    *("thread", "thread_outlines", "thread_page"),
}
CHANGES = {"add", "replace", "rewrite", "remove", "forget", "drop", "copy_segments", "set_thread"}
TELLS_NO_BODY = {"epoch", "lock", "heads", "counted_heads", "damage", "segment_sizes", "threads", "count_threads"}
TELLS_NO_BODY |= {"thread_counts", "has_only_langgraph_data"}
LEASES = {"lease", "lock_lease", "set_lease", "renew_lease"}

LEFT_AS_THEY_ARE: Mapping[type, Collection[str]] = {
    # Only the bodies of rows are sealed.
    SealedStore: TELLS_NO_BODY | LEASES | FOR_REPLICATION | {"mend", "sample", "forget"},
    # Rows are the same on both sides, and so are the queries of a pair's own upkeep.
    _ActiveStore: (
        (TELLS_ROWS - {"find", "newest"}) | (TELLS_NO_BODY - {"epoch", "lock"}) | FOR_REPLICATION | {"mend", "sample"}
    ),
    _StandbyStore: (
        (TELLS_ROWS - {"find", "newest"})
        | (TELLS_NO_BODY - {"epoch", "lock"})
        | (FOR_REPLICATION | {"sample", "lease"})
    ),
}
"""Which operations a store around another one passes on: a new operation needs a place here, or separate code."""


def test_the_operations_are_those_of_the_contract() -> None:
    assert {*TELLS_ROWS, *CHANGES, *TELLS_NO_BODY, *LEASES, *FOR_REPLICATION, "mend", "sample"} == OPERATIONS
    assert len(OPERATIONS) == len(TELLS_ROWS | CHANGES | TELLS_NO_BODY | LEASES | FOR_REPLICATION) + 2


def defined_in(kind: type, operation: str) -> type:
    """The class whose method answers an operation."""
    return next(each for each in kind.__mro__ if operation in vars(each))


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize("kind", LEFT_AS_THEY_ARE, ids=lambda kind: kind.__name__)
def test_each_operation_is_passed_on_or_answered_as_decided(kind: type, operation: str) -> None:
    passed_on = defined_in(kind, operation) is ForwardingStore
    assert passed_on == (operation in LEFT_AS_THEY_ARE[kind])


@pytest.mark.parametrize("operation", sorted(OPERATIONS - FOR_REPLICATION))
def test_the_store_of_an_owner_answers_every_operation_itself(operation: str) -> None:
    assert defined_in(OwnedStore, operation) is OwnedStore


_QUESTIONS: Mapping[str, Callable[[str, list[bytes]], tuple[object, ...]]] = {
    "find": lambda thread_id, _: (thread_id, "", None),
    "newest": lambda thread_id, _: ([thread_id], ""),
    "segments": lambda thread_id, keys: (thread_id, keys),
    "segments_of": lambda thread_id, keys: ({thread_id: keys},),
    "rows": lambda thread_id, _: (thread_id, [("", early_id(1))]),
    "writes": lambda thread_id, _: (thread_id, None),
    "chain": lambda thread_id, _: (thread_id, "", None, 9),
    "thread": lambda thread_id, _: (thread_id,),
    "thread_outlines": lambda thread_id, _: ([thread_id],),
    "epoch": lambda thread_id, _: (thread_id,),
    "lock": lambda thread_id, _: (thread_id,),
    "heads": lambda thread_id, _: (thread_id, None),
    "counted_heads": lambda thread_id, _: (thread_id, None),
    "segment_sizes": lambda thread_id, _: (thread_id,),
    "thread_counts": lambda thread_id, _: ([thread_id],),
    "lease": lambda thread_id, _: (thread_id,),
}
"""The arguments of questions about one thread."""


@pytest.mark.parametrize("operation", _QUESTIONS)
def test_the_store_of_an_owner_answers_about_other_threads_as_if_there_were_none(operation: str) -> None:
    saver = MemorySaver()
    ada = saver.for_owner("ada")
    config = ada.put(at("adas"), checkpoint({"a": "long " * 200}, checkpoint_id=early_id(1)), {}, {"a": 1})
    ada.put_writes(config, [("a", "written")], "task")

    def asked(owner: str, thread_id: str) -> object:
        sizes = saver._driver.run(Transaction(saver._store.segment_sizes, ("adas",)))
        arguments = _QUESTIONS[operation](thread_id, list(sizes))
        return saver._driver.run(Transaction(getattr(OwnedStore(saver._store, owner), operation), arguments))

    assert asked("eve", "adas") == asked("eve", "nobodys")
    assert asked("ada", "adas") != asked("ada", "nobodys")


@pytest.mark.parametrize("operation", sorted(FOR_REPLICATION))
def test_the_store_of_an_owner_has_nothing_for_replication(operation: str) -> None:
    assert not hasattr(OwnedStore, operation)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize(
    "kind", [ForwardingStore, SealedStore, SealedThreadStore, OwnedStore, SideStore, _ActiveStore, MemoryStore]
)
def test_signatures_are_those_of_the_contract(kind: type, operation: str) -> None:
    if kind is OwnedStore and operation in FOR_REPLICATION:
        return
    contract = next(protocol for protocol in PROTOCOLS if operation in vars(protocol))
    assert inspect.signature(getattr(kind, operation)) == inspect.signature(getattr(contract, operation))


class Told:
    """A store that answers each operation with its name and the arguments."""

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda *args, **options: (operation, args, options)


def example_arguments(operation: str) -> tuple[list[object], dict[str, object]]:
    parameters = list(inspect.signature(getattr(ForwardingStore, operation)).parameters.values())[1:]
    values = {parameter.name: object() for parameter in parameters}
    by_name = {each.name: values[each.name] for each in parameters if each.kind is each.KEYWORD_ONLY}
    return [value for name, value in values.items() if name not in by_name], by_name


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_forwarding_store_passes_on_every_argument(operation: str) -> None:
    args, options = example_arguments(operation)
    told: Any = ForwardingStore(Told())  # type: ignore[arg-type]  # it has every method
    assert getattr(told, operation)(*args, **options) == (operation, tuple(args), options)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_deferred_store_asks_for_every_operation(operation: str) -> None:
    args, options = example_arguments(operation)
    program = getattr(deferred_store(), operation)(*args, **options)
    call = next(program)
    assert call == StoreCall(operation, tuple(args), options)
    assert call.on(Told()) == (operation, tuple(args), options)


def test_the_standby_refuses_every_change() -> None:
    refusing = {name for name in OPERATIONS if getattr(_StandbyStore, name) is _StandbyStore._refused}
    assert refusing == CHANGES | (LEASES - {"lease"}) | {"mend"}
