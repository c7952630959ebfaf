"""Sealed rows: only their place and their keys open them, and nothing in them can be read or changed."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.errors import ConfigError, CorruptDataError, MissingDependencyError
from threadmark.sealing import Cipher, Keyring, cipher_of

SECRET = b"d" * 32
OLD, NEW = b"o" * 32, b"n" * 32
WHERE = b"segment\0thread\0digest"


def ring(newest: str = "old", **keys: bytes) -> Keyring:
    return Keyring(keys or {"old": OLD}, newest, digest_secret=SECRET)


def cipher(newest: str = "old", **keys: bytes) -> Cipher:
    return cipher_of(ring(newest, **keys))


@given(st.binary(), st.binary())
def test_what_is_sealed_opens(plain: bytes, where: bytes) -> None:
    assert cipher().open(cipher().seal(plain, where), where) == plain


@given(st.binary(min_size=8), st.binary())
def test_nothing_of_the_plain_bytes_is_in_the_row(plain: bytes, where: bytes) -> None:
    assert plain not in cipher().seal(plain, where)


def test_the_same_bytes_are_sealed_differently_each_time() -> None:
    assert cipher().seal(b"plain", WHERE) != cipher().seal(b"plain", WHERE)


def test_a_row_opens_at_its_place_only() -> None:
    sealed = cipher().seal(b"plain", WHERE)
    with pytest.raises(CorruptDataError, match="moved here from another place"):
        cipher().open(sealed, WHERE + b"2")


def test_a_row_opens_with_its_key_only() -> None:
    sealed = cipher().seal(b"plain", WHERE)
    with pytest.raises(CorruptDataError, match="does not open with key 'old'"):
        cipher(old=NEW).open(sealed, WHERE)
    with pytest.raises(CorruptDataError, match="sealed with key 'old', which is not on the keyring"):
        cipher("new", new=NEW).open(sealed, WHERE)


def test_no_byte_of_a_row_can_be_changed() -> None:
    sealed = cipher("old", old=OLD, olf=OLD).seal(b"plain", WHERE)
    for location in range(len(sealed)):
        changed = sealed[:location] + bytes([sealed[location] ^ 1]) + sealed[location + 1 :]
        with pytest.raises(CorruptDataError):
            cipher("old", old=OLD, olf=OLD).open(changed, WHERE)


@given(st.binary(max_size=80))
def test_plain_bytes_are_not_taken_for_a_row(plain: bytes) -> None:
    with pytest.raises(CorruptDataError):
        cipher().open(plain, WHERE)


def test_a_row_cut_short_does_not_open() -> None:
    sealed = cipher().seal(b"plain", WHERE)
    for length in range(len(sealed)):
        with pytest.raises(CorruptDataError):
            cipher().open(sealed[:length], WHERE)


def test_after_rotation_old_rows_open_and_new_ones_are_sealed_by_the_new_key() -> None:
    old, both = cipher(), cipher("new", old=OLD, new=NEW)
    before, after = old.seal(b"plain", WHERE), both.seal(b"plain", WHERE)
    assert both.open(before, WHERE) == both.open(after, WHERE) == b"plain"
    assert not both.is_current(before)
    assert both.is_current(after)
    assert cipher("new", new=NEW).open(after, WHERE) == b"plain"


def test_the_digest_key_survives_rotation_and_is_not_the_secret() -> None:
    assert cipher().digest_key == cipher("new", old=OLD, new=NEW).digest_key
    assert cipher().digest_key != cipher_of(Keyring({"old": OLD}, "old", digest_secret=b"e" * 32)).digest_key
    assert cipher().digest_key not in (SECRET, OLD)
    assert len(cipher().digest_key) == 32


def test_keys_do_not_show() -> None:
    assert repr(ring("new", old=OLD, new=NEW)) == "Keyring(['new', 'old'], newest='new')"


def test_unusable_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="not among the keys"):
        ring("missing", old=OLD)
    with pytest.raises(ConfigError, match="has 16 bytes; AES-256 needs 32"):
        ring("old", old=b"o" * 16)
    with pytest.raises(ConfigError, match="1 to 255 bytes"):
        Keyring({"": OLD}, "", digest_secret=SECRET)
    with pytest.raises(ConfigError, match="digest secret has 3 bytes"):
        Keyring({"old": OLD}, "old", digest_secret=b"abc")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'threadmark\[crypto\]'") as caught:
        ring("old", old=OLD)
    assert isinstance(caught.value, ImportError)
    assert not isinstance(caught.value, ConfigError)
    assert caught.value.name == "cryptography.exceptions"


@pytest.mark.parametrize(
    ("keys", "newest", "secret", "problem"),
    [
        ({"old": "o" * 32}, "old", SECRET, "key 'old' is a str: give 32 bytes, such as bytes.fromhex"),
        ({"old": None}, "old", SECRET, "key 'old' is a NoneType"),
        ({1: OLD}, 1, SECRET, "the id of a key is a int"),
        ([("old", OLD)], "old", SECRET, "the keys are a list"),
        ({"old": OLD}, ["old"], SECRET, "the newest key"),
        ({"old": OLD}, None, SECRET, "the newest key None is not among the keys"),
        ({"old": OLD}, "old", "d" * 32, "the digest secret is a str"),
        ({"\udc80": OLD}, "\udc80", SECRET, "the id of key"),
    ],
)
def test_keys_of_a_wrong_type_are_refused(keys: Any, newest: Any, secret: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Keyring(keys, newest, digest_secret=secret)
    assert "ooo" not in str(caught.value)
    assert "ddd" not in str(caught.value)
