"""Digests: the key of a segment, the proof of a value, and the check that ties a row's body to its key.

Each is as short as its use allows (docs/decisions/0002-stored-form.md). A value's digest is made of the digests of its
pieces, so that only those pieces are hashed that differ from a value already proven.
"""

from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import msgpack

from threadmark.runtime.compiled import counterpart

KEY_SIZE = 12
"""The length of a segment's key."""

VALUE_DIGEST_SIZE = 16
"""The length of a value's digest."""

NOT_SEALED = b"not sealed"
"""Stands for the check of a row that was stored without a keyring, in a database that has one."""

NOT_OPENED = b"not opened"
"""Stands for the check of a sealed row that does not open."""

OF_ANOTHER_LIFE = b"of another life"
"""Stands for the check of a row that opens, and does not belong to the thread as its own row has it."""

HOW_TO_OPEN = "give keyring=, the command --keyring FILE"
HOW_TO_SEAL = "reencrypt(plain='seal') seals what was stored without a keyring (the command: reencrypt --plain seal)"

CHECK_SIZE = 12
"""The length of a row's check."""

PIECE = 16 * 1024
"""The length of the pieces of a value that are hashed one by one; the last may be shorter."""


def segment_key(segment: bytes, secret: bytes = b"") -> bytes:
    """Return the key of a segment inside its thread. With a secret, the key does not reveal the bytes.

    It is short because every manifest repeats it. Should two segments ever collide, the digest of the whole value,
    checked on every read, turns that into a CorruptDataError.
    """
    return blake2b(segment, digest_size=KEY_SIZE, key=secret).digest()


class Proof(NamedTuple):
    """A value's bytes, its digest, and the digests of its pieces."""

    data: bytes
    digest: bytes
    pieces: tuple[bytes, ...]


def proof(data: bytes, previous: Proof | None = None) -> Proof:
    """Compute the digest of a value. Pieces equal to those of `previous` at the same position are not hashed again."""
    if previous is None and len(data) <= PIECE:
        return _proof(data, (sha256(data).digest(),) if data else ())
    pieces = []
    known = memoryview(previous.data if previous else b"")
    for start in range(0, len(data), PIECE):
        end = min(start + PIECE, len(data))
        if previous and end == min(start + PIECE, len(known)) and data.startswith(known[start:end], start):
            pieces.append(previous.pieces[start // PIECE])
        else:
            pieces.append(sha256(data[start:end]).digest())
    return _proof(data, tuple(pieces))


def _proof(data: bytes, pieces: tuple[bytes, ...]) -> Proof:
    # The length comes first, so that no two values have the same input here.
    root = sha256(len(data).to_bytes(8, "big") + b"".join(pieces))
    return Proof(data, root.digest()[:VALUE_DIGEST_SIZE], pieces)


def row_check(*fields: str | bytes | int | None) -> bytes:
    """Compute the check of a row, which proves that its body stands under the key it was written with."""
    return check_of(list(fields))


_NEW_CHECK = blake2b(digest_size=CHECK_SIZE)
"""Nothing is hashed with it: a copy is made faster than a hasher with these parameters."""


@counterpart("checks.check_of")
def check_of(listed: list[str | bytes | int | None]) -> bytes:
    """Compute the check of a row whose fields are listed already, as `row_check` does."""
    check = _NEW_CHECK.copy()
    check.update(pack_plain(listed))
    return check.digest()


@counterpart("checks.pack_plain")
def pack_plain(value: Any) -> bytes:
    """Pack lists, dictionaries, text, bytes, numbers and None of our own: the same bytes for the same value.

    Users' values, which may be of any class, are packed by `serde/wire.py`. An int of more than 64 bits is an
    OverflowError.
    """
    packed: bytes = msgpack.packb(value, strict_types=True, unicode_errors="surrogatepass")
    return packed
