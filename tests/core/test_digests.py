"""Value digests: made of pieces, and the same whether or not a resembling value was there to save work."""

from hashlib import sha256
from typing import Any

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from threadmark.format.digests import PIECE, VALUE_DIGEST_SIZE, Proof, pack_plain, proof

SOME = bytes(range(251)) * (3 * PIECE // 251 + 1)
LENGTHS = st.sampled_from([0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE])


@given(LENGTHS, LENGTHS, st.integers(0, 3 * PIECE), st.binary(max_size=3))
def test_a_resembling_value_changes_the_work_and_not_the_proof(
    length: int, other: int, location: int, edit: bytes
) -> None:
    near = SOME[:other]
    data = (SOME[:location] + edit + SOME[location:])[:length]
    assert proof(data, proof(near)) == proof(data)
    assert len(proof(data).digest) == VALUE_DIGEST_SIZE


@given(LENGTHS, st.integers(0, 3 * PIECE), st.integers(1, 255))
def test_a_changed_byte_changes_the_digest_beside_the_value_that_it_changed(
    length: int, location: int, bit: int
) -> None:
    data = SOME[: length + 1]
    changed = bytearray(data)
    changed[location % len(data)] ^= bit
    assert proof(bytes(changed), proof(data)).digest != proof(data).digest


def test_a_value_is_not_known_by_the_digest_of_the_pieces_of_another() -> None:
    whole = proof(SOME)
    assert proof(len(SOME).to_bytes(8, "big") + b"".join(whole.pieces)).digest != whole.digest


def test_pieces_that_are_the_same_are_not_hashed_again() -> None:
    near = proof(SOME)
    marked = Proof(near.data, near.digest, tuple(bytes(32) for _ in near.pieces))
    assert proof(SOME[: 2 * PIECE] + b"new", marked).pieces[:2] == marked.pieces[:2]
    assert proof(SOME[: 2 * PIECE] + b"new", marked).pieces[2] == sha256(b"new").digest()


TEXT = st.text() | st.text(st.characters(codec=None, exclude_categories=[]))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.binary() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@given(PLAIN)
def test_whatever_packs_faster_packs_the_same_bytes(value: Any) -> None:
    assert pack_plain(value) == msgpack.packb(value, unicode_errors="surrogatepass")
