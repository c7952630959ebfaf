"""Where a cache has the entries of a thread: a digest of the database's name and the thread's id."""

from hashlib import blake2b

from threadmark.digests import pack_plain
from threadmark.sealing import Keyring

_SIZE = 16
_PURPOSE = b"threadmark.cache"
"""BLAKE2b's `person` field, so that no other use of a keyring's secret gives the same digests."""


class Places:
    """The places of one database, as savers with one keyring see it.

    With a keyring, its secret is the key of the digest: nobody can tell from a place which thread it is, and savers
    with another keyring, or with none, have other places.
    """

    def __init__(self, name: str, keyring: Keyring | None) -> None:
        self._name = name
        self._secret = b"" if keyring is None else keyring.digest_key

    def place(self, thread_id: str) -> bytes:
        """Return the place of a thread."""
        what = pack_plain([self._name, thread_id])
        return blake2b(what, digest_size=_SIZE, key=self._secret, person=_PURPOSE).digest()
