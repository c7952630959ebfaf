"""Compiled code harms nothing: not memory, and not values that change while they are written."""

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage

from serde import specimens as s
from speed.test_objects import messages
from threadmark.config import ParsedConfig
from threadmark.errors import SerializationError
from threadmark.format.stored import Stored
from threadmark.saver.batches import Write, proven_writes, rows_of_batch
from threadmark.saver.storing import Draft, rows_of_scalars
from threadmark.serde import Registry, Serde
from threadmark.store.contract import WriteRow
from threadmark_speed import arguments as compiled


@dataclass
class Handle:
    """An object that a user's function encodes, which may do anything."""

    act: Callable[[], Any] = field(default=lambda: None)


MEANWHILE: dict[str, Callable[[list[Any], dict[Any, Any], Any], Any]] = {
    "a list grows": lambda items, *_: items.append(1),
    "a list shrinks": lambda items, *_: items.clear(),
    "a list is filled with others": lambda items, *_: items.__setitem__(slice(None), [2.5, "x"] * 100),
    "a dictionary grows": lambda _, entries, __: entries.update({str(number): 1 for number in range(100)}),
    "a dictionary shrinks": lambda _, entries, __: entries.clear(),
    "an object's dictionary shrinks": lambda _, __, point: vars(point).clear(),
    "an object gets another dictionary": lambda _, __, point: setattr(point, "__dict__", {"z": [3]}),
    "memory is collected": lambda *_: gc.collect(1) and None,
}


@pytest.mark.parametrize("change", MEANWHILE)
def test_what_changes_while_it_is_written_harms_nothing(change: str) -> None:
    """The stored value is one of the states that it had, or it is an error of ours."""
    registry = Registry()
    registry.register(Handle, "handle", lambda handle: handle.act(), lambda _: Handle())
    serde = Serde(registry=registry)
    for position in range(3):
        point, entries, items = s.Point(1, [2]), dict[Any, Any](), list[Any]()
        handle = Handle(lambda: MEANWHILE[change](items, entries, point))  # noqa: B023 - it is called before the next
        point.y = [handle]
        items += [[1], point, entries, "text" * 100]
        items.insert(position, handle)
        entries |= {"a": [1], "b": handle, "c": "text" * 100}
        try:
            stored = serde.dumps_typed({"k": items, "l": entries, "m": point})
        except SerializationError:
            continue
        serde.loads_typed(stored)


def test_threads_that_change_what_is_written_harm_nothing() -> None:
    serde, made, stop = Serde(), messages(20), threading.Event()

    def change() -> None:
        while not stop.is_set():
            for message in made:
                message.__dict__["name"] = "x"
                message.__pydantic_fields_set__.add("name")
                message.additional_kwargs["k"] = len(made)
                message.additional_kwargs.clear()
                message.__pydantic_fields_set__.discard("name")

    worker = threading.Thread(target=change)
    worker.start()
    try:
        for _ in range(300):
            found = serde.loads_typed(serde.dumps_typed(made))
            assert [type(one) for one in found] == [type(one) for one in made]
    finally:
        stop.set()
        worker.join()


def test_nothing_is_kept_of_what_is_written_and_read() -> None:
    """Fifty thousand objects go through; no more memory stays than before."""
    serde, made = Serde(), messages(25)
    odd = [*made, s.Point((1, {2})), s.Hidden(), s.SlotPoint(1), s.Model(x=b"x", y=[bytearray(b"y"), 1 << 70])]
    refused = [s.Point(1), s.Model(x=threading.Lock())]

    def rounds(count: int) -> None:
        for _ in range(count):
            assert len(serde.loads_typed(serde.dumps_typed(odd))) == len(odd)
            with pytest.raises(SerializationError):
                serde.dumps_typed(refused)

    rounds(20)
    gc.collect()
    references = [sys.getrefcount(each) for each in (*odd, *refused, s.Point, s.Model, AIMessage, None, True)]
    tracemalloc.start()
    try:
        rounds(20)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        rounds(250)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
    now = [sys.getrefcount(each) for each in (*odd, *refused, s.Point, s.Model, AIMessage, None, True)]
    assert all(abs(one - other) < 50 for one, other in zip(references, now, strict=True))


def rows() -> list[tuple[Any, ...]]:
    """One row of each kind, made by compiled code."""
    where = ParsedConfig("thread", "", "1f1e501f-9a39-6dfa-aadb-000000000001", None)
    pack, record = cast("list[WriteRow]", rows_of_scalars(Serde(), where, "task", "path", [("a", 1)], None))
    batch = rows_of_batch("thread", "", "1", "task", "", [(0, "a", Stored("m", b"1", b"").body)], None)
    (write,) = proven_writes("thread", batch)
    config = compiled.plain_config(ParsedConfig, {"configurable": {"thread_id": "1"}})
    made: list[Any] = [pack, record, write, write.row, write.value, config]
    return made


def test_their_hash_is_that_of_any_tuple() -> None:
    for row, kind in zip(rows(), (WriteRow, WriteRow, Write, WriteRow, Stored, ParsedConfig), strict=True):
        made: Any = kind
        assert type(row) is kind
        assert hash(row) == hash(tuple(row))
        assert hash(row) == hash(tuple.__new__(made, row))
        assert {row: "found"}[tuple.__new__(made, row)] == "found"


def test_what_leads_to_a_users_object_is_seen_by_the_collector() -> None:
    mine = object()
    checkpoint = {"v": 4, "id": "1", "ts": "now", "channel_values": {"a": mine}, "channel_versions": {"a": 1}}
    given = compiled.plain_checkpoint(Draft, checkpoint, {"a": 1})
    assert type(given) is Draft
    assert gc.is_tracked(given)


def test_whoever_is_asked_to_encode_a_write_may_change_what_the_special_channels_are() -> None:
    special = {"__error__": -(10**30)}

    def encode(*_: object) -> tuple[str, bytes]:
        special.clear()
        return "tag", b"encoded"

    written: Any = compiled.encoded_writes(special, "tag", encode, Serde, Serde(), [("__error__", [1])])
    assert list(written[0]) == [-(10**30)]


def test_writes_are_those_that_were_given_whatever_their_values_do() -> None:
    writes: list[Any] = []

    def meddle(_: object, where: str, __: object) -> tuple[str, bytes]:
        writes.clear()
        return "t", where.encode()

    writes += [("a", []), ("b", 1), ("c", [])]
    found = compiled.encoded_writes({}, "m", meddle, Serde, Serde(), writes)
    assert found == (
        {0: ("a", ("t", b'channel "a"')), 1: ("b", ("m", b"\x01")), 2: ("c", ("t", b'channel "c"'))},
        2 * len(b'channel "a"') + 1,
    )
