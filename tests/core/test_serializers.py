"""A serializer of the user's own serves as well, and what it does wrong is named."""

import json
from typing import Any

import pytest

from threadmark import MemorySaver, SerializationError
from threadmark.conformance.engine import at, checkpoint


class Json:
    """Values as JSON; it can be told to forget how to read."""

    def __init__(self) -> None:
        self.forgets = False

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "json", json.dumps(obj).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        assert data[0] == "json"
        if self.forgets:
            raise ValueError("I cannot read that")
        return json.loads(data[1])


def test_it_makes_and_reads_every_value() -> None:
    saver = MemorySaver(serde=Json())
    config = saver.put(at("thread"), checkpoint({"a": (1, 2), "b": ["x" * 500]}), {}, {"a": 1, "b": 1})
    saver.put_writes(config, [("a", (3,))], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": [1, 2], "b": ["x" * 500]}
    assert found.pending_writes == [("task", "a", [3])]


def test_a_value_that_it_cannot_store_is_named() -> None:
    saver = MemorySaver(serde=Json())
    with pytest.raises(SerializationError, match=r'channel "bad".*bytes') as caught:
        saver.put(at("thread"), checkpoint({"good": 1, "bad": b"x"}), {}, {"good": 1, "bad": 1})
    assert isinstance(caught.value.__cause__, SerializationError | TypeError)
    assert list(saver.list(None)) == []


def test_a_value_that_it_cannot_read_is_named() -> None:
    serde = Json()
    saver = MemorySaver(serde=serde)
    config = saver.put(at("thread", "child"), checkpoint({"a": "x" * 500}), {}, {"a": 1})
    serde.forgets = True
    with pytest.raises(SerializationError, match=r"thread 'thread', namespace 'child', .*channel 'a'.*cannot read"):
        saver.get(config)
    serde.forgets = False
    assert saver.get(config) is not None
