"""Digests: what names a segment, what proves a value, what ties a row's body to its key.

All are BLAKE2b, cut to what each needs (docs/decisions/0002-stored-form.md): a segment's key only has to be unique
inside its thread, because the value it is part of is proven as a whole.
"""

from hashlib import blake2b

import msgpack

VALUE_DIGEST_SIZE = 16
CHECK_SIZE = 12


def value_digest(data: bytes) -> bytes:
    """What a value's encoding is known by and proven with."""
    return blake2b(data, digest_size=VALUE_DIGEST_SIZE).digest()


def row_check(*fields: str | bytes | int | None) -> bytes:
    """What proves that a row's body stands under the key it was written with."""
    return blake2b(_unambiguous(fields), digest_size=CHECK_SIZE).digest()


def _unambiguous(fields: tuple[object, ...]) -> bytes:
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed
