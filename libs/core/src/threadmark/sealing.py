"""Encryption of stored rows: AES-256-GCM, each row bound to its table and key, with keys that can be rotated.

A sealed row is a version byte, the key's id, the incarnation of its thread unless it is a segment, a random nonce, and
the ciphertext with its tag. Anyone who reads the database learns the lengths of rows and which key sealed them. Anyone
who writes to it can neither change a row, nor move it to another place or into another life of its thread, nor pass off
plain bytes as a row. This needs the extra: `pip install threadmark[crypto]`.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import msgpack

from threadmark.errors import ConfigError, CorruptDataError, importing
from threadmark.format.digests import HOW_TO_SEAL, segment_key
from threadmark.format.incarnations import INCARNATION_LENGTH, Incarnation
from threadmark.keyring_file import KEY_LENGTH, LONGEST_ID, parsed, place_of, read_text
from threadmark.runtime.logs import log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_UNBOUND, _BOUND, _BOUND_AND_MARKED = 1, 2, 3
"""The first byte of a sealed row: without the incarnation of its thread, or with it, and perhaps marked."""
MARK = bytes([_BOUND_AND_MARKED])
_NONCE_LENGTH = 12
_TAG_LENGTH = 16
# BLAKE2b's `person` field, so that no other use of the secret gives this key.
_DIGEST_PURPOSE = b"threadmark.value"


class Keyring:
    """The keys of a database, by id. Rows are sealed with the newest key, and opened with any of them.

    To rotate, add a key, make it the newest, and seal the old rows again with `reencrypt`. Then you can remove the old
    key. The ids of keys are stored in clear.

    Rotation must not change the digests that find equal content. They have a key of their own, derived from
    `digest_secret`, which must stay the same for the life of the database.

    Random nonces are safe for about four billion rows sealed with one key. Rotate before that.

    If a program makes its keys when it starts, everything is lost when it ends. The bytes of a key do not show this, so
    a keyring remembers its `source`: the file or the environment variable that `from_file` or `from_env` read. If your
    keys come from elsewhere, such as a key service, name that place as `source`. Without a source, the first put into a
    new database logs a warning. In a database with sealed rows, the first put is refused unless the keyring opens one.
    """

    def __init__(
        self, keys: Mapping[str, bytes], newest: str, *, digest_secret: bytes, source: str | None = None
    ) -> None:
        self._cipher = Cipher(keys, newest, digest_secret=digest_secret, source=source)

    @classmethod
    def from_file(cls, path: "str | os.PathLike[str]") -> Self:
        """Read the keyring from a file, such as `threadmark keys new` makes. Raises ConfigError if it has none."""
        return cls._of(read_text(path), place_of(path))

    @classmethod
    def from_env(cls, name: str) -> Self:
        """Read the keyring from an environment variable that has the text of such a file."""
        text = os.environ.get(name)
        if not text:
            raise ConfigError(
                f"the environment variable {name} is not set: it should have the text of a keyring's file"
            )
        return cls._of(text, f"the environment variable {name}")

    @classmethod
    def _of(cls, text: str, place: str) -> Self:
        keys, newest, digest_secret = parsed(text, place)
        return cls(keys, newest, digest_secret=digest_secret, source=place)

    @property
    def source(self) -> str | None:
        """Where the keys are kept. None if the program has not said so."""
        return self._cipher.source

    def __repr__(self) -> str:
        return f"Keyring({self._cipher.key_ids}, newest={self._cipher.newest!r})"


class Cipher:
    """Seals and opens rows with the keys of a keyring. Users see only the keyring."""

    def __init__(self, keys: Mapping[str, bytes], newest: str, *, digest_secret: bytes, source: str | None) -> None:
        cipher, self._forged = _cryptography()
        keys = _checked_keys(keys)
        if not isinstance(newest, str) or newest not in keys:
            raise ConfigError(f"the newest key {newest!r} is not among the keys ({', '.join(sorted(keys))})")
        _check_bytes(digest_secret, "the digest secret")
        if len(digest_secret) < KEY_LENGTH:
            raise ConfigError(f"the digest secret has {len(digest_secret)} bytes; it needs at least {KEY_LENGTH}")
        self._ciphers = {name: cipher(key) for name, key in keys.items()}
        self.newest = newest
        self.digest_key = _derived(digest_secret)
        self.source = source
        self._has_warned = False

    @property
    def key_ids(self) -> list[str]:
        """The ids of the keys, in order."""
        return sorted(self._ciphers)

    def seal(
        self, plain: bytes, where: bytes, incarnation: Incarnation | None = None, *, is_marked: bool = False
    ) -> bytes:
        """Encrypt `plain`. The result can be decrypted only at the same location, and names the incarnation.

        If it is marked, it begins with `MARK`, which can be read without a key, and changed by no one without one.
        """
        nonce = os.urandom(_NONCE_LENGTH)
        header = _header(self.newest, incarnation, is_marked=is_marked)
        return header + nonce + self._ciphers[self.newest].encrypt(nonce, plain, header + where)

    def open(self, sealed: bytes, where: bytes) -> bytes:
        """Decrypt bytes that were encrypted for this location. Raises CorruptDataError if they do not decrypt."""
        name, header = _key_of(sealed)
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise CorruptDataError(f"a row was sealed with key {name!r}, which is not on the keyring")
        nonce = sealed[len(header) : len(header) + _NONCE_LENGTH]
        try:
            return cipher.decrypt(nonce, sealed[len(header) + _NONCE_LENGTH :], header + where)
        except self._forged:
            raise CorruptDataError(
                f"a row does not open with key {name!r}: it was changed, moved here from another place, or "
                "sealed with another key of that id"
            ) from None

    def segment_key(self, data: bytes) -> bytes:
        """Return the key of a segment. Without the secret, it does not reveal the segment's content."""
        return segment_key(data, secret=self.digest_key)

    def is_current(self, sealed: bytes) -> bool:
        """Return whether the newest key sealed this row, so that it need not be sealed again."""
        return _key_of(sealed)[0] == self.newest

    def warn_of_lost_keys(self) -> None:
        """Log once that the keys of a new database may be kept nowhere."""
        if self.source is None and not self._has_warned:
            self._has_warned = True
            log.write(
                logging.WARNING,
                "a new database is sealed with a keyring that was not read from a file or the environment: if its keys "
                "are kept nowhere else, everything is lost when the program ends; make a file with `threadmark keys "
                "new` and read it with Keyring.from_file, or name the place of the keys as source=",
            )

    def expect_to_open(self, opened: Sequence[bool], what: str = "newest checkpoints") -> None:
        """Raise ConfigError if there are rows and none of them opens."""
        if opened and not any(opened):
            raise ConfigError(
                f"the keyring does not hold the key that this database is sealed with: its {what} open with "
                f"none of the keys {', '.join(map(repr, self.key_ids))}, so nothing is stored; give the "
                "keyring that the rows were sealed with, or if they are damaged, see what `verify` says"
            )


