"""Rows that compiled code makes past their classes are tuples like all others."""

import gc
from typing import Any, cast

from threadmark.config import ParsedConfig
from threadmark.format.stored import Stored
from threadmark.saver.batches import Write, proven_writes, rows_of_batch
from threadmark.saver.storing import Draft, rows_of_scalars
from threadmark.serde import Serde
from threadmark.store.contract import WriteRow
from threadmark_speed import arguments as compiled


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
