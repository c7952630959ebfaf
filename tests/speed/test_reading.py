"""A checkpoint is read as by the reference, with plain values, with values of any type, and with damaged ones."""

import gc
import random
from typing import Any
from uuid import UUID

import msgpack

from threadmark.errors import LocatedError
from threadmark.format.header import Header
from threadmark.format.rope import Source
from threadmark.format.stored import Encoded, Stored
from threadmark.memory.store import MemoryStore
from threadmark.model import CheckpointTuple
from threadmark.runtime.compiled import only_references
from threadmark.saver.batches import Write
from threadmark.saver.context import SaverContext, context_of
from threadmark.saver.decoding import decoded
from threadmark.saver.loading import LoadedCheckpoint
from threadmark.serde import Serde
from threadmark.store.contract import Outline, WriteRow

PLAIN: list[Any] = [None, True, 0, -1, 2**64 - 1, -(2**63), 0.1, "", "ä\0", b"\xc0", [], [1, [2]], {"a": {"b": []}}]
OBJECTS: list[Any] = [*PLAIN, (1, 2), {"a": UUID(int=1)}, {1: 2}, "\ud800", "x" * 500, [{"type": "ai"}] * 40]


def _loaded(chance: random.Random, serde: Serde) -> LoadedCheckpoint:
    """A checkpoint as it was read, with values of all sorts and damage here and there."""

    def stored(value: Any) -> Stored:
        tag, encoded = serde.dumps_typed(value)
        if chance.random() < 0.1:
            encoded = encoded[:-1]
        if chance.random() < 0.5:
            return Stored(tag, encoded, b"")
        data[digest := chance.randbytes(16)] = encoded
        return Stored(tag, b"\0", digest)

    data: dict[bytes, bytes] = {}
    values = {f"channel {number}": stored(value) for number, value in enumerate(chance.sample(OBJECTS, 3))}
    plain_fields = {"v": 4, "ts": "now", "versions_seen": {"node": {"channel 0": 1}}, "updated_channels": None}
    rest = Encoded(*serde.dumps_typed({"more": (1,)})) if chance.random() < 0.2 else None
    packed = msgpack.packb(plain_fields)
    header = Header(dict.fromkeys(values, 1), values, packed[:-1] if chance.random() < 0.1 else packed, rest)
    metadata = chance.choice(['{"step":1,"x":[null,1.5,"ä"]}', "{}", '{"n":NaN}', "[]", "{", "{} ", '{"a":1}{}', "x"])
    parent = chance.choice([None, "", "parent"])
    outline = Outline("thread", "ns", "id", "rank", parent, 1, metadata if chance.random() < 0.3 else '{"step":2}')
    rows = [WriteRow("ns", "id", "task", number, "", f"c{number}", b"", b"") for number in range(chance.randint(0, 3))]
    writes = [Write(row, stored(chance.choice(OBJECTS))) for row in rows]
    return LoadedCheckpoint(1, outline, header, b"", Source(b""), writes, data)


def test_what_the_user_sees_is_that_of_the_reference() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        context = context_of(MemoryStore(), {"pause_gc": seed % 3 == 0})
        loaded = _loaded(chance, Serde())
        found = _seen(context, loaded)
        with only_references():
            assert _seen(context, loaded) == found
        if isinstance(found, CheckpointTuple):
            assert type(found) is CheckpointTuple
            assert gc.is_tracked(found)
            assert found.checkpoint["channel_versions"] is not loaded.header.versions


def _seen(context: SaverContext, loaded: LoadedCheckpoint) -> str | CheckpointTuple:
    """A checkpoint, compared by its text if it has a number that is none, or the text of the error."""
    try:
        found = decoded(context, loaded)
    except LocatedError as error:
        return f"{type(error)} {error} {error.location}"
    return repr(found) if "nan" in repr(found) else found