def cipher_of(keyring: Keyring) -> Cipher:
    """Return what seals and opens rows with these keys."""
    return keyring._cipher  # noqa: SLF001 - a public attribute would be one of the surface


class SegmentNames:
    """Whether segments are named with a keyring's `digest_secret`. One of them is enough, so a saver looks once."""

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher
        self.are_proven = False

    def prove(self, keys: Iterable[bytes], whole: Mapping[bytes, bytes]) -> None:
        """Look at the segments of a sound value. Raises ConfigError if another secret has named them.

        Segments stored before the database had a keyring are named without a secret, and prove nothing.
        """
        for key in keys:
            if key == self._cipher.segment_key(whole[key]):
                self.are_proven = True
                return
            if key != segment_key(whole[key]):
                raise ConfigError(
                    "the keyring's digest_secret is not the one that this database was written with: its keys open the "
                    "rows, but equal content would not be found; give the first digest_secret"
                )


def incarnation_of(sealed: bytes) -> Incarnation | None:
    """Return the incarnation that a row names, or None. Trust it only if the row opens."""
    _, header = _key_of(sealed)
    return Incarnation.unpacked(header[-INCARNATION_LENGTH:]) if header[0] != _UNBOUND else None


def looks_sealed(body: bytes) -> bool:
    """Return whether a row's body has the form of a sealed one, with any key."""
    try:
        return bool(_key_of(body))
    except CorruptDataError:
        return False


