"""The header of a put: only the parent's values are inherited; a short one stands in its row as it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from threadmark.config import config_metadata
from threadmark.format.digests import Proof, proof
from threadmark.format.rope import Deduplicated, Source, deduplicate
from threadmark.memory import MemorySaver
from threadmark.metadata import checked, merged
from threadmark.model import Checkpoint
from threadmark.saver import storing

CONFIG = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def _checkpoint(number: int, values: Mapping[str, Any], versions: Mapping[str, Any]) -> Checkpoint:
    return {"v": 4, "id": f"{number:03d}", "channel_values": dict(values), "channel_versions": dict(versions)}


@pytest.mark.parametrize(
    ("values", "versions", "new", "expected"),
    [
        # One channel has changed.
        ({"a": 1, "b": 7, "c": 3}, {"a": 1, "b": 2, "c": 1}, {"b": 2}, {"a": 1, "b": 7, "c": 3}),
        # A value is left out: it is the parent's.
        ({"b": 7}, {"a": 1, "b": 2, "c": 1}, {"b": 2}, {"b": 7, "a": 1, "c": 3}),
        # A new channel without a value is empty, and so is one whose version has moved on.
        ({"a": 1}, {"a": 1, "b": 2, "c": 2}, {"b": 2}, {"a": 1}),
        # A channel without a version has the value that was passed.
        ({"a": 5, "b": 7, "c": 3}, {"b": 2, "c": 1}, {"b": 2}, {"a": 5, "b": 7, "c": 3}),
        # Nothing is new by name, but a version has moved on.
        ({"a": 1, "b": 2, "c": 9}, {"a": 1, "b": 1, "c": 2}, {}, {"a": 1, "b": 2, "c": 9}),
        # Channels that the parent does not have, and another order.
        (
            {"d": 4, "c": 3, "b": 2, "a": 1},
            {"a": 1, "b": 1, "c": 1, "d": 1},
            {"d": 1},
            {"d": 4, "c": 3, "b": 2, "a": 1},
        ),
        # A version of another kind that is equal is the same one.
        ({"a": 1, "b": 2, "c": 3}, {"a": 1.0, "b": 1, "c": 1}, {}, {"a": 1, "b": 2, "c": 3}),
    ],
)
@pytest.mark.parametrize("warm", [True, False])
def test_a_channel_has_the_parents_value_where_it_has_not_changed(
    values: Mapping[str, Any],
    versions: Mapping[str, Any],
    new: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    warm: bool,
) -> None:
    for padding in ("", "long " * 100):  # with manifests, too
        with MemorySaver() as saver:
            first = {"a": 1, "b": 2, "c": 3}
            ones = dict.fromkeys([*first, "long"], 1)
            config = saver.put(CONFIG, _checkpoint(1, {**first, "long": padding}, ones), {}, ones)
            if not warm:
                saver._context.encoding_cache.clear()
            child = _checkpoint(2, {**values, "long": padding}, {**versions, "long": 1})
            found = saver.get(saver.put(config, child, {}, new))
            assert found is not None
            assert found["channel_values"] == {**expected, "long": padding}
            assert [*found["channel_values"]][: len(values)] == [*values]
            assert found["channel_versions"] == {**versions, "long": 1}


def test_a_header_of_short_values_needs_no_segment() -> None:
    for number, stored in ((5, False), (40, True)):
        with MemorySaver() as saver:
            config: Any = CONFIG
            for step in range(3):
                values = {f"channel {each}": step * 1000 + each for each in range(number)}
                versions = dict.fromkeys(values, f"{step:032d}")
                config = saver.put(config, _checkpoint(step, values, versions), {}, versions)
            assert bool(saver.stats().segments) is stored


def test_checked_metadata_is_taken_as_it_is() -> None:
    config = {"configurable": {"thread_id": "1", "user": "ada"}, "metadata": {"run": "x"}}
    assert config_metadata(config) == {"run": "x", "user": "ada"}
    assert config_metadata(CONFIG) == {}
    assert merged(config, {"step": 1}) == {"step": 1, "run": "x", "user": "ada"}
    given = checked({"step": 1})
    assert given.text == '{"step":1}'
    with MemorySaver() as saver:
        found = saver.get_tuple(saver.put(config, _checkpoint(1, {}, {}), given, {}))
    assert found is not None
    assert found.metadata == {"step": 1}


@pytest.mark.parametrize("empty", [{}, {"packets": []}])
def test_what_a_step_emptied_is_compared_with_when_it_comes_back(
    empty: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []

    def recorded(data: bytes, sources: Sequence[Source], *rest: Any, **more: Any) -> Deduplicated:
        compared.append(sources[0].data)
        return deduplicate(data, sources, *rest, **more)

    packets = [{"prompt": "given once " * 30, "number": number} for number in range(4)]
    later = [{**packet, "turn": 2} for packet in packets]
    with MemorySaver() as saver:
        config = saver.put(CONFIG, _checkpoint(1, {"packets": packets}, {"packets": 1}), {}, {"packets": 1})
        config = saver.put(config, _checkpoint(2, empty, {"packets": 2}), {}, {"packets": 2})
        saver.put_writes(config, [("packets", packet) for packet in later], "task")
        monkeypatch.setattr(storing, "deduplicate", recorded)
        config = saver.put(config, _checkpoint(3, {"packets": later}, {"packets": 3}), {}, {"packets": 3})
        assert compared == [saver.serde.dumps_typed(packets)[1]]
        assert saver.get(config) == _checkpoint(3, {"packets": later}, {"packets": 3})


def test_a_value_that_a_task_has_written_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[bytes] = []

    def recorded(data: bytes, near: Proof | None = None) -> Proof:
        hashed.append(data)
        return proof(data, near)

    value = {"text": "as a channel keeps it that has the last value " * 40}
    monkeypatch.setattr(storing, "proof", recorded)
    with MemorySaver() as saver:
        config = saver.put(CONFIG, _checkpoint(1, {"last": None}, {"last": 1}), {}, {"last": 1})
        saver.put_writes(config, [("last", value)], "task")
        config = saver.put(config, _checkpoint(2, {"last": value}, {"last": 2}), {}, {"last": 2})
        assert hashed == [saver.serde.dumps_typed(value)[1]]
        assert saver.get(config) == _checkpoint(2, {"last": value}, {"last": 2})
        assert saver.stats().segments == 1
