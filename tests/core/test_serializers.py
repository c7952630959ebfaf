"""A user's own serializer serves as well, and its faults are named."""

import json
from typing import Any

import pytest

from threadmark import ConfigError, MemorySaver, SerializationError
from threadmark_conformance.engine import at, checkpoint


class Json:
    """Values as JSON; it can be made to fail on reading."""

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


def test_what_it_cannot_read_ends_a_listing_of_all_threads_only_at_the_end() -> None:
    class Picky(Json):
        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            if data[1] == b'"gone"':
                raise ValueError("I cannot read that")
            return super().loads_typed(data)

    saver = MemorySaver(serde=Picky())
    for thread_id, value in (("first", 1), ("second", "gone"), ("third", 3)):
        saver.put(at(thread_id), checkpoint({"a": value}), {}, {"a": 1})
    read = []

    def read_all() -> None:
        for item in saver.list(None):
            read.append(item.checkpoint["channel_values"]["a"])  # noqa: PERF401 - the values before the error count

    with pytest.raises(SerializationError, match="left out 1 unreadable") as caught:
        read_all()
    assert read == [3, 1]
    assert "second" in caught.value.location
    with pytest.raises(SerializationError, match="cannot read that"):
        list(saver.list(at("second")))


class Lending:
    """Gives buffers away as they are, as LangGraph's own serializer does with a bytearray."""

    def dumps_typed(self, obj: Any) -> tuple[str, Any]:
        return "buffer", obj

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return bytearray(data[1])


@pytest.mark.parametrize("length", [50, 500, 40_000])
def test_a_buffer_that_it_lends_is_stored_as_it_was(length: int) -> None:
    saver = MemorySaver(serde=Lending())
    buffer = bytearray(b"x" * length)
    config = at("thread")
    configs, states = [], []
    for step in range(3):
        buffer[step:step] = b"edit"
        config = saver.put(config, checkpoint({"a": buffer}), {}, {"a": step + 1})
        saver.put_writes(config, [("a", memoryview(bytes(buffer)))], "task")
        configs.append(config)
        states.append(bytearray(buffer))
        buffer[:5] = b"later"
    for each, state in zip(configs, states, strict=True):
        found = saver.get_tuple(each)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": state}
        assert found.pending_writes == [("task", "a", state)]


def test_what_is_no_buffer_is_refused() -> None:
    serde: Any = Lending()
    with pytest.raises(SerializationError, match='channel "a"'):
        MemorySaver(serde=serde).put(at("thread"), checkpoint({"a": 5}), {}, {"a": 1})


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


@pytest.mark.parametrize(
    "typed", [None, "text", ("tag",), (None, b"x"), (b"tag", b"x"), ("tag", "text"), ("tag", None)]
)
def test_what_is_no_tag_with_bytes_is_refused(typed: Any) -> None:
    class Odd(Json):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            result: tuple[str, bytes] = typed if obj == "odd" else super().dumps_typed(obj)
            return result

    saver = MemorySaver(serde=Odd())
    with pytest.raises(SerializationError, match='channel "a"'):
        saver.put(at("thread"), checkpoint({"a": "odd"}), {}, {"a": 1})
    assert list(saver.list(None)) == []


@pytest.mark.parametrize("size", [-1, 1.5, "1", None])
def test_a_cache_has_a_size(size: Any) -> None:
    with pytest.raises(ConfigError, match="cache_bytes"):
        MemorySaver(cache_bytes=size)