def row_name(table: str, *key: object) -> bytes:
    """Return the text that the sealed part of a row is bound to: its table and its key."""
    packed: bytes = msgpack.packb((table, *key), unicode_errors="surrogatepass")
    return packed


def opens_segment(cipher: Cipher, thread_id: str, key: bytes, data: bytes) -> bool:
    """Return whether bytes are the sealed segment of this thread with this key."""
    try:
        cipher.open(data, row_name("segment", thread_id, key))
    except CorruptDataError:
        return False
    return True


def _checked_keys(keys: Mapping[str, bytes]) -> Mapping[str, bytes]:
    if not isinstance(keys, Mapping):
        raise ConfigError(f"the keys are a {type(keys).__name__}: give a mapping from their ids to their bytes")
    for name, key in keys.items():
        if not isinstance(name, str):
            raise ConfigError(f"the id of a key is a {type(name).__name__}: it must be text")
        if not 0 < _length(name) <= LONGEST_ID:
            raise ConfigError(f"the id of key {name!r} must have 1 to {LONGEST_ID} bytes")
        _check_bytes(key, f"key {name!r}")
        if len(key) != KEY_LENGTH:
            raise ConfigError(f"key {name!r} has {len(key)} bytes; AES-256 needs {KEY_LENGTH}")
    return keys


def _length(name: str) -> int:
    """The bytes of an id, 0 if it is no text."""
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        return 0


def _check_bytes(key: object, what: str) -> None:
    """Raise ConfigError, without quoting the key, if it is no bytes."""
    if not isinstance(key, bytes):
        hint = ", such as bytes.fromhex(...) of hexadecimal text" if isinstance(key, str) else ""
        raise ConfigError(f"{what} is a {type(key).__name__}: give {KEY_LENGTH} bytes{hint}")


def _cryptography() -> "tuple[type[AESGCM], type[Exception]]":
    """The cipher, and the error of a row that it does not open. Imported late, because few savers have a keyring."""
    with importing("encryption needs a further package: pip install 'threadmark[crypto]'"):
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM, InvalidTag


def _header(name: str, incarnation: Incarnation | None, *, is_marked: bool) -> bytes:
    """Return the bytes before the nonce. They give their own length, so that no two headers and places look alike."""
    encoded = name.encode()
    if incarnation is None:
        return bytes([_UNBOUND, len(encoded)]) + encoded
    return bytes([_BOUND_AND_MARKED if is_marked else _BOUND, len(encoded)]) + encoded + incarnation.packed()


def _key_of(sealed: bytes) -> tuple[str, bytes]:
    """Return the id of the key that sealed a row, and the header that holds it."""
    kind, length = sealed[:2] if len(sealed) > 1 else (0, 0)
    end_of_id = 2 + length
    end = end_of_id + (INCARNATION_LENGTH if kind in (_BOUND, _BOUND_AND_MARKED) else 0)
    if kind not in (_UNBOUND, _BOUND, _BOUND_AND_MARKED) or len(sealed) < end + _NONCE_LENGTH + _TAG_LENGTH:
        raise CorruptDataError(f"a row is not sealed, or is cut short: {HOW_TO_SEAL}")
    try:
        return bytes(sealed[2:end_of_id]).decode(), bytes(sealed[:end])
    except UnicodeDecodeError:
        raise CorruptDataError("a row is not sealed: where the key's id should be, there is something else") from None


def _derived(secret: bytes) -> bytes:
    # The secret is hashed first because a BLAKE2b key has at most 64 bytes.
    key = blake2b(secret, digest_size=64).digest()
    return blake2b(key=key, person=_DIGEST_PURPOSE, digest_size=KEY_LENGTH).digest()
