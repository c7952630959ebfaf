"""Values of stores come back type for type, as text where JSON is exact, as bytes otherwise, sealed or not."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from length import times
from serde.catalogue import EXACT
from serde.sameness import same
from threadmark.errors import ConfigError, CorruptDataError
from threadmark.memory import MemorySaver
from threadmark.saver import Saver
from threadmark.sealing import Keyring, cipher_of
from threadmark.serde import Serde
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from threadmark_store.batches import key_of
from threadmark_store.shapes import ItemKey, ItemRow
from threadmark_store.values import Values, check_of

CIPHER = cipher_of(Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32)))
KEY = key_of(("a", "b"), "k")

JSON_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text().filter(lambda text: "\x00" not in text),
)
OTHER_LEAVES = st.one_of(
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.just("\x00"),
    st.just("\ud800"),
    st.binary(max_size=8),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.complex_numbers(allow_nan=False),
)
JSON_KEYS = st.text(max_size=5).filter(lambda text: "\x00" not in text)
JSON = st.dictionaries(
    JSON_KEYS,
    st.recursive(
        JSON_LEAVES,
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(JSON_KEYS, parts, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
ANYTHING = st.dictionaries(
    st.one_of(st.text(st.characters(codec=None), max_size=3), st.integers(), st.none(), st.tuples(st.integers())),
    st.recursive(
        st.one_of(JSON_LEAVES, OTHER_LEAVES),
        lambda parts: st.one_of(
            st.lists(parts, max_size=3),
            st.tuples(parts),
            st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), parts, max_size=3),
        ),
        max_leaves=6,
    ),
    max_size=3,
)
_numbers = count()


@pytest.fixture(params=["plain", "sealed"])
def values(request: pytest.FixtureRequest) -> Values:
    return Values(Serde(), CIPHER if request.param == "sealed" else None)


@pytest.fixture(scope="module", params=["memory", "SQLite"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that all examples share; each has a key."""
    file = tmp_path_factory.mktemp("values") / "items.db"
    saver: Saver = MemorySaver() if request.param == "memory" else SqliteSaver(file, durability="normal")
    with saver:
        yield Store(saver)


def _row(value: str | bytes, key: ItemKey = KEY) -> ItemRow:
    return ItemRow(key, value, check_of(key, value), 0, 0)


@settings(max_examples=times(100, at_length=10_000))
@given(JSON)
@example({"a": -0.0})
@example({"": [{"": {}}], "n": [1, 1.0, True]})
def test_json_is_stored_as_text_and_comes_back(value: dict[str, Any]) -> None:
    stored = Values(Serde(), None).encoded(KEY, value)
    assert isinstance(stored, str)
    assert same(json.loads(stored), value)
    assert same(Values(Serde(), CIPHER).decoded(_row(stored)), value)


@pytest.mark.parametrize("cipher", [None, CIPHER], ids=["plain", "sealed"])
@settings(max_examples=times(100, at_length=10_000))
@given(st.one_of(JSON, ANYTHING))
def test_a_value_comes_back_type_for_type(cipher: Any, value: dict[str, Any]) -> None:
    values = Values(Serde(), cipher)
    assert same(values.decoded(_row(values.encoded(KEY, value))), value)


@settings(max_examples=times(100, at_length=5000))
@given(st.one_of(JSON, ANYTHING))
def test_a_store_returns_what_was_put(store: Store, value: dict[str, Any]) -> None:
    key = f"k{next(_numbers)}"
    store.put(("a",), key, value)
    found = store.get(("a",), key)
    assert found is not None
    assert same(found.value, value)


@pytest.mark.parametrize("group", EXACT)
def test_every_kind_that_the_serializer_keeps_is_kept(values: Values, group: str) -> None:
    for name, make in EXACT[group].items():
        value = {"a": make(), "b": [make()]}
        assert same(value, values.decoded(_row(values.encoded(KEY, value)))), name


@pytest.mark.parametrize(
    "value",
    [
        {"n": 2**63},
        {"n": float("nan")},
        {"n": float("inf")},
        {"s": "\x00"},
        {"\x00": 1},
        {"s": "\ud800"},
        {1: 1},
        {"t": (1,)},
        {"b": b""},
        {"deep": [[]]},
    ],
    ids=str,
)
def test_only_what_json_gives_back_is_text(value: dict[Any, Any]) -> None:
    stored = Values(Serde(), None).encoded(KEY, value)
    assert isinstance(stored, str) == (value == {"deep": [[]]})


def test_a_value_deeper_than_json_allows_is_kept(values: Values) -> None:
    value: dict[str, Any] = {}
    for _ in range(200):
        value = {"a": [value]}
    assert values.decoded(_row(values.encoded(KEY, value))) == value


def _flipped(stored: str | bytes) -> Iterator[str | bytes]:
    for place in range(len(stored)):
        if isinstance(stored, str):
            yield stored[:place] + ("x" if stored[place] != "x" else "y") + stored[place + 1 :]
        else:
            yield stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]


@pytest.mark.parametrize("value", [{"n": 1, "s": "abc"}, {"n": 1, "t": (1, 2)}], ids=str)
def test_every_changed_byte_is_noticed(values: Values, value: dict[str, Any]) -> None:
    row = _row(values.encoded(KEY, value))
    for changed in _flipped(row.value):
        with pytest.raises(CorruptDataError, match=r"'k' of namespace 'a\.b': its value and its check"):
            values.decoded(row._replace(value=changed))


@pytest.mark.parametrize("value", [{"n": 1, "s": "abc"}, {"n": 1, "t": (1, 2)}], ids=str)
def test_a_change_with_a_matching_check_is_an_error_or_another_value_of_plain_text(
    values: Values, value: dict[str, Any]
) -> None:
    """A keyring detects changes by anyone who can compute the check. Without one, only what does not read is found."""
    for changed in _flipped(values.encoded(KEY, value)):
        try:
            found = values.decoded(_row(changed))
        except (CorruptDataError, ConfigError):
            continue
        assert values.comparable
        assert isinstance(found, dict)


@settings(max_examples=times(200, at_length=20_000))
@given(st.one_of(st.binary(max_size=40), st.text(max_size=20)))
@example("[]")
@example("1")
@example(b"")
@example(b"\x01")
@example(b"\x01tag")
@example(b"\x02")
@example(b"\x03" + bytes(60))
@example(b"\x01\xff\0x")
@example(b"\x01m1\0")
def test_bytes_that_are_no_value_are_damage(stored: str | bytes) -> None:
    for values in (Values(Serde(), None), Values(Serde(), CIPHER)):
        try:
            assert isinstance(values.decoded(_row(stored)), dict)
        except CorruptDataError as error:
            assert "'k' of namespace 'a.b'" in str(error)
        except ConfigError as error:
            assert "is sealed" in str(error)


def test_checks_of_different_keys_differ() -> None:
    keys = [ItemKey("a", "b"), ItemKey("a.b", ""), ItemKey("", "a.b"), ItemKey("a", "b\0"), ItemKey("b", "a")]
    assert len({check_of(key, "{}") for key in keys}) == len(keys)
    assert check_of(keys[0], "{}") == check_of(keys[0], b"{}")
    assert all(-(2**63) <= check_of(ItemKey("a", str(number)), "{}") < 2**63 for number in range(100))
