"""The suite for stores finds faults: each one that is planted here fails the case that is about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from backends import memory
from threadmark.backends import Program
from threadmark_conformance.item_stores import (
    OWN_CASES,
    STORE_CASES,
    StoreCase,
    over_savers,
    run_own_case,
    run_store_case,
)
from threadmark_store import batches, namespaces, values
from threadmark_store.batches import Batch, Put
from threadmark_store.items import memory as items
from threadmark_store.items.memory import MemoryItems
from threadmark_store.store import Store

CASES = {str(case): case for case in (*STORE_CASES, *OWN_CASES)}


class Fault(NamedTuple):
    """A replacement of something in the package, and the case that fails of it."""

    case: str
    owner: Any
    name: str
    replacement: Any


def _writes_first(self: Batch, store: MemoryItems) -> Program[Any]:
    yield from self._put(store, self.clock(), {each.key: each for each in self.requests if isinstance(each, Put)})
    return (yield from _ANSWERS(self, store))


def _nothing(*_: Any, **__: Any) -> Program[None]:
    return
    yield


_ANSWERS = Batch.answers
_PUT = MemoryItems.put
_DELETE = MemoryItems.delete
_SCOPE = Batch._scope
_ROWS = Batch._rows


def _put_anew(self: MemoryItems, rows: Any, **options: Any) -> Program[Any]:
    yield from _DELETE(self, [row.key for row in rows], None)
    return (yield from _PUT(self, rows, **options))


def _put_one_by_one(self: MemoryItems, rows: Any, **options: Any) -> Program[Any]:
    refused = []
    for row in rows:
        refused += yield from _PUT(self, [row], **options)
    return [] if len(refused) < len(rows) else refused


def _delete_of_all(self: MemoryItems, keys: Any, owner: Any, **options: Any) -> Program[None]:  # noqa: ARG001 - that is the fault
    yield from _DELETE(self, keys, None, **options)


def _without(**fields: Any) -> Callable[..., Any]:
    return lambda self, now, prefix="": _SCOPE(self, now, prefix)._replace(**fields)


FAULTS = {
    "a label's beginning is enough": Fault(
        "scopes.a_search_finds_its_namespace_and_those_below", items, "is_within", str.startswith
    ),
    "case does not count": Fault(
        "scopes.labels_differ_in_case_and_in_accents",
        items,
        "is_within",
        lambda name, prefix: namespaces.is_within(name.lower(), prefix.lower()),
    ),
    "a filter finds all": Fault("filters.equal_text_is_found", batches, "meets", lambda *_: True),
    "a filter knows no operators": Fault(
        "filters.greater_numbers_are_found",
        batches,
        "meets",
        lambda value, condition: all(value.get(key) == each for key, each in condition.items()),
    ),
    "a put begins the item again": Fault(
        "items.the_time_of_creation_stays_and_that_of_the_update_grows", MemoryItems, "put", _put_anew
    ),
    "wildcards are labels": Fault(
        "namespaces.a_wildcard_of_a_prefix_stands_for_one_label",
        namespaces,
        "_meets",
        lambda labels, match: (
            labels[: len(match.path)] == match.path
            if match.kind == "prefix"
            else labels[len(labels) - len(match.path) :] == match.path
        ),
    ),
    "expired items are found": Fault(
        "expiring.an_expired_item_is_omitted_everywhere",
        Batch,
        "_scope",
        lambda self, now, prefix="": _without(**({"alive_at": None} if prefix else {}))(self, now, prefix),
    ),
    "reads refresh nothing": Fault("expiring.a_get_refreshes_by_default", MemoryItems, "refresh", _nothing),
    "a sweep removes nothing": Fault(
        "sweeping.an_expired_item_stays_until_it_is_swept", Store, "sweep_ttl", lambda _: 3
    ),
    "puts come before reads": Fault("atomic.reads_of_a_batch_see_the_state_before_it", Batch, "answers", _writes_first),
    "a refused put is passed over": Fault(
        "owned.an_owner_replaces_own_items_only", MemoryItems, "put", _put_one_by_one
    ),
    "any owner may delete": Fault("owned.an_owner_removes_own_items_only", MemoryItems, "delete", _delete_of_all),
    "owners see all": Fault("owned.an_owner_sees_own_items_only", Batch, "_scope", _without(owner=None)),
    "a check covers no key": Fault("damaged.exchanged_values_are_noticed", values, "_location", lambda _: b"item"),
    "a check covers nothing": Fault(
        "damaged.a_changed_value_is_noticed", values.Values, "decoded", lambda _, row: orjson.loads(row.value)
    ),
    "rows are not sealed": Fault("sealed.no_row_shows_a_value", values.Values, "encoded", lambda *given: str(given[2])),
    "all is JSON": Fault("exact.values_beyond_json_keep_their_types", values, "_is_plain", lambda *_: True),
    "equal times have no order": Fault(
        "crowds.items_of_one_moment_have_one_order", items, "_place", lambda row: (-row.updated_at, hash(row.key))
    ),
    "the puts of a batch have one time": Fault(
        "crowds.the_item_that_was_put_last_comes_first",
        Batch,
        "_rows",
        lambda self, puts, now: [row._replace(updated_at=now) for row in _ROWS(self, puts, now)],
    ),
}


def _run(case: StoreCase, folder: Path) -> None:
    if case in OWN_CASES:
        run_own_case(case, memory, "blocking", folder)
    else:
        run_store_case(case, over_savers(memory), "blocking", folder)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_its_case(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fault = FAULTS[name]
    _run(CASES[fault.case], tmp_path / "before")
    monkeypatch.setattr(fault.owner, fault.name, fault.replacement)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        _run(CASES[fault.case], tmp_path / "after")
