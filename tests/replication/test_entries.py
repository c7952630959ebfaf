"""The content of an entry comes back the same, and nothing else is taken for one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.errors import CorruptDataError
from threadmark.replication.entries import Touched, joined

_KEYS = st.frozensets(st.tuples(st.text(), st.text()), max_size=3)
_TOUCHED = st.builds(
    Touched,
    _KEYS,
    _KEYS,
    st.frozensets(st.binary(), max_size=3),
    _KEYS,
    everything=st.booleans(),
    thread=st.booleans(),
    dropped=st.booleans(),
    merged=st.booleans(),
)


@settings(max_examples=30)
@given(_TOUCHED)
def test_what_was_touched_comes_back_the_same(touched: Touched) -> None:
    assert Touched.from_bytes(touched.to_bytes()) == touched


def test_keys_of_any_text_come_back() -> None:
    touched = Touched(frozenset({("a\ud800\0", "é")}))
    assert Touched.from_bytes(touched.to_bytes()) == touched


@settings(max_examples=20)
@given(st.lists(_TOUCHED, max_size=4))
def test_several_entries_say_together_what_each_says(parts: list[Touched]) -> None:
    together = joined(parts)
    assert all(part.plus(together) == together for part in parts)
    assert together.whole == any(part.whole for part in parts)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"1",
        b'{"checkpoints":1}',
        b'{"checkpoints":[["a"]]}',
        b'{"checkpoints":[["a",1]]}',
        b'{"segments":["zz"]}',
        b'{"removed":["a"]}',
        b'{"removed":[["a",null]]}',
        b'{"is":["later"]}',
        b'{"later":1}',
        b"[" * 100_000,
    ],
)
def test_anything_else_is_no_entry(body: bytes) -> None:
    with pytest.raises(CorruptDataError, match="an entry of the outbox is damaged"):
        Touched.from_bytes(body)
