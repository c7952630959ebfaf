"""Rows that compiled code makes past their classes are tuples like all others."""

import gc
from typing import Any

from threadmark.saver.arguments import GivenCheckpoint
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
from threadmark_speed import columns
from threadmark_speed import given as compiled
from threadmark_sqlite import columns as reference

KINDS: tuple[Any, ...] = CheckpointRow, Outline, WriteRow
COLUMNS = ("", None, "1f1e501f-9a39-6dfa-aadb-000000000001", None, 12, "{}", b"header", b"check")
WRITE = ("", b"0123456789abcdef", b"0123456789abcdef", 3, "path", "channel", b"value", b"check")


def rows() -> list[Any]:
    """One row of each kind, made by compiled code."""
    row = columns.checkpoint_row("thread", COLUMNS, reference.any_outline)
    (write,) = columns.write_rows([WRITE], reference.any_write)
    return [row, row.outline, write]


def test_their_hash_is_that_of_any_tuple() -> None:
    for row, kind in zip(rows(), KINDS, strict=True):
        assert type(row) is kind
        assert hash(row) == hash(tuple(row))
        assert hash(row) == hash(kind(*row))
        assert {row: "found"}[kind(*row)] == "found"


def test_what_leads_to_a_users_object_is_seen_by_the_collector() -> None:
    mine = object()
    checkpoint = {"v": 4, "id": "1", "ts": "now", "channel_values": {"a": mine}, "channel_versions": {"a": 1}}
    given = compiled.usual_checkpoint(GivenCheckpoint, checkpoint, {"a": 1})
    assert type(given) is GivenCheckpoint
    assert gc.is_tracked(given)


def test_whoever_is_asked_to_encode_a_write_may_change_what_the_special_channels_are() -> None:
    special = {"__error__": -(10**30)}

    def encode(*_: object) -> tuple[str, bytes]:
        special.clear()
        return "tag", b"encoded"

    written: Any = compiled.encoded_writes([("__error__", [1])], special, "tag", encode, None)
    assert list(written[0]) == [-(10**30)]
