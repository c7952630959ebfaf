"""msgpack of our own plain values, which are rows' keys and headers.

ormsgpack, where it is installed, packs the same bytes faster. What users give, which may be of any class, is packed by
`serde/wire.py`.
"""

from typing import Any

import msgpack

try:
    import ormsgpack
except ImportError:
    ormsgpack = None  # type: ignore[assignment]  # a module that is not there


def pack_plain(value: Any) -> bytes:
    """Pack lists, dictionaries, text, bytes, numbers and None, none of them an instance of a subclass."""
    if ormsgpack is not None:
        try:
            return ormsgpack.packb(value)
        except ormsgpack.MsgpackEncodeError:
            pass  # text with lone surrogates, or an int of more than 64 bits
    packed: bytes = msgpack.packb(value, strict_types=True, unicode_errors="surrogatepass")
    return packed
