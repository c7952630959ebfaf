"""Headers that are no headers, under checks that are right: anyone who may write to a database can make them."""

from typing import Any

import msgpack
import pytest

from going_on import over_all_threads, refused, with_one_thread
from threadmark import MemorySaver, Saver
from threadmark.format.header import HEADER_TAG
from threadmark.program import Transaction
from threadmark.saver.proving import checkpoint_row
from threadmark.store.contract import Scope, Store
from threadmark_conformance.engine import at, checkpoint

PLAIN = msgpack.packb({"v": 4, "ts": "2026-11-20T00:00:00+00:00"})
BODY = b"\x00\x01m\x01"
HEADERS: dict[str, object] = {
    "no list": {0: 1},
    "a short list": [PLAIN, {}, {}],
    "plain is text": ["text", {}, {}, None],
    "plain is no map": [msgpack.packb([1]), {}, {}, None],
    "plain is cut": [PLAIN[:-3], {}, {}, None],
    "a map as a value": [PLAIN, {"a": 1}, {"a": {0: 1}}, None],
    "a list as a value": [PLAIN, {"a": 1}, {"a": [0, 1]}, None],
    "a number as a value": [PLAIN, {"a": 1}, {"a": 5}, None],
    "nothing as a value": [PLAIN, {"a": 1}, {"a": None}, None],
    "an empty value": [PLAIN, {"a": 1}, {"a": b""}, None],
    "a text as a value": [PLAIN, {"a": 1}, {"a": "\0\1m"}, None],
    "values are a list": [PLAIN, {"a": 1}, [BODY], None],
    "versions are a list": [PLAIN, [1], {"a": BODY}, None],
    "a version is a list": [PLAIN, {"a": [1]}, {"a": BODY}, None],
    "a channel is a number": [PLAIN, {"a": 1}, {5: BODY}, None],
    "the rest is a map": [PLAIN, {"a": 1}, {"a": BODY}, {0: 1, 1: 2}],
    "the rest is a number": [PLAIN, {"a": 1}, {"a": BODY}, 5],
    "the rest is one thing": [PLAIN, {"a": 1}, {"a": BODY}, ["m"]],
    "the rest is no bytes": [PLAIN, {"a": 1}, {"a": BODY}, ["m", 5]],
    "the rest has no text": [PLAIN, {"a": 1}, {"a": BODY}, [5, b"\x01"]],
    "the rest is of another kind": [PLAIN, {"a": 1}, {"a": BODY}, ["m", b"\x01"]],
}


def crafted(saver: Saver, header: object) -> None:
    """Replace the header of the thread "two"."""
    packed = msgpack.packb(header)
    body = bytes([0, len(HEADER_TAG)]) + HEADER_TAG.encode() + packed

    def rewrite(store: Store) -> Any:
        (outline,) = yield from store.page(Scope("two"), None, 1)
        (row,) = yield from store.rows("two", [outline.key])
        yield from store.rewrite("two", [checkpoint_row(outline, body, row.run_id)])

    store = saver._store
    saver._driver.run(Transaction(lambda: rewrite(store), writes=True))


@pytest.mark.parametrize("kind", HEADERS)
def test_it_is_damage_of_its_thread(kind: str) -> None:
    saver = MemorySaver(cache_bytes=0)
    for thread in ("one", "two"):
        saver.put(at(thread), checkpoint({"a": 1}), {}, {"a": 1})
    whole = saver.get_tuple(at("one"))
    crafted(saver, HEADERS[kind])
    for name, operation in over_all_threads(saver):
        _, problems = operation()
        assert all("'two'" in problem.location for problem in problems), name
    for name, one in with_one_thread(saver, "two"):
        error = refused(one, may_be_gone=True)
        assert error is None or "two" in error.location, name
    assert saver.get_tuple(at("one")) == whole
